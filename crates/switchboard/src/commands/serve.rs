//! `switchboard serve`

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use switchboard_access::new_token;
use switchboard_exchange::{Clock as _, SystemClock};
use switchboard_server::{App, Limits, Listener, Options, Parts, ServeError, serve};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::cli;
use crate::config::{Config, Listen, LogFormat, Resolved, ServerFlags, friendly};
use crate::output::{self, Style, Table};
use crate::running::{ListensAt, Running};
use crate::system::System;
use crate::{Exit, Failure, holder};

/// The addresses that `--compat` adds, and the catalogues they show.
const COMPAT: [(u16, &str); 3] = [(5000, "a2amcp"), (8000, "promptyoself"), (4102, "agtos")];

/// Run the server until it is interrupted.
///
/// Prints where it listens and what to paste into clients. A first interrupt (SIGINT, SIGTERM) lets calls that are under
/// way end; a second one ends at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) flags: ServerFlags,
    /// Leave the session of whoever started this.
    #[arg(long, hide = true)]
    background: bool,
}

pub(crate) fn run(context: &cli::Context, arguments: &Args) -> Result<(), Failure> {
    let options = context.options()?;
    if arguments.background {
        // Fails for the leader of a group, which nobody can end by closing a terminal anyway.
        let _ = rustix::process::setsid();
    }
    start_logging(&options.config)?;
    for note in &options.notes {
        tracing::warn!("{note}");
    }
    allow_many_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let result = runtime.block_on(run_server(&options, arguments.background));
    // What still runs is nothing that anybody waits for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

async fn run_server(options: &Resolved, background: bool) -> Result<(), Failure> {
    let config = &options.config;
    let data_dir = config.data_dir()?;
    // Before anything is locked, so that a signal from here on leaves nothing behind.
    let stop = stop_on_signal()?;
    let system = System::open(config, &data_dir).await?;
    let served = open_and_serve(options, &system, &data_dir, background, stop).await;
    system.stop(config.limits.stop_timeout.unsigned()).await;
    served
}

async fn open_and_serve(
    options: &Resolved,
    system: &System,
    data_dir: &Path,
    background: bool,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let config = &options.config;
    refuse_open_doors(config, system)?;
    let token = new_token();
    let app = App::new(parts(system), server_options(config, &token));
    let (listeners, listens_at) = listen(options, &app)?;
    let running = Running {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        listeners: listens_at,
        token,
    };
    let serving = serve(&app, listeners, stop.clone());
    // The listeners accept from the moment they are bound: whoever reads the file is answered.
    let published = running.publish(data_dir).map_err(|error| {
        Failure::failed(format!("cannot write '{}': {error}", Running::path(data_dir).display()))
    })?;
    announce(&running, config, data_dir, background);
    let unpublish = async {
        stop.cancelled().await;
        // Commands that start now must not find a server that is about to be gone.
        drop(published);
    };
    let (served, ()) = tokio::join!(serving, unpublish);
    tracing::info!("stopped");
    served.map_err(|error| Failure::failed(error.to_string()))
}

/// What the doors need of the rest.
pub(crate) fn parts(system: &System) -> Parts {
    Parts {
        registry: system.registry.clone(),
        access: system.access.clone(),
        journal: system.journal.clone(),
        coordination: system.coordination.clone(),
        bus: system.bus.clone(),
        schedules: system.schedules.clone(),
        zone: system.zone.clone(),
    }
}

/// The doors' options, as configured.
pub(crate) fn server_options(config: &Config, token: &str) -> Options {
    let count = |number: u32| number as usize;
    let bytes = |size: crate::config::ByteSize| usize::try_from(size.bytes()).unwrap_or(usize::MAX);
    let limits = &config.limits;
    Options {
        allowed_hosts: config.allowed_hosts.clone(),
        allowed_origins: config.allowed_origins.clone(),
        owner_token: Some(token.into()),
        test_toolset: config.test_toolset,
        limits: Limits {
            body_bytes: bytes(limits.body_bytes),
            json_depth: count(limits.json_depth),
            batch: count(limits.batch),
            headers: count(limits.headers),
            header_bytes: bytes(limits.header_bytes),
            header_timeout: limits.header_timeout.unsigned(),
            body_timeout: limits.body_timeout.unsigned(),
            connections: count(limits.connections),
            requests: count(limits.requests),
            calls: count(limits.calls),
            sessions: count(limits.sessions),
            session_idle: limits.session_idle.unsigned(),
            sse_sessions: count(limits.sse_sessions),
            watchers: count(limits.watchers),
            stop_timeout: limits.stop_timeout.unsigned(),
        },
    }
}

fn refuse_open_doors(config: &Config, system: &System) -> Result<(), Failure> {
    let open = config.listen.iter().find(|listen| !listen.address.ip().is_loopback());
    match open {
        Some(listen) if !system.access.has_live_keys(SystemClock.now()) => Err(Failure::config(format!(
            "{} can be reached from other machines, and there is no key to tell who may come in",
            listen.address
        ))
        .hint("make one with `switchboard key create NAME`, then start the server again")),
        _ => Ok(()),
    }
}

fn listen(options: &Resolved, app: &App) -> Result<(Vec<Listener>, Vec<ListensAt>), Failure> {
    let config = &options.config;
    let mut wanted = config.listen.clone();
    if config.compat {
        wanted.extend(COMPAT.map(|(port, view)| Listen::loopback(port, view)));
    }
    if wanted.is_empty() {
        return Err(Failure::config("there is no address to listen on")
            .hint("name one with `--listen 127.0.0.1:4100`"));
    }
    // The second default address is a convenience for clients of a replaced system: its port is often taken.
    let dispensable =
        options.is_default("listen").then(|| Config::default().listen.into_iter().nth(1)).flatten();
    let mut listeners = Vec::new();
    let mut listens_at = Vec::new();
    for listen in wanted {
        let view = app.view(&listen.view).map_err(|error| {
            Failure::config(format!("cannot listen on {listen}: {error}"))
                .hint("`switchboard tools` lists the toolsets; join several with '+'")
        })?;
        match Listener::bind(listen.address) {
            Ok(listener) => {
                listens_at.push(ListensAt { address: listener.address(), toolset: listen.view });
                let listener = listener.showing(view);
                listeners.push(if config.require_key { listener.requiring_key() } else { listener });
            }
            Err(error) => {
                let failure = not_listening(listen.address, &error);
                if dispensable.as_ref() != Some(&listen) {
                    return Err(failure);
                }
                tracing::warn!("{failure}; going on without this address");
            }
        }
    }
    Ok((listeners, listens_at))
}

fn not_listening(address: SocketAddr, error: &ServeError) -> Failure {
    match error {
        ServeError::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            let holder = holder::of(address).unwrap_or_else(|| "another process".to_owned());
            Failure::new(Exit::InUse, format!("cannot listen on {address}: it is in use by {holder}")).hint(
                "end that process, or listen elsewhere, as in `switchboard serve --listen 127.0.0.1:4200`",
            )
        }
        error => Failure::failed(error.to_string()).hint("name another address with `--listen ADDRESS`"),
    }
}

/// Cancelled by the first signal to end; the second ends the process.
pub(crate) fn stop_on_signal() -> Result<CancellationToken, Failure> {
    let listen =
        |kind| signal(kind).map_err(|error| Failure::failed(format!("cannot wait for signals: {error}")));
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut hangup = listen(SignalKind::hangup())?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hangup.recv() => {}
            }
            if stopped.is_cancelled() {
                tracing::warn!("ended at once by a second signal");
                std::process::exit(130);
            }
            tracing::info!(
                "stopping: calls that are under way are answered first; a second signal ends at once"
            );
            stopped.cancel();
        }
    });
    Ok(stop)
}

pub(crate) fn start_logging(config: &Config) -> Result<(), Failure> {
    let level = config.log.level.as_str();
    // The library behind MCP logs what this program reports better itself.
    let directives =
        if level.contains(['=', ',']) { level.to_owned() } else { format!("{level},rmcp=error") };
    let filter = EnvFilter::try_new(directives)
        .map_err(|error| Failure::config(format!("option 'log.level' cannot be used: {error}")))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(Style::stderr().is_coloured());
    match config.log.format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}

/// Every connection is an open file, and the usual limit is lower than that of connections.
fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused, the usual limit holds.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

fn announce(running: &Running, config: &Config, data_dir: &Path, background: bool) {
    for listener in &running.listeners {
        tracing::info!(address = %listener.address, shows = %listener.toolset, "listening");
    }
    if background {
        return;
    }
    let style = Style::stderr();
    let mut table = Table::default();
    for listener in &running.listeners {
        let shows = match listener.toolset.as_str() {
            "all" => "all tools".to_owned(),
            view => format!("the tools of {view}"),
        };
        table.row([format!("  {}", listener.url()), format!("/mcp shows {shows}")]);
    }
    table.row(["  data".to_owned(), friendly(data_dir)]);
    output::note(format_args!(
        "{}\n{}",
        style.bold(format_args!("switchboard {} runs (pid {})", running.version, running.pid)),
        table.to_string().trim_end()
    ));
    let main = running.listeners.iter().find(|listener| listener.toolset != "a2amcp");
    if let Some(listener) = main {
        let asks_for_key = config.require_key || !listener.address.ip().is_loopback();
        output::note(connect_a_client(&listener.url(), asks_for_key, style));
    }
}

/// The lines to paste into clients.
pub(crate) fn connect_a_client(url: &str, asks_for_key: bool, style: Style) -> String {
    let url = format!("{url}/mcp/coordination");
    let program =
        std::env::current_exe().map_or_else(|_| "switchboard".into(), |path| path.display().to_string());
    let (claude, cursor, codex) = if asks_for_key {
        (
            r#" --header "Authorization: Bearer KEY""#,
            r#", "headers": {"Authorization": "Bearer KEY"}"#,
            "\n      bearer_token_env_var = \"SWITCHBOARD_KEY\"",
        )
    } else {
        ("", "", "")
    };
    let title = |name: &str, place: &str| format!("  {} {}", style.bold(name), style.dim(place));
    format!(
        "\nConnect a client:\n\
         {}\n      claude mcp add --transport http switchboard {url}{claude}\n\
         {}\n      {{\"mcpServers\": {{\"switchboard\": {{\"url\": \"{url}\"{cursor}}}}}}}\n\
         {}\n      [mcp_servers.switchboard]\n      url = \"{url}\"{codex}\n\
         {}\n      {{\"mcpServers\": {{\"switchboard\": {{\"command\": \"{program}\", \"args\": [\"mcp\"]}}}}}}\n",
        title("Claude Code", "run"),
        title("Cursor", "put into ~/.cursor/mcp.json"),
        title("Codex", "put into ~/.codex/config.toml"),
        title("Claude Desktop", "put into claude_desktop_config.json"),
    )
}
