//! The reference pages, made from the types. `UPDATE_EXPECT=1 cargo test -p switchboard reference` writes them anew.

use std::fmt::Write as _;

use expect_test::expect_file;
use serde_json::Value;

use crate::cli;
use crate::config::{Kind, OptionSpec, specs};

#[test]
fn the_page_of_all_options_says_what_the_program_knows() {
    let mut page = String::from(
        "# Configuration\n\n\
         Every option can be set in the file, in the environment and by a flag. The first of these that sets it counts: \
         flag, variable, file, default. `switchboard config show` tells what each option is set to and where that comes \
         from.\n\n\
         The file is `$XDG_CONFIG_HOME/switchboard/config.toml` (`switchboard config path` says where that is here), or \
         what `--config FILE` or `SWITCHBOARD_CONFIG` names. Names that are no option are refused, in the file and among \
         the variables that begin with `SWITCHBOARD_`.\n\n\
         Lists are written as arrays in the file, separated by commas in a variable, and by repeating the flag. Spans of \
         time are written `90s`, `15m`, `1h30m` or `500ms`, sizes `8MiB`, `512KiB` or as a number of bytes.\n\n\
         ```toml\nlisten = [\"127.0.0.1:4100\", \"127.0.0.1:5000=a2amcp\"]\n\n[log]\nlevel = \"debug\"\n```\n\n\
         This page is made from the program.\n",
    );
    for spec in specs() {
        describe(&mut page, spec);
    }
    expect_file!["../../../docs/configuration.md"].assert_eq(&page);
}

fn describe(page: &mut String, spec: &OptionSpec) {
    let default = match &spec.default {
        Value::Null => "none".to_owned(),
        value => format!("`{value}`"),
    };
    let flag = match spec.kind {
        Kind::Switch => format!("--{}", spec.flag),
        _ => format!("--{} {}", spec.flag, spec.value_name),
    };
    let mut variables = format!("`{}`", spec.env);
    if !spec.also.is_empty() {
        let _ = write!(variables, ", and `{}` as the system replaced knows it", spec.also.join("`, `"));
    }
    let _ = write!(
        page,
        "\n## `{}`\n\n{}\n\n- Default: {default}\n- Flag: `{flag}`{}\n- Variable: {variables}\n",
        spec.key,
        spec.doc,
        if spec.everywhere { "" } else { " of `serve` and `mcp`" },
    );
}

#[test]
fn the_page_of_all_commands_says_what_the_program_knows() {
    let mut page = String::from(
        "# Command line\n\nWhat `--help` prints for every command. The options of the server are described in \
         [configuration.md](configuration.md).\n\nThis page is made from the program.\n",
    );
    let mut command = cli::command().term_width(100);
    command.build();
    describe_command(&mut page, &mut command, "switchboard");
    expect_file!["../../../docs/cli.md"].assert_eq(&page);
}

fn describe_command(page: &mut String, command: &mut clap::Command, name: &str) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let _ = write!(page, "\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n"));
    let inner: Vec<_> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    for inner_name in inner.iter().filter(|name| *name != "help") {
        if let Some(inner) = command.find_subcommand_mut(inner_name) {
            describe_command(page, inner, &format!("{name} {inner_name}"));
        }
    }
}
