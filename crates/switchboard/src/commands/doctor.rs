//! `switchboard doctor`

mod clients;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ::http::Method;
use serde::Serialize;
use switchboard_journal::{SqliteJournal, SqliteOptions};

use crate::cli::{self, block_on};
use crate::config::{Config, JournalUrl, Resolved};
use crate::failure::with_causes;
use crate::output::{self, Style};
use crate::running::{ListensAt, Running};
use crate::{Failure, background, holder};

/// Below so many bytes a disk is as good as full, and below so many it will be soon.
const DISK_FULL: u64 = 100 << 20;
const DISK_LOW: u64 = 1 << 30;

/// Look for what is wrong, and say how to mend it.
///
/// Changes nothing: reads the options, the data directory, the running server, and the files in which clients keep their
/// MCP servers. Ends with 1 if something is wrong.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// What was found out about one thing.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Finding {
    what: String,
    verdict: Verdict,
    text: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Fine,
    /// Worth knowing.
    Note,
    Wrong,
}

impl Finding {
    fn new(what: &str, verdict: Verdict, text: impl Into<String>, fix: Option<String>) -> Self {
        Self { what: what.to_owned(), verdict, text: text.into(), fix }
    }

    pub(crate) fn fine(what: &str, text: impl Into<String>) -> Self {
        Self::new(what, Verdict::Fine, text, None)
    }

    pub(crate) fn note(what: &str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(what, Verdict::Note, text, Some(fix.into()))
    }

    fn wrong(what: &str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(what, Verdict::Wrong, text, Some(fix.into()))
    }

    fn of(what: &str, failure: &Failure) -> Self {
        Self::new(what, Verdict::Wrong, failure.to_string(), failure.what_to_do().map(str::to_owned))
    }
}

pub(crate) fn run(context: &cli::Context, arguments: &Args) -> Result<(), Failure> {
    let findings = block_on(async { Ok(examine(context).await) })?;
    if arguments.json {
        output::json(&findings);
    } else {
        show(&findings);
    }
    match findings.iter().filter(|finding| finding.verdict == Verdict::Wrong).count() {
        0 => Ok(()),
        1 => Err(Failure::failed("one thing is wrong")),
        count => Err(Failure::failed(format!("{count} things are wrong"))),
    }
}

fn show(findings: &[Finding]) {
    let style = Style::stdout();
    for finding in findings {
        let mark = match finding.verdict {
            Verdict::Fine => style.green("ok   "),
            Verdict::Note => style.yellow("note "),
            Verdict::Wrong => style.red("wrong"),
        };
        output::line(format_args!("{mark} {:<15} {}", finding.what, finding.text));
        if let Some(fix) = &finding.fix {
            output::line(format_args!("{:21} {} {fix}", "", style.bold("→")));
        }
    }
}

async fn examine(context: &cli::Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    let options = match context.options() {
        Ok(options) => options,
        // Nothing else can be looked for: it is not known where.
        Err(failure) => return vec![Finding::of("options", &failure)],
    };
    findings.push(of_options(&options));
    let config = &options.config;
    let data_dir = match config.data_dir() {
        Ok(data_dir) => data_dir,
        Err(failure) => {
            findings.push(Finding::of("data directory", &failure));
            return findings;
        }
    };
    findings.extend(of_directory(&data_dir));
    match background::find(&data_dir).await {
        Ok(Some(running)) => {
            findings.extend(of_server(&running).await);
            findings.extend(clients::examine(running.listeners.first().map(ListensAt::url).as_deref()));
        }
        Ok(None) => {
            findings.push(Finding::note("server", "none runs on the data directory", "switchboard serve"));
            findings.extend(of_journal(config, &data_dir));
            findings.extend(of_addresses(config));
            findings.extend(clients::examine(None));
        }
        Err(failure) => findings.push(Finding::of("server", &failure)),
    }
    findings
}

fn of_options(options: &Resolved) -> Finding {
    let set = options.settings().filter(|(spec, ..)| !options.is_default(&spec.key)).count();
    match &options.notes[..] {
        [] => Finding::fine("options", format!("{set} set, all others have their default")),
        notes => Finding::note("options", notes.join("; "), "switchboard config show"),
    }
}

fn of_directory(data_dir: &Path) -> Vec<Finding> {
    let what = "data directory";
    let shown = data_dir.display();
    let Ok(metadata) = data_dir.metadata() else {
        return vec![Finding::fine(what, format!("{shown} does not exist yet; the server makes it"))];
    };
    let mut findings = Vec::new();
    let mode = metadata.permissions().mode() & 0o777;
    if rustix::fs::access(data_dir, rustix::fs::Access::WRITE_OK).is_err() {
        let fix = format!("chown -R \"$USER\" '{shown}'");
        findings.push(Finding::wrong(what, format!("{shown} cannot be written by this user"), fix));
    } else if mode & 0o077 != 0 {
        let text = format!("{shown} is open to other users (mode {mode:o}): it holds what agents wrote");
        findings.push(Finding::wrong(what, text, format!("chmod 700 '{shown}'")));
    } else {
        findings.push(Finding::fine(what, format!("{shown}, for this user alone")));
    }
    if let Ok(disk) = rustix::fs::statvfs(data_dir) {
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let text = format!("{} MiB are free", free >> 20);
        findings.push(match free {
            0..DISK_FULL => Finding::wrong("disk", text, format!("make room; `df -h '{shown}'`")),
            DISK_FULL..DISK_LOW => Finding::note("disk", text, "make room before it is full"),
            _ => Finding::fine("disk", text),
        });
    }
    findings
}

async fn of_server(running: &Running) -> Vec<Finding> {
    let mut findings = Vec::new();
    let answer = match running.http() {
        Ok(http) => http.json(Method::GET, "/api/health", None).await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    match answer {
        Err(failure) => findings.push(Finding::of("server", &failure)),
        Ok((_, health)) => {
            let text = format!("pid {}, version {}", running.pid, running.version);
            let journal = &health["journal"];
            findings.push(match health["status"].as_str() {
                Some("ok") => Finding::fine("server", text),
                status => {
                    let text = format!("{text}: {}", status.unwrap_or("its answer cannot be understood"));
                    Finding::wrong("server", text, "its log says more; a restart may help")
                }
            });
            findings.push(match journal["error"].as_str() {
                None => Finding::fine("journal", "reads and takes writes"),
                Some(error) => {
                    Finding::wrong("journal", error, "mend what it says; the server need not be restarted")
                }
            });
        }
    }
    if running.version != env!("CARGO_PKG_VERSION") {
        let text =
            format!("this program is version {}, the server {}", env!("CARGO_PKG_VERSION"), running.version);
        findings.push(Finding::note("version", text, format!("kill {} && switchboard serve", running.pid)));
    }
    findings
}

fn of_journal(config: &Config, data_dir: &Path) -> Option<Finding> {
    let file = data_dir.join("journal.db");
    if config.journal == JournalUrl::Memory || !file.exists() {
        return None;
    }
    let what = "journal";
    // Opening it checks its pages, and closes it again at once.
    Some(match SqliteJournal::open(data_dir, &SqliteOptions::default()) {
        Ok(_) => {
            let size = file.metadata().map_or(0, |file| file.len());
            Finding::fine(what, format!("{} is whole ({} KiB)", file.display(), size >> 10))
        }
        Err(error) => Finding::new(what, Verdict::Wrong, with_causes(&error), None),
    })
}

fn of_addresses(config: &Config) -> Vec<Finding> {
    let of_address = |listen: &crate::config::Listen| {
        let address = listen.address;
        match TcpListener::bind(address) {
            Ok(_) => Finding::fine("address", format!("{address} is free")),
            Err(error) => {
                let holder = holder::of(address).map(|holder| format!(", by {holder}")).unwrap_or_default();
                let text = format!("{address} cannot be listened on: {error}{holder}");
                Finding::wrong(
                    "address",
                    text,
                    "end that process, or `switchboard serve --listen 127.0.0.1:4200`",
                )
            }
        }
    };
    config.listen.iter().map(of_address).collect()
}
