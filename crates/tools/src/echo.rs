//! A tool that touches no state: the ceiling that benchmarks measure the others against.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::input::{read, schema_of};
use crate::{Annotations, Definition, Handler, Output, Tool, Toolset};

const NAME: &str = "test";

#[derive(Deserialize, JsonSchema)]
struct EchoInput {
    text: String,
}

/// The toolset `test` with the tool `echo`. Served only where the option `test_toolset` says so.
pub fn echo() -> (Toolset, Vec<Tool>) {
    let toolset = Toolset {
        name: NAME,
        summary: "for tests and benchmarks of this server",
        instructions: "",
        server_name: "switchboard",
        server_version: env!("CARGO_PKG_VERSION"),
        sessions: true,
    };
    let schema = schema_of::<EchoInput>();
    let for_reading = schema.clone();
    let handler = Handler::new(move |arguments, _| {
        let answer = read(arguments, &for_reading).map(|input: EchoInput| Output::text(input.text));
        std::future::ready(Ok(answer.unwrap_or_else(|bad| Output::text(bad.to_string()).error())))
    });
    let definition = Definition {
        name: "echo",
        title: "Echo",
        description: "Answers what it is given.",
        input_schema: schema,
        output_schema: None,
        annotations: Annotations::READS,
    };
    (toolset, vec![Tool { definition, toolset: NAME, handler }])
}
