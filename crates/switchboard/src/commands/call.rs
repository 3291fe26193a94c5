//! `switchboard call`

use std::io::Read as _;

use ::http::Method;
use serde_json::{Map, Value};

use crate::cli::{self, block_on, usage};
use crate::http::{escape, refusal};
use crate::{Failure, output, running};

/// Call a tool of the running server.
///
/// Examples: `switchboard call list_active_agents project_id=shop`,
/// `switchboard call add_todo '{"project_id":"shop","session_name":"ada","todo_item":"test"}'`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tool, as `switchboard tools` lists it.
    tool: String,
    /// One JSON object, `-` to read it from standard input, or `name=value` pairs. A value that is JSON is taken as such,
    /// any other as text.
    #[arg(value_name = "JSON|-|NAME=VALUE")]
    arguments: Vec<String>,
    /// The whole answer as JSON, also if it is a text.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(context: &cli::Context, arguments: Args) -> Result<(), Failure> {
    let config = context.options()?.config;
    let Args { tool, arguments, json } = arguments;
    let input = Value::Object(parse(&arguments, || {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    })?);
    block_on(async {
        let http = running::server(&config)?;
        let path = format!("/api/tools/{}", escape(&tool));
        let (status, answer) = http.json(Method::POST, &path, Some(&input)).await?;
        if !status.is_success() {
            return Err(refusal(status, &answer).hint_if_none("`switchboard tools` lists the tools"));
        }
        show(&answer, json);
        if answer.get("is_error").or_else(|| answer.get("isError")) == Some(&Value::Bool(true)) {
            return Err(Failure::failed(format!("the tool '{tool}' answered with an error")));
        }
        Ok(())
    })
}

fn show(answer: &Value, json: bool) {
    let text = answer.get("text").and_then(Value::as_str);
    match (json, answer.get("structured").filter(|value| !value.is_null()), text) {
        (true, ..) => output::json(answer),
        (false, Some(structured), _) => output::json(structured),
        // Catalogues of replaced systems answer JSON as text.
        (false, None, Some(text)) => match serde_json::from_str::<Value>(text) {
            Ok(value) if value.is_object() || value.is_array() => output::json(&value),
            _ => output::line(text),
        },
        (false, None, None) => output::json(answer),
    }
}

fn parse(
    words: &[String],
    stdin: impl FnOnce() -> std::io::Result<String>,
) -> Result<Map<String, Value>, Failure> {
    let object = |text: &str| match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(usage(format!("the arguments of a tool are a JSON object, not {other}"))),
        Err(error) => Err(usage(format!("the arguments are no JSON: {error}"))),
    };
    match words {
        [] => Ok(Map::new()),
        [dash] if dash == "-" => {
            let text = stdin().map_err(|error| usage(format!("cannot read standard input: {error}")))?;
            object(&text)
        }
        [json] if json.trim_start().starts_with('{') => object(json),
        pairs => pairs.iter().map(|pair| parse_pair(pair)).collect(),
    }
}

fn parse_pair(pair: &str) -> Result<(String, Value), Failure> {
    let (name, text) = pair.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
        usage(format!("'{pair}' is neither JSON nor NAME=VALUE"))
            .hint("write one JSON object in quotes, or pairs such as project_id=shop")
    })?;
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expected: &str) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let seen = match parse(&words, || Ok(r#"{"from":"stdin"}"#.to_owned())) {
            Ok(object) => Value::Object(object).to_string(),
            Err(failure) => failure.to_string(),
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn arguments_are_json_or_pairs() {
        check(&[], "{}");
        check(&[r#"{"a":1}"#], r#"{"a":1}"#);
        check(&["-"], r#"{"from":"stdin"}"#);
        check(&["a=1", "b=x y", "c=[1]", "d=", "e=a=b"], r#"{"a":1,"b":"x y","c":[1],"d":"","e":"a=b"}"#);
        check(&["[1]"], "'[1]' is neither JSON nor NAME=VALUE");
        check(&["{"], "the arguments are no JSON: EOF while parsing an object at line 1 column 1");
    }
}
