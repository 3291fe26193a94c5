//! How a tool of this catalogue is put together: aliases, liberties with types, and errors in its own shape.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use switchboard_coordination::{Coordination, CoordinationError, Name, Project};
use switchboard_exchange::Decide;

use super::answer::{Failure, output};
use crate::input::{read, schema_of};
use crate::{Annotations, Context, Definition, Handler, Tool};

/// A tool's fixed part.
pub(super) struct Spec {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) annotations: Annotations,
    /// `(document's name, other name)` (contract §6.1). The document's wins.
    pub(super) aliases: &'static [(&'static str, &'static str)],
    /// Parameters that the document requires and that are accepted absent (contract §6.1).
    pub(super) may_be_absent: &'static [&'static str],
}

/// The arguments of every tool of this catalogue name a project.
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
        let sent = self.coordination.send(&self.project, command, self.context.command_id.clone()).await;
        sent.map_err(|error| self.refused(error))
    }

    pub(super) fn refused(&self, error: CoordinationError) -> Failure {
        Failure::Refused { project: self.project.clone(), error }
    }
}

/// Puts a tool together.
pub(super) fn tool<I, F, Fut>(coordination: &Coordination, spec: Spec, call: F) -> Tool
where
    I: DeserializeOwned + JsonSchema + InProject + Send + 'static,
    F: Fn(Call, I) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, Failure>> + Send + 'static,
{
    let schema = open(schema_of::<I>());
    let coordination = coordination.clone();
    let for_reading = Arc::new(relaxed(&schema, spec.may_be_absent));
    let aliases = spec.aliases;
    let handler = Handler::new(move |arguments: Map<String, Value>, context: Context| {
        let schema = for_reading.clone();
        let coordination = coordination.clone();
        async move {
            let input: I = match read(by_document(arguments, aliases), &schema) {
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
            name: spec.name,
            title: spec.title,
            description: spec.description,
            input_schema: schema,
            output_schema: None,
            annotations: spec.annotations,
        },
        toolset: super::NAME,
        handler,
    }
}

fn open(schema: Arc<Map<String, Value>>) -> Arc<Map<String, Value>> {
    let mut schema = Arc::unwrap_or_clone(schema);
    schema.insert("additionalProperties".to_owned(), true.into());
    Arc::new(schema)
}

fn relaxed(schema: &Map<String, Value>, may_be_absent: &[&str]) -> Map<String, Value> {
    let mut schema = schema.clone();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !may_be_absent.iter().any(|absent| name == absent));
    }
    schema
}

fn by_document(mut arguments: Map<String, Value>, aliases: &[(&str, &str)]) -> Map<String, Value> {
    for (document, other) in aliases {
        if arguments.get(*document).is_none_or(Value::is_null)
            && let Some(value) = arguments.remove(*other)
        {
            arguments.insert((*document).to_owned(), value);
        }
    }
    arguments
}

/// Says of an input type which field holds its project.
macro_rules! in_project {
    ($($input:ty),+ $(,)?) => {
        $(impl super::tool::InProject for $input {
            fn project(&self) -> &switchboard_coordination::Name {
                &self.project_id.0
            }
        })+
    };
}
pub(super) use in_project;
