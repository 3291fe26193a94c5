//! `search_tools` and `call_tool`: two short definitions through which a client reaches every tool.

use std::sync::Weak;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::input::{BadArguments, read, schema_of};
use crate::search::Ranking;
use crate::{Annotations, Context, Definition, Handler, Output, Registry, Tool, Toolset, View};

/// The toolset's name.
pub(crate) const NAME: &str = "discovery";

/// The toolset.
pub(crate) fn toolset() -> Toolset {
    Toolset {
        name: NAME,
        summary: "find and call every tool by two short definitions, for agents that must save context",
        instructions: "search_tools finds tools by what they do and shows their parameters; call_tool calls one.",
        server_name: "switchboard",
        server_version: env!("CARGO_PKG_VERSION"),
        sessions: true,
    }
}

/// Its tools, over the registry that they will be part of.
pub(crate) fn tools(registry: &Weak<Registry>) -> Vec<Tool> {
    vec![search_tools(registry.clone()), call_tool(registry.clone())]
}

#[derive(Deserialize, JsonSchema)]
struct SearchInput {
    /// What you want to do, in a few words
    query: String,
    /// 1-50
    #[serde(default = "five")]
    limit: i64,
}

const fn five() -> i64 {
    5
}

/// The longest query, in bytes.
const LONGEST_QUERY: usize = 1_000;

fn search_tools(registry: Weak<Registry>) -> Tool {
    let schema = schema_of::<SearchInput>();
    let for_reading = schema.clone();
    let handler = Handler::new(move |arguments, context: Context| {
        let (registry, schema) = (registry.clone(), for_reading.clone());
        async move {
            let answer =
                read(arguments, &schema).and_then(|input: SearchInput| search(&registry, &input, &context));
            Ok(answer.unwrap_or_else(|bad| refused(&bad)))
        }
    });
    Tool {
        definition: Definition {
            name: "search_tools",
            title: "Search tools",
            description: "Find tools by what they do; answers with their names and parameters for call_tool.",
            input_schema: schema,
            output_schema: None,
            annotations: Annotations::READS,
        },
        toolset: NAME,
        handler,
    }
}

fn search(registry: &Weak<Registry>, input: &SearchInput, context: &Context) -> Result<Output, BadArguments> {
    let limit = usize::try_from(input.limit).ok().filter(|limit| (1..=50).contains(limit));
    let limit = limit.ok_or_else(|| BadArguments::invalid("limit", "must be 1 to 50"))?;
    if input.query.len() > LONGEST_QUERY {
        return Err(BadArguments::invalid("query", format_args!("must be at most {LONGEST_QUERY} bytes")));
    }
    let Some(registry) = registry.upgrade() else {
        return Ok(Output::text("the server is stopping").error());
    };
    let view = View::ALL;
    let allowed = |tool: &&Tool| context.caller.may_use_toolset(tool.toolset).is_ok() && tool.toolset != NAME;
    let tools: Vec<&Tool> = registry.tools(&view).filter(allowed).collect();
    let ranking = Ranking::new(tools.iter().map(|tool| words_of(tool)));
    let found = ranking.best(&input.query, limit).into_iter().map(|index| {
        let tool = tools[index];
        json!({
            "name": tool.definition.name,
            "toolset": tool.toolset,
            "description": tool.definition.description,
            "parameters": &*tool.definition.input_schema,
        })
    });
    Ok(Output::structured(json!({"tools": found.collect::<Vec<_>>()})))
}

fn words_of(tool: &Tool) -> String {
    let definition = &tool.definition;
    let mut text =
        format!("{} {} {} {}", definition.name, definition.title, definition.description, tool.toolset);
    if let Some(Value::Object(properties)) = definition.input_schema.get("properties") {
        for (name, property) in properties {
            text.push(' ');
            text.push_str(name);
            if let Some(description) = property.get("description").and_then(Value::as_str) {
                text.push(' ');
                text.push_str(description);
            }
        }
    }
    text
}

#[derive(Deserialize, JsonSchema)]
struct CallInput {
    name: String,
    /// As search_tools shows them
    #[serde(default)]
    arguments: Map<String, Value>,
}

fn call_tool(registry: Weak<Registry>) -> Tool {
    let schema = schema_of::<CallInput>();
    let for_reading = schema.clone();
    let handler = Handler::new(move |arguments, context: Context| {
        let (registry, schema) = (registry.clone(), for_reading.clone());
        async move {
            let input: CallInput = match read(arguments, &schema) {
                Ok(input) => input,
                Err(bad) => return Ok(refused(&bad)),
            };
            let Some(registry) = registry.upgrade() else {
                return Ok(Output::text("the server is stopping").error());
            };
            let known = registry.tool(&View::ALL, &input.name);
            if known.is_none_or(|tool| tool.toolset == NAME) {
                let why = format!("there is no tool '{}' to call: find one with search_tools", input.name);
                return Ok(refused(&BadArguments::invalid("name", why)));
            }
            registry.call(&View::ALL, &input.name, input.arguments, context).await
        }
    });
    Tool {
        definition: Definition {
            name: "call_tool",
            title: "Call tool",
            description: "Call a tool that search_tools found.",
            input_schema: schema,
            output_schema: None,
            annotations: Annotations { open_world_hint: true, destructive_hint: true, ..Annotations::WRITES },
        },
        toolset: NAME,
        handler,
    }
}

fn refused(bad: &BadArguments) -> Output {
    let error = json!({
        "code": "invalid_arguments",
        "message": bad.to_string(),
        "next": "correct the argument and call again",
        "parameter": bad.parameter(),
    });
    Output::structured(json!({"error": error})).error()
}
