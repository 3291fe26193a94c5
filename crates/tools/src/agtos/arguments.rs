//! Arguments as agtOS reads them: types are taken at their word, what is not asked for is ignored.

use serde_json::{Map, Value};

/// A field is missing, or is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadField {
    pub(super) field: &'static str,
    pub(super) why: String,
}

impl BadField {
    pub(super) fn new(field: &'static str, why: impl Into<String>) -> Self {
        Self { field, why: why.into() }
    }
}

/// The arguments of a call. Null stands for left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arguments<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Arguments<'a> {
    pub(super) fn get(self, field: &str) -> Option<&'a Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    /// A text, if it is there.
    pub(super) fn text(self, field: &'static str) -> Result<Option<&'a str>, BadField> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(BadField::new(field, format!("expected string, received {}", kind(other)))),
        }
    }

    /// A text of at least one character.
    pub(super) fn some_text(self, field: &'static str) -> Result<&'a str, BadField> {
        match self.text(field)? {
            None => Err(BadField::new(field, "required")),
            Some("") => Err(BadField::new(field, "must have at least 1 character")),
            Some(text) => Ok(text),
        }
    }

    /// A whole number, if it is there.
    pub(super) fn integer(self, field: &'static str) -> Result<Option<i64>, BadField> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let Value::Number(number) = value else {
            return Err(BadField::new(field, format!("expected number, received {}", kind(value))));
        };
        let integral = |float: f64| {
            // Greater ones are not exact, and no time that can be meant is.
            #[expect(clippy::cast_possible_truncation, reason = "checked to be integral and small")]
            (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
        };
        let integer = number.as_i64().or_else(|| number.as_f64().and_then(integral));
        integer.map(Some).ok_or_else(|| BadField::new(field, "must be an integer"))
    }

    /// A JSON object, if it is there.
    pub(super) fn object(self, field: &'static str) -> Result<Option<&'a Map<String, Value>>, BadField> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(other) => Err(BadField::new(field, format!("expected object, received {}", kind(other)))),
        }
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
