//! `switchboard key`

use ::http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use switchboard_access::{Grant, KeyInfo};
use switchboard_exchange::{Clock as _, CommandError, SystemClock};

use crate::cli::{self, block_on, usage};
use crate::config::{Config, Duration};
use crate::failure::with_causes;
use crate::http::{Http, escape};
use crate::output;
use crate::running::{self, Running};
use crate::system::System;
use crate::{Exit, Failure};

/// Make, list and end keys.
///
/// A key is what a client sends as `Authorization: Bearer KEY`. Works with the running server, or without one on the data
/// directory itself.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a key. It is shown once: only a hash of it is kept.
    Create {
        /// What you call it, such as the machine or the person that gets it.
        name: String,
        /// Valid for this project only. Repeatable. Default: all.
        #[arg(long = "project", value_name = "PROJECT")]
        projects: Vec<String>,
        /// Valid for this toolset only. Repeatable. Default: all.
        #[arg(long = "toolset", value_name = "TOOLSET")]
        toolsets: Vec<String>,
        /// May make and end keys, too.
        #[arg(long)]
        admin: bool,
        /// Valid for so long, such as `30m`, `720h` or `90d`. Default: until it is revoked.
        #[arg(long, value_name = "DURATION")]
        expires: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the keys. Their secrets are known to nobody here.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
        /// Also those that are revoked or expired.
        #[arg(long)]
        all: bool,
    },
    /// End a key: it is refused from then on.
    Revoke {
        /// Its name or id.
        key: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(context: &cli::Context, arguments: Args) -> Result<(), Failure> {
    let config = context.options()?.config;
    block_on(async {
        let keys = Keys::open(&config).await?;
        let done = act(&keys, arguments.command).await;
        keys.close(&config).await;
        done
    })
}

async fn act(keys: &Keys, command: Command) -> Result<(), Failure> {
    match command {
        Command::Create { name, projects, toolsets, admin, expires, json } => {
            let list = |names: Vec<String>| (!names.is_empty()).then(|| names.into_iter().collect());
            check_toolsets(&toolsets)?;
            let grant = Grant { projects: list(projects), toolsets: list(toolsets), admin };
            let expires_at = expires.as_deref().map(expiry).transpose()?;
            let (key, bearer) = keys.create(&name, grant, expires_at).await?;
            if json {
                output::json(&json!({ "key": key, "bearer": bearer }));
            } else {
                output::note(format_args!(
                    "Key '{}' ({}). This is the only time it is shown; clients send it as `Authorization: Bearer KEY`.",
                    key.name, key.id
                ));
                output::line(bearer);
            }
        }
        Command::List { json, all } => {
            let now = SystemClock.now();
            let list: Vec<_> = keys.list().await?.into_iter().filter(|key| all || key.is_live(now)).collect();
            if json { output::json(&list) } else { show(&list, now) }
        }
        Command::Revoke { key, json } => {
            let key = keys.revoke(&key).await?;
            if json {
                output::json(&key);
            } else {
                output::line(format_args!("Key '{}' ({}) is refused from now on.", key.name, key.id));
            }
        }
    }
    Ok(())
}

fn show(keys: &[KeyInfo], now: Timestamp) {
    if keys.is_empty() {
        output::note("There are no keys. `switchboard key create NAME` makes one.");
        return;
    }
    let mut table = output::Table::default();
    table.row(["ID", "NAME", "STATE", "VALID FOR", "MADE"].map(str::to_owned));
    for key in keys {
        let state = match (key.revoked_at, key.expires_at) {
            (Some(at), _) => format!("revoked {at:.0}"),
            (None, Some(at)) if at <= now => format!("expired {at:.0}"),
            (None, Some(at)) => format!("live until {at:.0}"),
            (None, None) => "live".to_owned(),
        };
        let names = |what: &str, names: &Option<std::collections::BTreeSet<String>>| {
            names
                .as_ref()
                .map(|names| format!("{what} {}", names.iter().cloned().collect::<Vec<_>>().join(", ")))
        };
        let mut valid: Vec<_> =
            [names("projects", &key.grant.projects), names("toolsets", &key.grant.toolsets)]
                .into_iter()
                .flatten()
                .collect();
        if valid.is_empty() {
            valid.push("everything".to_owned());
        }
        if key.grant.admin {
            valid.push("keys".to_owned());
        }
        table.row([
            key.id.to_string(),
            key.name.to_string(),
            state,
            valid.join("; "),
            format!("{:.0}", key.created_at),
        ]);
    }
    output::text(table);
}

fn check_toolsets(names: &[String]) -> Result<(), Failure> {
    let registry = System::tools()?;
    for name in names {
        let known = || registry.toolsets().map(|set| set.name).collect::<Vec<_>>().join(", ");
        if !registry.toolsets().any(|set| set.name == *name) {
            return Err(usage(format!("there is no toolset '{name}'; there are: {}", known())));
        }
    }
    Ok(())
}

fn expiry(text: &str) -> Result<Timestamp, Failure> {
    let wrong = |why: String| usage(format!("--expires: {why}"));
    let days = text.strip_suffix('d').and_then(|days| days.parse::<i64>().ok());
    let span = match days {
        Some(days) if (1..=36_500).contains(&days) => jiff::SignedDuration::from_hours(days * 24),
        _ => text.parse::<Duration>().map_err(wrong)?.signed(),
    };
    SystemClock.now().checked_add(span).map_err(|error| wrong(error.to_string()))
}

/// Whoever keeps the keys: the running server, or this process on the data directory.
#[derive(Debug)]
enum Keys {
    Server(Box<Http>),
    Here(Box<System>),
}

impl Keys {
    async fn open(config: &Config) -> Result<Self, Failure> {
        if config.client.url.is_some() {
            return running::server(config).map(Box::new).map(Self::Server);
        }
        let data_dir = config.data_dir()?;
        if let Some(running) = Running::find(&data_dir)? {
            let http = running.http()?;
            // What a killed server left behind may name an address that nobody answers.
            if http.json(Method::GET, "/api/health", None).await.is_ok() {
                return Ok(Self::Server(Box::new(http)));
            }
        }
        System::open(config, &data_dir).await.map(|system| Self::Here(Box::new(system)))
    }

    async fn close(self, config: &Config) {
        if let Self::Here(system) = self {
            system.stop(config.limits.stop_timeout.unsigned()).await;
        }
    }

    async fn create(
        &self,
        name: &str,
        grant: Grant,
        expires_at: Option<Timestamp>,
    ) -> Result<(KeyInfo, String), Failure> {
        match self {
            Self::Here(system) => system.access.create(name, grant, expires_at).await.map_err(refused),
            Self::Server(http) => {
                let mut wish = json!({ "name": name, "grant": grant });
                if let Some(at) = expires_at {
                    wish["expires_at"] = json!(at);
                }
                let answer = http.ask(Method::POST, "/api/keys", Some(&wish)).await?;
                let bearer = answer["bearer"].as_str().unwrap_or_default().to_owned();
                Ok((understand(&answer["key"])?, bearer))
            }
        }
    }

    async fn list(&self) -> Result<Vec<KeyInfo>, Failure> {
        match self {
            Self::Here(system) => system.access.list().await.map_err(refused),
            Self::Server(http) => {
                let answer = http.ask(Method::GET, "/api/keys", None).await?;
                understand(answer.get("keys").unwrap_or(&answer))
            }
        }
    }

    async fn revoke(&self, key: &str) -> Result<KeyInfo, Failure> {
        match self {
            Self::Here(system) => system.access.revoke(key).await.map_err(refused),
            Self::Server(http) => {
                let answer = http.ask(Method::DELETE, &format!("/api/keys/{}", escape(key)), None).await?;
                understand(answer.get("key").unwrap_or(&answer))
            }
        }
    }
}

fn understand<T: serde::de::DeserializeOwned>(answer: &Value) -> Result<T, Failure> {
    T::deserialize(answer).map_err(|error| {
        Failure::failed(format!("the server's answer cannot be understood: {error}"))
            .hint("the server may be of another version: `switchboard status` tells")
    })
}

fn refused(error: CommandError<switchboard_access::Refused>) -> Failure {
    match error {
        CommandError::Rejected(refused) => Failure::new(Exit::Failed, refused.to_string())
            .hint("`switchboard key list --all` shows all keys"),
        error => Failure::failed(with_causes(&error)),
    }
}
