//! Puts the layers together: default, file, environment, flags.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Config, Flags, Kind, OptionSpec, default_config_file, specs};
use crate::Failure;

/// What our variables begin with.
const PREFIX: &str = "SWITCHBOARD_";

/// The variable that says where the file is; the only one beside those of the options.
const CONFIG_VARIABLE: &str = "SWITCHBOARD_CONFIG";

/// Variables that only the repository's own tests read, and hand on to the servers that they start.
const OF_TESTS: [&str; 2] = ["SWITCHBOARD_BIN", "SWITCHBOARD_SIM_"];

/// What the options are made from.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// The file that must exist, as asked for by flag or environment; none for the usual one, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// The environment.
    pub(crate) environment: BTreeMap<String, String>,
    /// The command line.
    pub(crate) flags: Flags,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File(PathBuf),
    Environment(String),
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag --{name}"),
        }
    }
}

/// The options, and where each comes from.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) config: Config,
    /// What whoever starts a server should know: variables of replaced systems that have no effect.
    pub(crate) notes: Vec<String>,
    settings: BTreeMap<&'static str, (Value, Source)>,
}

impl Resolved {
    /// Every option with its value and source, in the order of the list.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&'static OptionSpec, &Value, &Source)> {
        specs().iter().filter_map(|spec| {
            let (value, source) = self.settings.get(&*spec.key)?;
            Some((spec, value, source))
        })
    }

    /// Whether nobody set the option called `key`.
    pub(crate) fn is_default(&self, key: &str) -> bool {
        self.settings.get(key).is_none_or(|(_, source)| *source == Source::Default)
    }
}

/// A file, and what it says.
type Table = (PathBuf, Map<String, Value>);

/// The environment of this process, as far as it is text.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The file that holds options: asked for, or in the usual place. It need not exist.
pub(crate) fn config_file(inputs: &Inputs) -> Option<PathBuf> {
    inputs
        .file
        .clone()
        .or_else(|| inputs.environment.get(CONFIG_VARIABLE).map(PathBuf::from))
        .or_else(default_config_file)
}

impl Inputs {
    /// Puts the layers together. Everything that is wrong is reported at once.
    pub(crate) fn resolve(&self) -> Result<Resolved, Failure> {
        let mut problems = Vec::new();
        let mut notes = Vec::new();
        let mut settings: BTreeMap<&'static str, (Value, Source)> =
            specs().iter().map(|spec| (&*spec.key, (spec.default.clone(), Source::Default))).collect();
        let mut set = |spec: &'static OptionSpec, value: Result<Value, String>, source: Source| match value
            .and_then(|value| check(spec, &value).map(|()| value))
        {
            Ok(value) => {
                settings.insert(&spec.key, (value, source));
                None
            }
            Err(why) => Some(format!("option '{}' ({source}): {why}", spec.key)),
        };

        let file = self.read_file()?;
        if let Some((path, table)) = &file {
            for (key, value) in flatten(table) {
                match find(&key) {
                    Some(spec) => problems.extend(set(spec, Ok(value), Source::File(path.clone()))),
                    None => problems.push(unknown_key(path, &key)),
                }
            }
        }
        for spec in specs() {
            for name in &spec.also {
                let Some(text) = self.environment.get(name) else { continue };
                let source = Source::Environment(name.clone());
                // These names are not ours alone: a value that makes no sense may be meant for another program.
                if let Some(why) = set(spec, from_also(spec, text), source.clone()) {
                    notes.push(format!("{name} is ignored: {why}"));
                    if spec.also_or_none {
                        problems.extend(set(spec, Ok(Value::Null), source));
                    }
                }
            }
        }
        if self.environment.contains_key("REDIS_URL") {
            notes.push("REDIS_URL is not used: this server keeps its data in the data directory".to_owned());
        }
        if self.environment.contains_key("PROMPTYOSELF_DB") {
            notes.push(
                "PROMPTYOSELF_DB is not used: this server keeps its schedules in the data directory"
                    .to_owned(),
            );
        }
        for (name, text) in self.environment.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            match specs().iter().find(|spec| spec.env == *name) {
                Some(spec) => {
                    problems.extend(set(spec, from_text(spec, text), Source::Environment(name.clone())));
                }
                None if name == CONFIG_VARIABLE || OF_TESTS.iter().any(|test| name.starts_with(test)) => {}
                None => problems.push(unknown_variable(name)),
            }
        }
        for (key, texts) in &self.flags.0 {
            let Some(spec) = find(key) else { continue };
            let value = match (spec.kind, &texts[..]) {
                (Kind::List, texts) => Ok(texts.iter().cloned().map(Value::String).collect()),
                (_, texts) => from_text(spec, texts.last().map_or("", String::as_str)),
            };
            problems.extend(set(spec, value, Source::Flag(spec.flag.clone())));
        }

        if !problems.is_empty() {
            return Err(Failure::config(problems.join("\n"))
                .hint("`switchboard config show` tells what is set where"));
        }
        let config = serde_json::from_value(nest(settings.iter().map(|(key, (value, _))| (*key, value))))
            .map_err(|error| Failure::config(format!("the options contradict each other: {error}")))?;
        Ok(Resolved { config, notes, settings })
    }

    fn read_file(&self) -> Result<Option<Table>, Failure> {
        let Some(path) = config_file(self) else { return Ok(None) };
        let asked_for = self.file.is_some() || self.environment.contains_key(CONFIG_VARIABLE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !asked_for => return Ok(None),
            Err(error) => {
                return Err(Failure::config(format!("cannot read the file '{}': {error}", path.display())));
            }
        };
        let table = toml::from_str(&text).map_err(|error| {
            Failure::config(format!("the file '{}' is no TOML:\n{error}", path.display()))
        })?;
        Ok(Some((path, table)))
    }
}

fn find(key: &str) -> Option<&'static OptionSpec> {
    specs().iter().find(|spec| spec.key == key)
}

/// The leaves of `table` by their dotted keys. What an option takes whole is not taken apart.
fn flatten(table: &Map<String, Value>) -> Vec<(String, Value)> {
    let mut leaves = Vec::new();
    for (name, value) in table {
        match value {
            Value::Object(inner) if find(name).is_none() => {
                let inner = flatten(inner);
                leaves.extend(inner.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
            }
            _ => leaves.push((name.clone(), value.clone())),
        }
    }
    leaves
}

fn nest<'a>(settings: impl Iterator<Item = (&'a str, &'a Value)>) -> Value {
    let mut root = Map::new();
    for (key, value) in settings {
        match key.split_once('.') {
            None => {
                root.insert(key.to_owned(), value.clone());
            }
            Some((group, name)) => {
                let group = root.entry(group).or_insert_with(|| Value::Object(Map::new()));
                if let Some(group) = group.as_object_mut() {
                    group.insert(name.to_owned(), value.clone());
                }
            }
        }
    }
    Value::Object(root)
}

/// Whether the option takes `value`.
fn check(spec: &OptionSpec, value: &Value) -> Result<(), String> {
    let alone = nest(std::iter::once((&*spec.key, value)));
    serde_json::from_value::<Config>(alone).map(|_| ()).map_err(|error| error.to_string())
}

fn from_text(spec: &OptionSpec, text: &str) -> Result<Value, String> {
    match spec.kind {
        Kind::Text => Ok(text.into()),
        Kind::Integer => {
            text.parse::<u64>().map(Value::from).map_err(|_| format!("'{text}' is no whole number"))
        }
        Kind::Switch => match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(true.into()),
            "0" | "false" | "no" | "off" | "" => Ok(false.into()),
            _ => Err(format!("'{text}' is neither true nor false")),
        },
        Kind::List => Ok(text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| Value::String(part.to_owned()))
            .collect()),
    }
}

/// What a variable of a replaced system means by `text`.
fn from_also(spec: &OptionSpec, text: &str) -> Result<Value, String> {
    if spec.also_yes.is_empty() {
        return from_text(spec, text);
    }
    Ok(spec.also_yes.iter().any(|yes| yes.eq_ignore_ascii_case(text.trim())).into())
}

fn unknown_key(file: &Path, key: &str) -> String {
    let near = nearest(key, specs().iter().map(|spec| (&*spec.key, &*spec.key)));
    format!("the file '{}' sets '{key}', which is no option{near}", file.display())
}

fn unknown_variable(name: &str) -> String {
    // What all names have in common says nothing about which was meant.
    let own = |name: &'static str| (name.trim_start_matches(PREFIX), name);
    let near = nearest(name.trim_start_matches(PREFIX), specs().iter().map(|spec| own(&spec.env)));
    format!("the variable {name} sets no option{near}")
}

/// ": did you mean 'x'?", if anything is near enough. Of each pair, the first is compared and the second is named.
fn nearest<'a>(name: &str, known: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    known
        .map(|(compared, named)| (strsim::jaro_winkler(name, compared), named))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map_or_else(String::new, |(_, named)| format!(": did you mean '{named}'?"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn inputs(
        file: &str,
        environment: &[(&str, &str)],
        flags: &[(&'static str, &str)],
    ) -> (tempfile::TempDir, Inputs) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, file).unwrap();
        let environment =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let flags = Flags(flags.iter().map(|(key, value)| (*key, vec![(*value).to_owned()])).collect());
        (dir, Inputs { file: Some(path), environment, flags })
    }

    fn setting(resolved: &Resolved, key: &str) -> (String, Source) {
        let (_, value, source) = resolved.settings().find(|(spec, ..)| spec.key == key).unwrap();
        (value.to_string(), source.clone())
    }

    #[test]
    fn each_layer_overrides_the_one_below() {
        let file = "[a2amcp]\nheartbeat_timeout = \"1m\"\n[limits]\nbody_bytes = \"1MiB\"\n";
        let (_dir, mut inputs) = inputs(file, &[], &[]);
        let path = inputs.file.clone().unwrap();
        let key = "a2amcp.heartbeat_timeout";
        let of = |inputs: &Inputs| setting(&inputs.resolve().unwrap(), key);
        assert_eq!(of(&inputs), (r#""1m""#.to_owned(), Source::File(path)));
        inputs.environment.insert("HEARTBEAT_TIMEOUT".into(), "2".into());
        assert_eq!(of(&inputs), (r#""2""#.to_owned(), Source::Environment("HEARTBEAT_TIMEOUT".into())));
        inputs.environment.insert("SWITCHBOARD_A2AMCP_HEARTBEAT_TIMEOUT".into(), "3s".into());
        let ours = Source::Environment("SWITCHBOARD_A2AMCP_HEARTBEAT_TIMEOUT".into());
        assert_eq!(of(&inputs), (r#""3s""#.to_owned(), ours));
        inputs.flags.0.insert(key, vec!["4s".into()]);
        assert_eq!(of(&inputs), (r#""4s""#.to_owned(), Source::Flag("a2amcp-heartbeat-timeout".into())));
        let resolved = inputs.resolve().unwrap();
        assert_eq!(resolved.config.a2amcp.heartbeat_timeout, super::super::Duration::from_secs(4));
        assert_eq!(setting(&resolved, "compat").1, Source::Default);
        assert_eq!(resolved.config.limits.body_bytes.bytes(), 1 << 20);
    }

    fn refusal(file: &str, environment: &[(&str, &str)], flags: &[(&'static str, &str)]) -> String {
        let (dir, inputs) = inputs(file, environment, flags);
        let failure = inputs.resolve().unwrap_err().to_string();
        failure.replace(&dir.path().display().to_string(), "DIR")
    }

    #[test]
    fn what_is_unknown_is_refused_with_the_nearest_name() {
        assert_eq!(
            refusal("data_dri = \"x\"\n[limits]\nboddy = 1\n", &[("SWITCHBOARD_JURNAL", "x")], &[]),
            "the file 'DIR/config.toml' sets 'data_dri', which is no option: did you mean 'data_dir'?\n\
             the file 'DIR/config.toml' sets 'limits.boddy', which is no option: did you mean 'limits.body_bytes'?\n\
             the variable SWITCHBOARD_JURNAL sets no option: did you mean 'SWITCHBOARD_JOURNAL'?"
        );
        assert_eq!(
            refusal("", &[("SWITCHBOARD_XYZ", "x")], &[]),
            "the variable SWITCHBOARD_XYZ sets no option"
        );
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_source() {
        assert_eq!(
            refusal("compat = 7", &[("SWITCHBOARD_LIMITS_BODY_BYTES", "big")], &[("journal", "redis:")]),
            "option 'compat' (file DIR/config.toml): invalid type: integer `7`, expected a boolean\n\
             option 'limits.body_bytes' (environment SWITCHBOARD_LIMITS_BODY_BYTES): 'big' is no size: write 4MiB, 512KiB or a number \
             of bytes\n\
             option 'journal' (flag --journal): 'redis:' is no journal that this program can use: write `sqlite:` for the \
             file in the data directory (`--data-dir` says where), or `memory:` for one that is forgotten at the end"
        );
    }

    #[test]
    fn lists_are_separated_by_commas_in_the_environment() {
        let (_dir, inputs) = inputs("", &[("SWITCHBOARD_LISTEN", "4100, 5000=a2amcp")], &[]);
        let listen = inputs.resolve().unwrap().config.listen;
        assert_eq!(
            listen,
            [super::super::Listen::loopback(4100, "all"), super::super::Listen::loopback(5000, "a2amcp")]
        );
    }

    #[test]
    fn variables_of_replaced_systems_are_never_fatal() {
        let (_dir, inputs) =
            inputs("", &[("LOG_LEVEL", "verbose"), ("REDIS_URL", "redis://x"), ("A2AMCP_EVENTS", "1")], &[]);
        let resolved = inputs.resolve().unwrap();
        assert!(resolved.config.a2amcp.events);
        assert_eq!(resolved.config.log.level.as_str(), "info");
        assert_eq!(resolved.notes.len(), 2, "{:?}", resolved.notes);
    }

    #[test]
    fn a_file_that_was_asked_for_must_be_there() {
        let missing = Inputs { file: Some("/nowhere/config.toml".into()), ..Inputs::default() };
        let failure = missing.resolve().unwrap_err().to_string();
        assert!(failure.starts_with("cannot read the file '/nowhere/config.toml'"), "{failure}");
    }

    /// Values of options as people, programs and mistakes write them.
    fn written_value() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "",
            "0",
            "-1",
            "1",
            "true",
            "\"\"",
            "\"1m\"",
            "\"99999999999999999999d\"",
            "\"-5s\"",
            "\"1e400\"",
            "1e308",
            "nan",
            "9223372036854775807",
            "\"16EiB\"",
            "\"1.5MiB\"",
            "\"127.0.0.1:4100=all\"",
            "\"[::1]:0=a2amcp+x\"",
            "\"=\"",
            "\":\"",
            "\"sqlite:\"",
            "\"\\u0000\"",
            "\"é\"",
            "[]",
            "[[]]",
            "{}",
            "[\"0.0.0.0:1\", 2]",
            "{ a = { b = 1 } }",
            "1979-05-27T07:32:00Z",
            "\"",
            "[",
            "\"http://\"",
        ]);
        prop_oneof![4 => pieces.prop_map(str::to_owned), 1 => "\\PC{0,24}"]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_written_is_a_configuration_or_an_error(
            file in prop::collection::vec((0..specs().len(), written_value()), 0..4),
            before in "\\PC{0,8}|\\[[a-z0-9.]{1,12}\\]|",
            variables in prop::collection::vec((0..specs().len(), written_value()), 0..3),
        ) {
            let lines = file.iter().map(|(option, value)| format!("{} = {value}", specs()[*option].key));
            let text = std::iter::once(before).chain(lines).collect::<Vec<_>>().join("\n");
            let (_dir, mut inputs) = inputs(&text, &[], &[]);
            for (option, value) in &variables {
                let name = format!("{PREFIX}{}", specs()[*option].key.replace('.', "_").to_uppercase());
                inputs.environment.insert(name, value.trim_matches('"').to_owned());
            }
            if let Err(failure) = inputs.resolve() {
                prop_assert!(!failure.to_string().is_empty());
            }
        }
    }
}
