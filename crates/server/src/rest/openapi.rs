//! The list of REST's routes, from which both the router and its description are made: there is no route without one.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::handler::Handler;
use axum::response::IntoResponse as _;
use axum::routing::{MethodFilter, get, on};
use http::{Method, header};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::problem::ProblemBody;
use crate::serve::Door;

const PATH: &str = "/api/openapi.json";

/// Routes, and what is said of each.
pub(super) struct Api {
    router: Router<Door>,
    paths: Map<String, Value>,
    schemas: SchemaGenerator,
}

/// What is said of one route.
pub(super) struct Operation {
    summary: &'static str,
    #[expect(clippy::type_complexity, reason = "a list of steps that need the one generator of schemas")]
    steps: Vec<Box<dyn FnOnce(&mut SchemaGenerator, &mut Map<String, Value>)>>,
}

impl Operation {
    pub(super) fn of(summary: &'static str) -> Self {
        Self { summary, steps: Vec::new() }
    }

    /// The fields of `T` come after the `?`.
    pub(super) fn query<T: JsonSchema>(self) -> Self {
        self.step(|schemas, operation| {
            let schema = schemas.root_schema_for::<T>();
            push(operation, "parameters", parameters(&schema));
        })
    }

    /// The variable part of the path.
    pub(super) fn path(self, name: &'static str, description: &'static str) -> Self {
        self.step(move |_, operation| {
            let parameter = json!({
                "name": name, "in": "path", "required": true, "description": description,
                "schema": {"type": "string"},
            });
            push(operation, "parameters", vec![parameter]);
        })
    }

    /// The body.
    pub(super) fn takes<T: JsonSchema>(self) -> Self {
        self.step(|schemas, operation| {
            let schema = schemas.subschema_for::<T>();
            operation.insert(
                "requestBody".to_owned(),
                json!({"content": {"application/json": {"schema": schema}}}),
            );
        })
    }

    /// The answer if all is well.
    pub(super) fn answers<T: JsonSchema>(self, status: u16) -> Self {
        self.step(move |schemas, operation| {
            let schema = schemas.subschema_for::<T>();
            let answer = json!({"description": "Done", "content": {"application/json": {"schema": schema}}});
            respond(operation, &status.to_string(), answer);
        })
    }

    /// The answer is a stream of events, each with `T` as data.
    pub(super) fn streams<T: JsonSchema>(self, description: &'static str) -> Self {
        self.step(move |schemas, operation| {
            let schema = schemas.subschema_for::<T>();
            let answer =
                json!({"description": description, "content": {"text/event-stream": {"schema": schema}}});
            respond(operation, "200", answer);
        })
    }

    fn step(mut self, step: impl FnOnce(&mut SchemaGenerator, &mut Map<String, Value>) + 'static) -> Self {
        self.steps.push(Box::new(step));
        self
    }

    fn into_json(self, schemas: &mut SchemaGenerator) -> Value {
        let mut operation = Map::new();
        operation.insert("summary".to_owned(), self.summary.into());
        for step in self.steps {
            step(schemas, &mut operation);
        }
        let problem = schemas.subschema_for::<ProblemBody>();
        let refusal = json!({"description": "What is wrong, and what would be right",
            "content": {"application/json": {"schema": problem}}});
        respond(&mut operation, "default", refusal);
        Value::Object(operation)
    }
}

fn push(operation: &mut Map<String, Value>, key: &str, more: Vec<Value>) {
    if let Value::Array(list) = operation.entry(key).or_insert_with(|| json!([])) {
        list.extend(more);
    }
}

fn respond(operation: &mut Map<String, Value>, status: &str, answer: Value) {
    if let Value::Object(responses) = operation.entry("responses").or_insert_with(|| json!({})) {
        responses.insert(status.to_owned(), answer);
    }
}

fn parameters(schema: &Schema) -> Vec<Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        json!({
            "name": name,
            "in": "query",
            "required": required.is_some_and(|required| required.iter().any(|field| field == name)),
            "description": description.unwrap_or_default(),
            "schema": schema,
        })
    };
    properties.into_iter().flatten().map(parameter).collect()
}

impl Default for Api {
    fn default() -> Self {
        let settings = SchemaSettings::draft2020_12()
            .with(|settings| settings.definitions_path = "/components/schemas".into());
        Self { router: Router::new(), paths: Map::new(), schemas: settings.into_generator() }
    }
}

impl Api {
    /// Adds a route. `GET`, `POST`, `PATCH` and `DELETE` are the methods there are.
    pub(super) fn route<H, T>(
        mut self,
        method: Method,
        path: &'static str,
        handler: H,
        operation: Operation,
    ) -> Self
    where
        H: Handler<T, Door>,
        T: 'static,
    {
        let filter = match method {
            Method::POST => MethodFilter::POST,
            Method::PATCH => MethodFilter::PATCH,
            Method::DELETE => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        self.router = self.router.route(path, on(filter, handler));
        let operation = operation.into_json(&mut self.schemas);
        self.describe(&method, path, operation);
        self
    }

    fn describe(&mut self, method: &Method, path: &str, operation: Value) {
        if let Value::Object(methods) = self.paths.entry(path).or_insert_with(|| json!({})) {
            methods.insert(method.as_str().to_ascii_lowercase(), operation);
        }
    }

    /// The routes, and one more that describes them all.
    pub(super) fn into_router(mut self) -> Router<Door> {
        let summary =
            json!({"summary": "This description", "responses": {"200": {"description": "OpenAPI 3.1"}}});
        self.describe(&Method::GET, PATH, summary);
        let document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Switchboard",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Agents that work side by side. The tools themselves are reached over MCP at /mcp, or one \
                                by one at /api/tools/{name}.",
            },
            "security": [{}, {"key": []}],
            "paths": self.paths,
            "components": {
                "schemas": self.schemas.take_definitions(true),
                "securitySchemes": {"key": {
                    "type": "http", "scheme": "bearer",
                    "description": "A key made by `switchboard key create`. Not asked for on this machine, unless configured.",
                }},
            },
        });
        let document: Arc<str> = document.to_string().into();
        let describe = move || {
            let body = Bytes::copy_from_slice(document.as_bytes());
            async move { ([(header::CONTENT_TYPE, "application/json")], body).into_response() }
        };
        self.router.route(PATH, get(describe))
    }
}
