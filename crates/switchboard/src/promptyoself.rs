//! PromptYoSelf, as configured.

use std::time::Duration;

use switchboard_tools::{DefaultAgents, Executor, PromptYoSelfOptions, Variables};

use crate::config::{Config, JournalUrl, Resolved, Source};

/// The pace at which failed prompts are tried again if what is configured is no span of time.
const PACE: Duration = Duration::from_mins(1);

/// The kinds of targets that are delivered by a pass only.
pub(crate) fn by_pass(config: &Config) -> &'static [&'static str] {
    if config.promptyoself.executor_autostart { &[] } else { &["letta"] }
}

/// How often a prompt that failed is tried again.
pub(crate) fn retry_pace(config: &Config) -> Duration {
    config.promptyoself.executor_interval.map_or(PACE, crate::config::Duration::unsigned)
}

/// Where Letta is, and what it asks for.
pub(crate) fn letta_options(config: &Config) -> switchboard_letta::Options {
    let config = &config.promptyoself;
    switchboard_letta::Options {
        base_url: config.letta_base_url.as_str().to_owned(),
        api_key: config.letta_api_key.clone(),
        server_password: config.letta_server_password.clone(),
        project: config.letta_project.clone(),
        ..switchboard_letta::Options::default()
    }
}

/// What this process alone says about whose prompts they are. What the file says is not among it: the server knows that, and
/// where it is told something else by its own variables, these count for it.
pub(crate) fn variables(options: &Resolved) -> Variables {
    let mut variables = Variables::default();
    for (spec, value, source) in options.settings() {
        let (Source::Environment(_) | Source::Flag(_), Some(value)) = (source, value.as_str()) else {
            continue;
        };
        for name in &spec.also {
            variables.set(name, value);
        }
    }
    variables
}

/// What the tools are made with.
pub(crate) fn options(config: &Config) -> PromptYoSelfOptions {
    let storage = match config.journal {
        // Without a place for data nothing runs; the tools can be listed all the same.
        JournalUrl::Sqlite => config
            .data_dir()
            .map_or_else(|_| "journal.db".to_owned(), |dir| dir.join("journal.db").display().to_string()),
        JournalUrl::Memory => config.journal.to_string(),
    };
    let config = &config.promptyoself;
    let agent = |id: &Option<String>| id.clone().unwrap_or_default();
    PromptYoSelfOptions {
        agents: DefaultAgents {
            promptyoself_default: agent(&config.default_agent_id),
            letta: agent(&config.letta_agent_id),
            letta_default: agent(&config.letta_default_agent_id),
            single_agent_fallback: config.single_agent_fallback,
        },
        executor: Executor {
            is_on: config.executor_autostart,
            interval_seconds: config.executor_interval.map(|interval| interval.unsigned().as_secs()),
        },
        storage,
    }
}
