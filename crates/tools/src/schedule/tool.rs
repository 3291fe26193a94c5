//! How a tool of this toolset is put together.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::answer::output;
use super::{Refusal, Scheduling};
use crate::input::{read, schema_of};
use crate::{Annotations, Context, Definition, Handler, Tool};

/// One call: the service, and what is known of the call.
pub(super) struct Call {
    pub(super) scheduling: Scheduling,
    pub(super) context: Context,
}

/// Puts a tool together.
pub(super) fn tool<I, F, Fut>(
    scheduling: &Scheduling,
    name: &'static str,
    title: &'static str,
    description: &'static str,
    annotations: Annotations,
    call: F,
) -> Tool
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(Call, I) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, Refusal>> + Send + 'static,
{
    let schema = schema_of::<I>();
    let scheduling = scheduling.clone();
    let for_reading = schema.clone();
    let handler = Handler::new(move |arguments: Map<String, Value>, context: Context| {
        let (schema, scheduling) = (for_reading.clone(), scheduling.clone());
        async move {
            context.caller.may_use_shared(super::NAME)?;
            output(match read(arguments, &schema) {
                Ok(input) => call(Call { scheduling, context: context.without_origin() }, input).await,
                Err(bad) => Err(bad.into()),
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
