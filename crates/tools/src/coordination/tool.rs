//! How a tool of this toolset is put together.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use switchboard_coordination::{Coordination, Name, Patience, Project};
use switchboard_exchange::{Decide, SignedDuration};

use super::answer::{Failure, output};
use crate::input::{BadArguments, read, schema_of};
use crate::waiting::LONGEST_WAIT_SECONDS;
use crate::{Annotations, Context, Definition, Handler, Tool};

/// The arguments of every tool of this toolset name a project.
pub(super) trait InProject {
    fn project(&self) -> &Name;
}

/// One call: the service, and what is known of the call.
pub(super) struct Call {
    pub(super) coordination: Coordination,
    pub(super) project: Name,
    pub(super) context: Context,
}

impl Call {
    /// Sends a command that does not wait.
    pub(super) async fn send<C>(&self, command: C) -> Result<<Project as Decide<C>>::Reply, Failure>
    where
        Project: Decide<C>,
        C: Send + 'static,
    {
        Ok(self.coordination.send(&self.project, command, self.context.command_id.clone()).await?)
    }

    /// Waits for so many seconds; none for 0.
    pub(super) fn patience(&self, seconds: i64, message: String) -> Result<Option<Patience>, Failure> {
        match seconds {
            0 => Ok(None),
            1..=LONGEST_WAIT_SECONDS => {
                let time = SignedDuration::from_secs(seconds);
                Ok(Some(crate::waiting::patience(&self.context, time, message)))
            }
            _ => {
                let why = format!("must be 0 to {LONGEST_WAIT_SECONDS}; wait again for longer");
                Err(BadArguments::invalid("wait_seconds", why).into())
            }
        }
    }
}

/// Puts a tool together.
pub(super) fn tool<I, F, Fut>(
    coordination: &Coordination,
    name: &'static str,
    title: &'static str,
    description: &'static str,
    annotations: Annotations,
    call: F,
) -> Tool
where
    I: DeserializeOwned + JsonSchema + InProject + Send + 'static,
    F: Fn(Call, I) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, Failure>> + Send + 'static,
{
    let schema = schema_of::<I>();
    let coordination = coordination.clone();
    let for_reading = schema.clone();
    let handler = Handler::new(move |arguments: Map<String, Value>, context: Context| {
        let schema = for_reading.clone();
        let coordination = coordination.clone();
        async move {
            let input: I = match read(arguments, &schema) {
                Ok(input) => input,
                Err(bad) => return Ok(output(Err(bad.into()))),
            };
            let project = input.project().clone();
            context.caller.may_use_project(project.as_str())?;
            Ok(output(call(Call { coordination, project, context: context.without_origin() }, input).await))
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

/// Says of an input type which field holds its project.
macro_rules! in_project {
    ($($input:ty),+ $(,)?) => {
        $(impl super::tool::InProject for $input {
            fn project(&self) -> &switchboard_coordination::Name {
                &self.project.0
            }
        })+
    };
}
pub(super) use in_project;
