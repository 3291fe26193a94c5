//! `switchboard config`

use serde_json::{Value, json};

use crate::config::config_file;
use crate::{Failure, cli, output};

/// Show the options and where they come from.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Every option, its value, and where that comes from: default, file, environment or flag.
    Show {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Where the file with options is, or would be.
    Path,
}

pub(crate) fn run(context: &cli::Context, arguments: &Args) -> Result<(), Failure> {
    match arguments.command {
        Command::Show { json } => show(context, json),
        Command::Path => path(context),
    }
}

fn show(context: &cli::Context, json: bool) -> Result<(), Failure> {
    let options = context.options()?;
    let settings = options.settings().map(|(spec, value, source)| {
        let value = match value {
            Value::Null if spec.key == "data_dir" => {
                options.config.data_dir().map(|dir| dir.display().to_string().into()).unwrap_or_default()
            }
            Value::Null => Value::Null,
            _ if spec.secret => "(secret)".into(),
            value => value.clone(),
        };
        (spec, value, source)
    });
    if json {
        let list: Vec<_> = settings
            .map(|(spec, value, source)| json!({ "key": spec.key, "value": value, "source": source.to_string() }))
            .collect();
        output::json(&list);
    } else {
        let mut table = output::Table::default();
        for (spec, value, source) in settings {
            let value = if value.is_null() { "(none)".to_owned() } else { value.to_string() };
            table.row([spec.key.clone(), value, source.to_string()]);
        }
        output::text(table);
    }
    for note in &options.notes {
        output::note(format_args!("note: {note}"));
    }
    Ok(())
}

fn path(context: &cli::Context) -> Result<(), Failure> {
    let path = config_file(context.inputs()).ok_or_else(|| {
        Failure::config("there is no usual place for the file: HOME is not set")
            .hint("name one with `--config FILE`")
    })?;
    output::line(path.display());
    if !path.exists() {
        output::note(
            "(it does not exist; every option has its default unless the environment or a flag sets it)",
        );
    }
    Ok(())
}
