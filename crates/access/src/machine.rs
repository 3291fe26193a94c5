//! The rules for keys. Pure: ids and hashes of secrets come in from the service.

use std::sync::Arc;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_exchange::{Decide, Decision, Machine};

use crate::{Grant, KeyId, KeyInfo, SecretHash};

/// All keys, oldest first.
///
/// ```text
/// CreateKey ──▶ live ──RevokeKey──▶ revoked
///                └────its time────▶ expired      (judged at every use; no event)
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessKeys {
    keys: IndexMap<KeyId, Key>,
    /// How many events made this state: the greater of two is the newer.
    revision: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Key {
    #[serde(flatten)]
    info: KeyInfo,
    secret: SecretHash,
}

/// Makes a key. The machine sees the hash of its secret only.
#[derive(Debug, Clone)]
pub struct CreateKey {
    /// Its public part, chosen at random.
    pub id: KeyId,
    /// 1 to 64 of `A-Z a-z 0-9 _ . @ -`; no live key may have the same.
    pub name: String,
    /// What is kept of its secret.
    pub secret: SecretHash,
    /// What its holder may use.
    pub grant: Grant,
    /// From when on it is refused; none for never.
    pub expires_at: Option<Timestamp>,
}

/// Ends a key, named by its id, or by its name if it is live. Ending it twice is harmless.
#[derive(Debug, Clone)]
pub struct RevokeKey {
    /// Id or name.
    pub key: String,
}

/// What happened to keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A key was made.
    KeyCreated {
        /// Its public part.
        id: KeyId,
        /// Its name.
        name: Arc<str>,
        /// What is kept of its secret.
        secret_sha256: SecretHash,
        /// What its holder may use.
        grant: Arc<Grant>,
        /// When.
        at: Timestamp,
        /// From when on it is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    },
    /// A key was ended.
    KeyRevoked {
        /// Its public part.
        id: KeyId,
        /// When.
        at: Timestamp,
    },
}

/// Why keys stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The name cannot be one.
    #[error(
        "'{name}' cannot name a key: a name is 1 to {} characters of A-Z a-z 0-9 _ . @ -",
        AccessKeys::MAX_NAME
    )]
    BadName {
        /// What was asked for.
        name: String,
    },
    /// The name stands for callers without key.
    #[error("'{name}' stands for callers that need no key: choose another name")]
    ReservedName {
        /// What was asked for.
        name: String,
    },
    /// A live key has it.
    #[error("there is already a key called '{name}': choose another name, or revoke that one first")]
    NameTaken {
        /// What was asked for.
        name: String,
    },
    /// The random id is in use. Try another.
    #[error("there is already a key with the id '{id}'")]
    IdTaken {
        /// The id.
        id: KeyId,
    },
    /// The key would open nothing.
    #[error("a key for no {what} at all would open nothing: name some, or leave the list out to allow all")]
    EmptyGrant {
        /// `projects` or `toolsets`.
        what: &'static str,
    },
    /// The grant names more than is kept.
    #[error("a key is bound to at most {} {what}, this one to {count}", AccessKeys::MAX_GRANT)]
    LargeGrant {
        /// `projects` or `toolsets`.
        what: &'static str,
        /// How many it names.
        count: usize,
    },
    /// A name in the grant is no name.
    #[error("a name in the list of {what} has {len} bytes, it must have 1 to {}", AccessKeys::MAX_GRANT_NAME)]
    BadGrantName {
        /// `projects` or `toolsets`.
        what: &'static str,
        /// How long it is, in bytes.
        len: usize,
    },
    /// It would be expired from the start.
    #[error("a key cannot expire at {expires_at}, which is over: give a time to come")]
    ExpiresInThePast {
        /// What was asked for.
        expires_at: Timestamp,
    },
    /// There are as many as may be.
    #[error("there are {} live keys, the most there may be: revoke some first", AccessKeys::MAX_LIVE)]
    TooMany,
    /// No such key.
    #[error("there is no key '{key}'")]
    Unknown {
        /// What was asked for.
        key: String,
    },
}

impl AccessKeys {
    /// How many keys may be live at once.
    pub const MAX_LIVE: usize = 1_000;
    /// How many keys that are no longer live stay listed; the oldest are forgotten.
    pub const MAX_ENDED: usize = 1_000;
    /// The longest name of a key, in characters.
    pub const MAX_NAME: usize = 64;
    /// The most projects, and the most toolsets, that one grant names.
    pub const MAX_GRANT: usize = 1_000;
    /// The longest name in a grant, in bytes.
    pub const MAX_GRANT_NAME: usize = 4_096;

    /// All keys that are kept, oldest first.
    pub fn keys(&self) -> impl Iterator<Item = &KeyInfo> {
        self.keys.values().map(|key| &key.info)
    }

    /// The live key that has this id and this secret.
    pub fn open(&self, id: &str, secret: &str, now: Timestamp) -> Option<&KeyInfo> {
        let key = self.keys.get(&KeyId::new(id))?;
        (key.secret.matches(secret) && key.info.is_live(now)).then_some(&key.info)
    }

    /// How many events made this state.
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    fn live(&self, now: Timestamp) -> impl Iterator<Item = &KeyInfo> {
        self.keys().filter(move |key| key.is_live(now))
    }

    fn find(&self, key: &str, now: Timestamp) -> Option<&KeyInfo> {
        self.keys.get(&KeyId::new(key)).map(|key| &key.info).or_else(|| {
            self.live(now)
                .find(|info| *info.name == *key)
                // A name that only ended keys have means the newest of them.
                .or_else(|| self.keys().filter(|info| *info.name == *key).last())
        })
    }

    /// Forgets the oldest keys that are no longer live, beyond as many as are kept.
    fn forget_ended(&mut self, now: Timestamp) {
        let live = self.live(now).count();
        let mut surplus = (self.keys.len() - live).saturating_sub(Self::MAX_ENDED);
        self.keys.retain(|_, key| {
            let forget = surplus > 0 && !key.info.is_live(now);
            surplus -= usize::from(forget);
            !forget
        });
    }
}

impl Machine for AccessKeys {
    const VERSION: u32 = 1;
    type Settings = ();
    type Event = Event;
    type Rejection = Refused;

    fn new() -> Self {
        Self::default()
    }

    fn configure(&mut self, (): &()) {}

    fn apply(&mut self, event: &Event) {
        self.revision += 1;
        match event {
            Event::KeyCreated { id, name, secret_sha256, grant, at, expires_at } => {
                let info = KeyInfo {
                    id: id.clone(),
                    name: name.clone(),
                    grant: grant.clone(),
                    created_at: *at,
                    expires_at: *expires_at,
                    revoked_at: None,
                };
                self.keys.insert(id.clone(), Key { info, secret: secret_sha256.clone() });
                self.forget_ended(*at);
            }
            Event::KeyRevoked { id, at } => {
                if let Some(key) = self.keys.get_mut(id) {
                    key.info.revoked_at = Some(*at);
                }
                self.forget_ended(*at);
            }
        }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        None
    }

    fn tick(&self, _now: Timestamp) -> Vec<Event> {
        Vec::new()
    }

    fn ticked(&mut self, _now: Timestamp) {}

    fn resume(&mut self, _now: Timestamp) {}

    fn abandon(&self, _now: Timestamp) -> Vec<Event> {
        Vec::new()
    }

    fn adopt(&mut self, _stale: Self) {}
}

impl Decide<CreateKey> for AccessKeys {
    type Reply = KeyInfo;
    const NAME: &'static str = "key_create";

    fn decide(&self, now: Timestamp, command: &CreateKey) -> Result<Decision<Event, KeyInfo>, Refused> {
        check_name(&command.name)?;
        check_grant("projects", command.grant.projects.as_ref())?;
        check_grant("toolsets", command.grant.toolsets.as_ref())?;
        if let Some(expires_at) = command.expires_at
            && expires_at <= now
        {
            return Err(Refused::ExpiresInThePast { expires_at });
        }
        // Names and ids are one space, since `RevokeKey` takes either.
        if self.keys.contains_key(&KeyId::new(&*command.name))
            || self.live(now).any(|key| *key.name == *command.name)
        {
            return Err(Refused::NameTaken { name: command.name.clone() });
        }
        if self.keys.contains_key(&command.id)
            || command.name == command.id.as_str()
            || self.keys().any(|key| *key.name == *command.id.as_str())
        {
            return Err(Refused::IdTaken { id: command.id.clone() });
        }
        if self.live(now).count() >= Self::MAX_LIVE {
            return Err(Refused::TooMany);
        }
        let info = KeyInfo {
            id: command.id.clone(),
            name: command.name.as_str().into(),
            grant: Arc::new(command.grant.clone()),
            created_at: now,
            expires_at: command.expires_at,
            revoked_at: None,
        };
        let event = Event::KeyCreated {
            id: info.id.clone(),
            name: info.name.clone(),
            secret_sha256: command.secret.clone(),
            grant: info.grant.clone(),
            at: now,
            expires_at: info.expires_at,
        };
        Ok(Decision::event(event, info))
    }
}

impl Decide<RevokeKey> for AccessKeys {
    type Reply = KeyInfo;
    const NAME: &'static str = "key_revoke";

    fn decide(&self, now: Timestamp, command: &RevokeKey) -> Result<Decision<Event, KeyInfo>, Refused> {
        let Some(key) = self.find(&command.key, now) else {
            return Err(Refused::Unknown { key: command.key.clone() });
        };
        if key.revoked_at.is_some() {
            return Ok(Decision::unchanged(key.clone()));
        }
        let event = Event::KeyRevoked { id: key.id.clone(), at: now };
        Ok(Decision::event(event, KeyInfo { revoked_at: Some(now), ..key.clone() }))
    }
}

fn check_name(name: &str) -> Result<(), Refused> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '@' | '-');
    if name.is_empty() || name.len() > AccessKeys::MAX_NAME || !name.chars().all(allowed) {
        return Err(Refused::BadName { name: name.chars().take(AccessKeys::MAX_NAME).collect() });
    }
    if matches!(name, "local" | "owner") {
        return Err(Refused::ReservedName { name: name.to_owned() });
    }
    Ok(())
}

fn check_grant(
    what: &'static str,
    names: Option<&std::collections::BTreeSet<String>>,
) -> Result<(), Refused> {
    let Some(names) = names else { return Ok(()) };
    if names.is_empty() {
        return Err(Refused::EmptyGrant { what });
    }
    if names.len() > AccessKeys::MAX_GRANT {
        return Err(Refused::LargeGrant { what, count: names.len() });
    }
    match names.iter().map(String::len).find(|len| !(1..=AccessKeys::MAX_GRANT_NAME).contains(len)) {
        Some(len) => Err(Refused::BadGrantName { what, len }),
        None => Ok(()),
    }
}
