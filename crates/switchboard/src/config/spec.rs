//! The list of options, made from the types, and the flags made from that list.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use clap::{Arg, ArgAction, ArgMatches, Command, error::ErrorKind};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::Config;

/// One option, under all its names.
#[derive(Debug)]
pub(crate) struct OptionSpec {
    /// As in the file: `limits.body`.
    pub(crate) key: String,
    /// As in the environment: `SWITCHBOARD_LIMITS_BODY`.
    pub(crate) env: String,
    /// As on the command line, without the dashes: `limits-body`.
    pub(crate) flag: String,
    /// Variables of a replaced system that set it, too; of several the last counts.
    pub(crate) also: Vec<String>,
    /// What those variables have to say for yes: anything else is no. Empty for what this program takes itself.
    pub(crate) also_yes: Vec<String>,
    /// Whether it is unset by those variables if what they say makes no sense, rather than left as it is.
    pub(crate) also_or_none: bool,
    /// What it is for.
    pub(crate) doc: String,
    /// What stands for its value in a help text.
    pub(crate) value_name: String,
    pub(crate) kind: Kind,
    /// Whether commands other than those that run a server know it.
    pub(crate) everywhere: bool,
    /// Whether its value is not to be shown.
    pub(crate) secret: bool,
    /// Its default, as JSON.
    pub(crate) default: Value,
}

/// What a text is turned into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Switch,
    List,
}

impl OptionSpec {
    /// The first paragraph of the description, without the markup of a page.
    pub(crate) fn help(&self) -> String {
        self.doc.replace('\n', " ")
    }
}

/// All options, in the order of the types.
pub(crate) fn specs() -> &'static [OptionSpec] {
    static SPECS: OnceLock<Vec<OptionSpec>> = OnceLock::new();
    SPECS.get_or_init(|| {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<Config>();
        let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
        let mut specs = Vec::new();
        collect("", schema.as_value(), &defaults, &mut specs);
        specs
    })
}

fn collect(prefix: &str, schema: &Value, defaults: &Value, specs: &mut Vec<OptionSpec>) {
    let empty = Map::new();
    for (name, schema) in schema.get("properties").and_then(Value::as_object).unwrap_or(&empty) {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let default = defaults.get(name).cloned().unwrap_or_default();
        if schema.get("properties").is_some() {
            collect(&key, schema, &default, specs);
        } else {
            specs.push(spec(key, schema, default));
        }
    }
}

fn spec(key: String, schema: &Value, default: Value) -> OptionSpec {
    let text = |name: &str| schema.get(name).and_then(Value::as_str).map(str::to_owned);
    let words = |name: &str| {
        let words = schema.get(name).and_then(Value::as_str).unwrap_or_default();
        words.split_whitespace().map(str::to_owned).collect()
    };
    let switch = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    // An optional value has the types `[its own, "null"]`.
    let kind = match schema.get("type").map(|kind| kind.get(0).unwrap_or(kind)).and_then(Value::as_str) {
        Some("integer") => Kind::Integer,
        Some("boolean") => Kind::Switch,
        Some("array") => Kind::List,
        _ => Kind::Text,
    };
    OptionSpec {
        env: text("x-env")
            .unwrap_or_else(|| format!("SWITCHBOARD_{}", key.replace('.', "_").to_ascii_uppercase())),
        flag: text("x-flag").unwrap_or_else(|| key.replace(['.', '_'], "-")),
        also: words("x-also"),
        also_yes: words("x-also-yes"),
        also_or_none: switch("x-also-or-none"),
        doc: text("description").unwrap_or_default(),
        value_name: text("x-value").unwrap_or_else(|| "VALUE".to_owned()),
        kind,
        everywhere: switch("x-everywhere"),
        secret: switch("x-secret"),
        default,
        key,
    }
}

/// What the command line sets: texts by the key of the option.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags(pub(crate) BTreeMap<&'static str, Vec<String>>);

impl Flags {
    /// Takes over what `other` sets.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn augment(command: Command, everywhere: bool) -> Command {
        let heading = if everywhere { "Options of every command" } else { "Options of the server" };
        command.next_help_heading(heading).args(of_scope(everywhere).map(|spec| {
            let arg = Arg::new(&*spec.key).long(&*spec.flag).help(spec.help()).global(everywhere);
            match spec.kind {
                Kind::Switch => arg
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true")
                    .value_name("BOOL")
                    .action(ArgAction::Set),
                Kind::List => arg.value_name(&*spec.value_name).action(ArgAction::Append),
                Kind::Text | Kind::Integer => arg.value_name(&*spec.value_name).action(ArgAction::Set),
            }
        }))
    }

    fn take(matches: &ArgMatches, everywhere: bool) -> Self {
        let given = of_scope(everywhere).filter_map(|spec| {
            let values = matches.try_get_many::<String>(&spec.key).ok()??;
            Some((&*spec.key, values.cloned().collect()))
        });
        Self(given.collect())
    }
}

fn of_scope(everywhere: bool) -> impl Iterator<Item = &'static OptionSpec> {
    specs().iter().filter(move |spec| spec.everywhere == everywhere)
}

/// The options that every command knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct GlobalFlags(pub(crate) Flags);

/// The options that commands which run a server know beside those.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerFlags(pub(crate) Flags);

macro_rules! as_arguments {
    ($type:ident, $everywhere:literal) => {
        impl clap::Args for $type {
            fn augment_args(command: Command) -> Command {
                Flags::augment(command, $everywhere)
            }

            fn augment_args_for_update(command: Command) -> Command {
                Flags::augment(command, $everywhere)
            }
        }

        impl clap::FromArgMatches for $type {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self(Flags::take(matches, $everywhere)))
            }

            fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
                Err(clap::Error::new(ErrorKind::InvalidSubcommand))
            }
        }
    };
}

as_arguments!(GlobalFlags, true);
as_arguments!(ServerFlags, false);
