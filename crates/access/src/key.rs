//! The parts of a key: its id, its secret, and what is kept of it.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use jiff::Timestamp;
use rand::Rng as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::Grant;

/// What every key begins with, so that people and secret scanners recognise one.
const PREFIX: &str = "sb_";

/// The public part of a key: eight characters `0-9 a-f`. Says which key is meant without giving it away.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(Arc<str>);

impl KeyId {
    /// An id with this text.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn random() -> Self {
        Self(hex(&random::<4>()).into())
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The SHA-256 of a key's secret, in hexadecimal: all that is kept of it. The secret has 256 random bits, so that a hash
/// without salt and without cost is enough.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretHash(Box<str>);

impl SecretHash {
    /// The hash of `secret`.
    pub fn of(secret: &str) -> Self {
        Self(hex(&Sha256::digest(secret.as_bytes())).into())
    }

    /// Whether this is the hash of `secret`, in a time that does not tell how much of it is right.
    pub fn matches(&self, secret: &str) -> bool {
        Self::of(secret).0.as_bytes().ct_eq(self.0.as_bytes()).into()
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// What may be known of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInfo {
    /// Its public part.
    pub id: KeyId,
    /// What its owner calls it; unique among live keys.
    pub name: Arc<str>,
    /// What its holder may use.
    pub grant: Arc<Grant>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused; none for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Since when it is refused because its owner said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

impl KeyInfo {
    /// Whether it opens the door at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expiry| now < expiry)
    }
}

/// How many characters [`new_token`] gives.
pub const TOKEN_CHARS: usize = 64;

/// 256 random bits in hexadecimal: the secret of a key, or the token of a running server.
pub fn new_token() -> String {
    hex(&random::<32>())
}

/// Whether two tokens are the same, in a time that does not tell how much of one is right.
pub fn token_matches(token: &str, given: &str) -> bool {
    token.as_bytes().ct_eq(given.as_bytes()).into()
}

/// What the holder of the key sends as bearer: `sb_<id>_<secret>`.
pub(crate) fn bearer(id: &KeyId, secret: &str) -> String {
    format!("{PREFIX}{id}_{secret}")
}

/// The id and the secret of a bearer, if it looks like a key.
pub(crate) fn split_bearer(bearer: &str) -> Option<(&str, &str)> {
    bearer.strip_prefix(PREFIX)?.split_once('_')
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
