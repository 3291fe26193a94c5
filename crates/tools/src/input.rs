//! Arguments: what types they have, what schema that makes, and what is said when they are wrong.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use switchboard_bus::{Key, Pattern, Topic};
use switchboard_coordination::{Name, Text};

/// Why arguments were refused: which one, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadArguments {
    #[error("Missing required parameter: {0}")]
    Missing(String),
    #[error("Invalid value for {parameter}: {why}")]
    Invalid { parameter: String, why: String },
}

impl BadArguments {
    pub(crate) fn invalid(parameter: &str, why: impl ToString) -> Self {
        Self::Invalid { parameter: parameter.to_owned(), why: why.to_string() }
    }

    pub(crate) fn parameter(&self) -> &str {
        match self {
            Self::Missing(parameter) | Self::Invalid { parameter, .. } => parameter,
        }
    }
}

/// The JSON Schema of `I`, as short as it can be said: definitions in place, nothing that only a generator needs.
pub(crate) fn schema_of<I: JsonSchema>() -> Arc<Map<String, Value>> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<I>();
    let mut object = std::mem::take(schema.ensure_object());
    object.remove("title");
    object.remove("description");
    object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(shorten);
    }
    Arc::new(object)
}

fn shorten(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    // Validators warn of formats they do not know, such as `uint32`.
    object.remove("format");
    // An optional argument may be left out; that it may also be null need not be said.
    object.retain(|key, value| !(key == "default" && value.is_null()));
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(items) = object.get_mut("items") {
        shorten(items);
    }
}

/// Reads `arguments` as `I`, after the liberties that every client may take: null stands for left out, an integer may be
/// written as integral number or decimal string, a boolean as string.
pub(crate) fn read<I: DeserializeOwned>(
    mut arguments: Map<String, Value>,
    schema: &Map<String, Value>,
) -> Result<I, BadArguments> {
    arguments.retain(|_, value| !value.is_null());
    if let Some(Value::Array(required)) = schema.get("required") {
        let missing = required.iter().filter_map(Value::as_str).find(|name| !arguments.contains_key(*name));
        if let Some(missing) = missing {
            return Err(BadArguments::Missing(missing.to_owned()));
        }
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, value) in &mut arguments {
            if let Some(expected) = properties.get(name).and_then(|property| property.get("type")) {
                coerce(name, value, expected.as_str().unwrap_or_default())?;
            }
        }
    }
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let parameter = path.split(['.', '[']).next().unwrap_or_default().to_owned();
        BadArguments::Invalid { parameter, why: error.into_inner().to_string() }
    })
}

fn coerce(name: &str, value: &mut Value, expected: &str) -> Result<(), BadArguments> {
    let refused = |what: &str| Err(BadArguments::invalid(name, format_args!("must be {what}")));
    match (expected, &*value) {
        ("integer", Value::Number(number)) => match integral(number) {
            Some(integer) => *value = integer.into(),
            None => return refused("an integer"),
        },
        ("integer", Value::String(text)) => match text.trim().parse::<i64>() {
            Ok(integer) => *value = integer.into(),
            // Words such as `high` are read by those arguments that know them.
            Err(_) => return Ok(()),
        },
        ("integer", _) => return refused("an integer"),
        ("boolean", Value::Bool(_)) => {}
        ("boolean", Value::String(text)) if text == "true" => *value = true.into(),
        ("boolean", Value::String(text)) if text == "false" => *value = false.into(),
        ("boolean", _) => return refused("true or false"),
        ("string", Value::String(_)) => {}
        ("string", _) => return refused("a string"),
        _ => {}
    }
    Ok(())
}

fn integral(number: &serde_json::Number) -> Option<i64> {
    if let Some(integer) = number.as_i64() {
        return Some(integer);
    }
    let float = number.as_f64()?;
    // Above 2^53 a float is not exact, and no argument is that large.
    #[expect(clippy::cast_possible_truncation, reason = "checked to be integral and small")]
    (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
}

/// A parameter type that is a string for clients and something checked for us.
macro_rules! string_parameter {
    ($(#[$doc:meta])* $name:ident($inner:ty), $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub(crate) struct $name(pub(crate) $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                let check: fn(&str) -> Result<$inner, _> = $check;
                check(&text).map($name).map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string"})
            }
        }
    };
}

string_parameter!(
    /// A name: 1 to 1,024 characters.
    NameParam(Name),
    |text| Name::new(text)
);
string_parameter!(
    /// A text: at most 1 MiB.
    TextParam(Text),
    |text| Text::new(text)
);
string_parameter!(
    /// A topic of the bus: at most 256 bytes.
    TopicParam(Topic),
    |text| Topic::new(text)
);
string_parameter!(
    /// A pattern of topics: at most 256 bytes.
    PatternParam(Pattern),
    |text| Pattern::new(text)
);
string_parameter!(
    /// What tells a repeated publication from a new one: at most 256 bytes.
    KeyParam(Key),
    |text| Key::new(text)
);
