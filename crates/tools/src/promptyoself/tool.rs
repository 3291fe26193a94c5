//! How a tool of this catalogue is put together: types are taken at their word, and what a tool does not know is ignored.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use switchboard_schedule::Address;

use super::PromptYoSelf;
use super::answer::{Failure, output};
use crate::input::schema_of;
use crate::{Annotations, Context, Definition, Handler, Tool};

/// A tool's fixed part.
pub(super) struct Spec {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) annotations: Annotations,
    pub(super) output_schema: Option<Arc<Map<String, Value>>>,
}

/// One call: the service, and what is known of the call.
pub(super) struct Call {
    pub(super) service: PromptYoSelf,
    pub(super) context: Context,
}

impl Call {
    /// Whether the caller may see and cancel schedules that call this. Those that prompt no agent are not of this
    /// catalogue, so a caller that is bound to anything has to use tools that know their bounds.
    pub(super) fn may_see(&self, address: &Address) -> bool {
        let grant = &self.context.caller.grant;
        &*address.kind == super::KIND || (grant.projects.is_none() && grant.toolsets.is_none())
    }
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Nothing {}

/// Puts a tool together.
pub(super) fn tool<I, F, Fut>(service: &PromptYoSelf, spec: Spec, call: F) -> Tool
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(Call, I) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, Failure>> + Send + 'static,
{
    let mut input_schema = Arc::unwrap_or_clone(schema_of::<I>());
    input_schema.insert("additionalProperties".to_owned(), true.into());
    let service = service.clone();
    let handler = Handler::new(move |arguments: Map<String, Value>, context: Context| {
        let service = service.clone();
        async move {
            context.caller.may_use_shared(super::NAME)?;
            Ok(output(match read(arguments) {
                Ok(input) => call(Call { service, context }, input).await,
                Err(failure) => Err(failure),
            }))
        }
    });
    Tool {
        definition: Definition {
            name: spec.name,
            title: spec.title,
            description: spec.description,
            input_schema: Arc::new(input_schema),
            output_schema: spec.output_schema,
            annotations: spec.annotations,
        },
        toolset: super::NAME,
        handler,
    }
}

/// Reads arguments. Null stands for left out.
pub(super) fn read<I: DeserializeOwned>(mut arguments: Map<String, Value>) -> Result<I, Failure> {
    arguments.retain(|_, value| !value.is_null());
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let why = error.into_inner();
        // What is missing has no place, and names itself.
        Failure::Arguments(if path == "." { why.to_string() } else { format!("{path}: {why}") })
    })
}

/// A number or text that the tool itself judges, so that its answer is in the words of the catalogue.
#[derive(Debug, Clone)]
pub(super) struct Loose(Value);

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self)
    }
}

impl From<i64> for Loose {
    fn from(number: i64) -> Self {
        Self(number.into())
    }
}

impl Loose {
    /// The integer it is, or spells in decimal.
    pub(super) fn integer(&self) -> Option<i128> {
        match &self.0 {
            Value::Number(number) => integral(number),
            Value::String(text) => text.trim().parse().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The text it is.
    pub(super) fn text(&self) -> Option<&str> {
        self.0.as_str()
    }
}

impl fmt::Display for Loose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::String(text) => f.write_str(text),
            other => other.fmt(f),
        }
    }
}

/// The integer that `number` is, also if it is written `2.0`.
pub(super) fn integral(number: &serde_json::Number) -> Option<i128> {
    if let Some(integer) = number.as_i128() {
        return Some(integer);
    }
    let float = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be integral and small")]
    (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i128)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_integer_may_be_written_as_a_number_or_in_decimal() {
        for (value, integer) in [
            (json!(42), Some(42)),
            (json!(-1), Some(-1)),
            (json!(2.0), Some(2)),
            (json!(" 43 "), Some(43)),
            (json!("-7"), Some(-7)),
            (json!(18_446_744_073_709_551_615_u64), Some(18_446_744_073_709_551_615)),
            (json!(2.5), None),
            (json!(1e300), None),
            (json!("2.0"), None),
            (json!("abc"), None),
            (json!(""), None),
            (json!(true), None),
            (json!([1]), None),
            (json!({}), None),
        ] {
            assert_eq!(Loose(value.clone()).integer(), integer, "{value}");
        }
    }

    #[test]
    fn null_is_as_good_as_nothing_and_what_is_wrong_is_named() {
        #[derive(Debug, Deserialize)]
        struct Input {
            name: String,
            #[serde(default)]
            count: u8,
        }
        let read = |value: Value| match value {
            Value::Object(arguments) => match read::<Input>(arguments) {
                Ok(input) => format!("{} {}", input.name, input.count),
                Err(Failure::Arguments(why) | Failure::Said(why)) => why,
            },
            other => panic!("{other} is no object"),
        };
        assert_eq!(read(json!({"name": "a", "count": null, "heartbeat": {}})), "a 0");
        assert_eq!(read(json!({"name": null})), "missing field `name`");
        let wrong = read(json!({"name": "a", "count": "x"}));
        assert_eq!(wrong, "count: invalid type: string \"x\", expected u8");
    }
}
