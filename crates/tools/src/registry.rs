//! The list of all tools, and the way to call one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use switchboard_access::Denied;

use crate::Context;

/// A tool: what it is called, what it takes, and what it does.
#[derive(Debug, Clone)]
pub struct Tool {
    /// What clients are told.
    pub definition: Definition,
    /// The toolset it belongs to.
    pub toolset: &'static str,
    /// What it does.
    pub handler: Handler,
}

/// What clients are told about a tool. It costs every agent that lists it context, so it is short and exact.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// 1 to 128 characters of `A-Z a-z 0-9 _ . -`.
    pub name: &'static str,
    /// A name for people.
    pub title: &'static str,
    /// One or two sentences for a model.
    pub description: &'static str,
    /// JSON Schema of the arguments, an object.
    pub input_schema: Arc<Map<String, Value>>,
    /// JSON Schema of structured answers, an object; none if nothing is promised about them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Map<String, Value>>>,
    /// What a client may assume of a call.
    pub annotations: Annotations,
}

/// What a client may assume of a call (MCP tool annotations).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the protocol's four independent hints")]
pub struct Annotations {
    /// It changes nothing.
    pub read_only_hint: bool,
    /// It may destroy something.
    pub destructive_hint: bool,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent_hint: bool,
    /// It reaches beyond this server.
    pub open_world_hint: bool,
}

impl Annotations {
    /// It only looks.
    pub const READS: Self =
        Self { read_only_hint: true, destructive_hint: false, idempotent_hint: true, open_world_hint: false };
    /// It adds or changes something.
    pub const WRITES: Self = Self {
        read_only_hint: false,
        destructive_hint: false,
        idempotent_hint: false,
        open_world_hint: false,
    };
    /// It changes something; a second call with the same arguments changes nothing more.
    pub const SETS: Self = Self { idempotent_hint: true, ..Self::WRITES };
    /// It removes something.
    pub const DESTROYS: Self = Self { destructive_hint: true, ..Self::WRITES };
}

type Call =
    dyn Fn(Map<String, Value>, Context) -> BoxFuture<'static, Result<Output, CallError>> + Send + Sync;

/// What a tool does with arguments. Bad arguments are its own to answer, in its catalogue's shape.
#[derive(Clone)]
pub struct Handler(Arc<Call>);

impl Handler {
    /// Wraps an async function of arguments and context.
    pub fn new<F, Fut>(call: F) -> Self
    where
        F: Fn(Map<String, Value>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, CallError>> + Send + 'static,
    {
        Self(Arc::new(move |arguments, context| Box::pin(call(arguments, context))))
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

/// What a tool answers: the content of an MCP tool result.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// For the model: the one text item of the result.
    pub text: String,
    /// For programs: `structuredContent`; none where a replaced system has none.
    pub structured: Option<Value>,
    /// `isError`.
    pub is_error: bool,
}

impl Output {
    /// A plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), structured: None, is_error: false }
    }

    /// JSON as text only.
    pub fn json_text(value: &Value) -> Self {
        Self::text(value.to_string())
    }

    /// JSON, as structured content and as text.
    pub fn structured(value: Value) -> Self {
        Self { text: value.to_string(), structured: Some(value), is_error: false }
    }

    /// The same, said to be an error.
    #[must_use]
    pub fn error(self) -> Self {
        Self { is_error: true, ..self }
    }
}

/// Why a call did not reach a tool, or was not answered by it. Edges turn this into a protocol error.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No such tool in this view (JSON-RPC −32602 `Unknown tool: <name>`).
    #[error("Unknown tool: {name}")]
    UnknownTool {
        /// What was asked for.
        name: String,
    },
    /// The caller's key does not go so far.
    #[error(transparent)]
    Denied(#[from] Denied),
}

/// A group of tools that are listed together.
#[derive(Debug, Clone)]
pub struct Toolset {
    /// As in `/mcp/{toolset}`: lower-case letters, digits and `-`.
    pub name: &'static str,
    /// What it is for, in one sentence.
    pub summary: &'static str,
    /// Told to a model that connects to this toolset alone; empty for none.
    pub instructions: &'static str,
    /// `serverInfo.name` where this toolset is served alone.
    pub server_name: &'static str,
    /// `serverInfo.version` where this toolset is served alone.
    pub server_version: &'static str,
    /// Whether clients may have an MCP session where this toolset is served alone. Otherwise each request stands for itself,
    /// and is answered as JSON unless the client reads nothing but events.
    pub sessions: bool,
}

/// Which toolsets an endpoint shows: `all`, or names joined by `+`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct View(Option<Arc<[Box<str>]>>);

impl View {
    /// Every toolset.
    pub const ALL: Self = Self(None);

    /// The names of the toolsets shown; none for all.
    pub fn toolsets(&self) -> Option<&[Box<str>]> {
        self.0.as_deref()
    }

    /// Whether it shows `toolset`.
    pub fn shows(&self, toolset: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.iter().any(|name| **name == *toolset))
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("all"),
            Some(names) => f.write_str(&names.join("+")),
        }
    }
}

/// A text that names no view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no toolset '{name}'; there are: all, {known}")]
pub struct ViewError {
    name: String,
    known: String,
}

/// A registry that contradicts itself; a mistake of the program, found when it starts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two tools with one name.
    #[error("two tools are called '{0}'")]
    Duplicate(&'static str),
    /// A tool of a toolset that does not exist.
    #[error("tool '{tool}' belongs to the unknown toolset '{toolset}'")]
    UnknownToolset {
        /// The tool.
        tool: &'static str,
        /// Its toolset.
        toolset: &'static str,
    },
}

/// All tools and toolsets. Made once at start.
#[derive(Debug, Default)]
pub struct Registry {
    toolsets: BTreeMap<&'static str, Toolset>,
    tools: BTreeMap<&'static str, Tool>,
}

impl Registry {
    /// Puts toolsets and their tools together.
    pub fn new(
        toolsets: impl IntoIterator<Item = Toolset>,
        tools: impl IntoIterator<Item = Tool>,
    ) -> Result<Self, RegistryError> {
        let mut registry = Self {
            toolsets: toolsets.into_iter().map(|set| (set.name, set)).collect(),
            tools: BTreeMap::new(),
        };
        for tool in tools {
            let name = tool.definition.name;
            if !registry.toolsets.contains_key(tool.toolset) {
                return Err(RegistryError::UnknownToolset { tool: name, toolset: tool.toolset });
            }
            if registry.tools.insert(name, tool).is_some() {
                return Err(RegistryError::Duplicate(name));
            }
        }
        Ok(registry)
    }

    /// The view called `name`: `all`, a toolset, or several joined by `+`.
    pub fn view(&self, name: &str) -> Result<View, ViewError> {
        if name == "all" {
            return Ok(View::ALL);
        }
        let names: Box<[Box<str>]> = name.split('+').map(Box::from).collect();
        match names.iter().find(|name| !self.toolsets.contains_key(&***name)) {
            None => Ok(View(Some(names.into()))),
            Some(unknown) => Err(ViewError {
                name: unknown.to_string(),
                known: self.toolsets.keys().copied().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// The toolsets, by name.
    pub fn toolsets(&self) -> impl Iterator<Item = &Toolset> {
        self.toolsets.values()
    }

    /// The toolset that `view` shows, if it shows exactly one.
    pub fn single(&self, view: &View) -> Option<&Toolset> {
        match view.toolsets() {
            Some([name]) => self.toolsets.get(&**name),
            _ => None,
        }
    }

    /// The tools that `view` shows, by name.
    pub fn tools<'a>(&'a self, view: &'a View) -> impl Iterator<Item = &'a Tool> {
        self.tools.values().filter(|tool| view.shows(tool.toolset))
    }

    /// The tool called `name`, if `view` shows it.
    pub fn tool(&self, view: &View, name: &str) -> Option<&Tool> {
        self.tools.get(name).filter(|tool| view.shows(tool.toolset))
    }

    /// Calls the tool called `name` of `view`.
    ///
    /// # Errors
    /// See [`CallError`]; what a tool itself has to complain about is an [`Output`] with `is_error`.
    pub async fn call(
        &self,
        view: &View,
        name: &str,
        arguments: Map<String, Value>,
        context: Context,
    ) -> Result<Output, CallError> {
        let Some(tool) = self.tool(view, name) else {
            return Err(CallError::UnknownTool { name: name.to_owned() });
        };
        context.caller.may_use_toolset(tool.toolset)?;
        (tool.handler.0)(arguments, context).await
    }
}
