//! `switchboard mcp`

use std::io::{self, Write as _};

use switchboard_server::{App, serve_stdio};
use switchboard_tools::Variables;
use tokio_util::sync::CancellationToken;

use crate::background::Launch;
use crate::bridge::{self, Upstream};
use crate::cli::{self, block_on};
use crate::commands::serve;
use crate::config::ServerFlags;
use crate::system::System;
use crate::{Failure, output, promptyoself};

/// Speak MCP on standard input and output.
///
/// A small bridge to the server that runs on the data directory, which is started in the background if there is none; or,
/// with `--url` and `--key`, to one elsewhere. It holds no state, and ends as soon as its standard input does.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tools to show: `all`, a toolset, or several joined by '+'.
    #[arg(long, value_name = "VIEW", default_value = "all")]
    toolset: String,
    /// Serve the data directory in this process, without a server. Nobody else can use it meanwhile.
    #[arg(long)]
    standalone: bool,
    #[command(flatten)]
    pub(crate) flags: ServerFlags,
}

pub(crate) fn run(context: &cli::Context, arguments: &Args) -> Result<(), Failure> {
    let options = context.options()?;
    let config = &options.config;
    if arguments.standalone {
        return block_on(async { Ok(standalone(config, &arguments.toolset).await) }).and_then(end);
    }
    let upstream = match &config.client.url {
        Some(url) => Upstream::Elsewhere { url: url.clone(), key: config.client.key.clone() },
        None => Upstream::Here(Launch::new(&config.data_dir()?, context.inputs())),
    };
    let variables = if matches!(upstream, Upstream::Here(_)) && shows_promptyoself(&arguments.toolset) {
        promptyoself::variables(&options)
    } else {
        Variables::default()
    };
    block_on(async { Ok(bridge::run(upstream, &arguments.toolset, &variables).await) }).and_then(end)
}

/// Whether the tools that ask for variables are among those of `view`.
fn shows_promptyoself(view: &str) -> bool {
    view.split('+').any(|toolset| toolset == "all" || toolset == switchboard_tools::PROMPTYOSELF)
}

/// Ends the process: a thread that reads standard input cannot be told to stop.
fn end(result: Result<(), Failure>) -> Result<(), Failure> {
    let code = match &result {
        Ok(()) => 0,
        Err(failure) => {
            output::failure(failure);
            failure.exit() as i32
        }
    };
    let _ = io::stdout().flush();
    std::process::exit(code);
}

async fn standalone(config: &crate::config::Config, view: &str) -> Result<(), Failure> {
    serve::start_logging(config)?;
    let stop = serve::stop_on_signal()?;
    let system = System::open(config, &config.data_dir()?).await?;
    let app =
        App::new(serve::parts(&system), serve::server_options(config, &switchboard_access::new_token()));
    let served = serve_stdio(&app, view, CancellationToken::clone(&stop)).await;
    system.stop(config.limits.stop_timeout.unsigned()).await;
    served.map_err(|error| Failure::failed(error.to_string()))
}
