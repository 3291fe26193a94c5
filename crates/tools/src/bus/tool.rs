//! How a tool of this toolset is put together.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use switchboard_bus::Bus;

use super::answer::{Failure, output};
use crate::input::{read, schema_of};
use crate::{Annotations, Context, Definition, Handler, Tool};

/// One call: the service, and what is known of the call.
pub(super) struct Call {
    pub(super) bus: Bus,
    pub(super) context: Context,
}

/// Puts a tool together.
pub(super) fn tool<I, F, Fut>(
    bus: &Bus,
    name: &'static str,
    title: &'static str,
    description: &'static str,
    annotations: Annotations,
    call: F,
) -> Tool
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(Call, I) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, Failure>> + Send + 'static,
{
    let schema = schema_of::<I>();
    let bus = bus.clone();
    let for_reading = schema.clone();
    let handler = Handler::new(move |arguments: Map<String, Value>, context: Context| {
        let (schema, bus) = (for_reading.clone(), bus.clone());
        async move {
            context.caller.may_use_shared(super::NAME)?;
            Ok(match read(arguments, &schema) {
                Ok(input) => output(call(Call { bus, context }, input).await),
                Err(bad) => output(Err(bad.into())),
            })
        }
    });
    Tool {
        definition: Definition {
            name,
            title,
            description,
            input_schema: schema,
            output_schema: None,
            annotations,
        },
        toolset: super::NAME,
        handler,
    }
}
