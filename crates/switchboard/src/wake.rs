//! Wake-up calls: which targets they have, and what they keep.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use switchboard_access::new_token;
use switchboard_bus::Bus;
use switchboard_coordination::Coordination;
use switchboard_exchange::{Exchange, Options, SystemClock};
use switchboard_journal::{Journal, Sharing};
use switchboard_letta::Letta;
use switchboard_schedule::{NodeId, Schedules, Settings, Target, Targets, Zone};
use switchboard_targets::{
    BusTarget, InboxTarget, LettaTarget, ToolTarget, Webhook, WebhookOptions, read_secret, spelled_secret,
};

use crate::config::Config;
use crate::{Failure, promptyoself};

/// The file in the data directory that holds the key of the signatures of webhooks.
const SECRET_FILE: &str = "webhook-secret";

/// Schedules, and what they need to call.
#[derive(Debug, Clone)]
pub(crate) struct Wake {
    pub(crate) schedules: Schedules,
    /// On whose clock the times of schedules are that name no zone.
    pub(crate) zone: Zone,
    pub(crate) letta: Letta,
    /// Is to learn of the tools once they are there.
    pub(crate) tool_target: ToolTarget,
}

impl Wake {
    pub(crate) fn new(
        config: &Config,
        journal: &Arc<dyn Journal>,
        coordination: &Coordination,
        bus: &Bus,
        webhook_secret: &[u8],
    ) -> Result<Self, Failure> {
        let letta = Letta::new(promptyoself::letta_options(config))
            .map_err(|error| Failure::config(format!("Letta cannot be reached: {error}")))?;
        let tool_target = ToolTarget::default();
        let webhook = WebhookOptions {
            allow_private: config.schedule.webhook_private,
            allowed_hosts: config.schedule.webhook_hosts.clone(),
            timeout: config.schedule.webhook_timeout.unsigned(),
            ..WebhookOptions::new(webhook_secret)
        };
        let targets: [Arc<dyn Target>; 5] = [
            Arc::new(BusTarget::new(bus.clone())),
            Arc::new(InboxTarget::new(coordination.clone())),
            Arc::new(LettaTarget::new(letta.clone()).retried_every(promptyoself::retry_pace(config))),
            Arc::new(Webhook::new(webhook)),
            Arc::new(tool_target.clone()),
        ];
        let targets = Targets::new(targets);
        let settings = Settings {
            keep_ms: i64::try_from(config.schedule.history.signed().as_millis()).unwrap_or(i64::MAX),
            shared: journal.sharing() == Sharing::Shared,
            ..Settings::of(&targets, promptyoself::by_pass(config))
        };
        let exchange = Exchange::new(journal.clone(), Arc::new(SystemClock), settings, Options::default());
        // Another one after every start, so that nobody takes what a former life had claimed for its own.
        let node = NodeId(new_token().chars().take(8).collect::<String>().into());
        let zone = config.schedule.time_zone.as_ref().map_or_else(Zone::local, |zone| zone.0.clone());
        Ok(Self { schedules: Schedules::new(exchange, targets, node), zone, letta, tool_target })
    }
}

/// The key of the signatures of webhooks: made once, and kept in the data directory for its owner alone, in the spelling in
/// which receivers are given it.
pub(crate) fn webhook_secret(data_dir: &Path) -> Result<Vec<u8>, Failure> {
    let path = data_dir.join(SECRET_FILE);
    let unusable =
        |error: std::io::Error| Failure::failed(format!("'{}' cannot be used: {error}", path.display()));
    let mut options = std::fs::OpenOptions::new();
    match options.read(true).open(&path) {
        Ok(mut file) => {
            let mut spelled = String::new();
            file.read_to_string(&mut spelled).map_err(unusable)?;
            read_secret(&spelled).ok_or_else(|| {
                Failure::failed(format!(
                    "'{}' holds no key for signing webhooks: one is written as `whsec_` and base64",
                    path.display()
                ))
                .hint("remove it for a new key, which receivers then need to know")
            })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let secret = new_token().into_bytes();
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&path).map_err(unusable)?;
            writeln!(file, "{}", spelled_secret(&secret)).and_then(|()| file.sync_all()).map_err(unusable)?;
            Ok(secret)
        }
        Err(error) => Err(unusable(error)),
    }
}
