//! `switchboard tools`

use serde_json::json;
use switchboard_tools::{Registry, Tool, View, estimated_tokens};

use crate::output::{self, Style};
use crate::system::System;
use crate::{Failure, cli};

/// List the tools, and what listing them costs an agent.
///
/// An agent that connects is given the definition of every tool it may call, before it has done anything. The number of
/// tokens is an estimate: a quarter of the bytes of the definitions.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these: a toolset, or several joined by '+'.
    #[arg(long, value_name = "VIEW", default_value = "all")]
    toolset: String,
    /// As JSON, with the whole definitions.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(_context: &cli::Context, arguments: &Args) -> Result<(), Failure> {
    let registry = cli::block_on(async { System::tools() })?;
    let view = registry.view(&arguments.toolset).map_err(|error| cli::usage(error.to_string()))?;
    if arguments.json {
        output::json(&as_json(&registry, &view));
    } else {
        show(&registry, &view);
    }
    Ok(())
}

fn as_json(registry: &Registry, view: &View) -> serde_json::Value {
    let toolsets = registry.toolsets().filter(|set| view.shows(set.name)).map(|set| {
        let tools: Vec<_> = of(registry, view, set.name).collect();
        json!({
            "toolset": set.name,
            "summary": set.summary,
            "estimated_tokens": tools.iter().map(|tool| estimated_tokens(tool)).sum::<usize>(),
            "tools": tools.iter().map(|tool| &tool.definition).collect::<Vec<_>>(),
        })
    });
    toolsets.collect()
}

fn show(registry: &Registry, view: &View) {
    let style = Style::stdout();
    let mut all = (0, 0);
    for set in registry.toolsets().filter(|set| view.shows(set.name)) {
        let cost: usize = of(registry, view, set.name).map(estimated_tokens).sum();
        let count = of(registry, view, set.name).count();
        all = (all.0 + count, all.1 + cost);
        output::line(format_args!(
            "{}  {}\n{}",
            style.bold(set.name),
            style.dim(format_args!("{count} tools, about {cost} tokens, at /mcp/{}", set.name)),
            set.summary
        ));
        let mut table = output::Table::default();
        for tool in of(registry, view, set.name) {
            let first =
                tool.definition.description.split_inclusive(". ").next().unwrap_or_default().trim_end();
            table.row([
                format!("  {}", tool.definition.name),
                format!("{:>5}", estimated_tokens(tool)),
                first.to_owned(),
            ]);
        }
        output::line(table);
    }
    output::line(format_args!(
        "{} tools, about {} tokens together. An agent pays for what its URL shows; a token is taken as 4 bytes \
          of definition, so this is an estimate.",
        all.0, all.1
    ));
}

fn of<'a>(registry: &'a Registry, view: &'a View, toolset: &'a str) -> impl Iterator<Item = &'a Tool> {
    registry.tools(view).filter(move |tool| tool.toolset == toolset)
}
