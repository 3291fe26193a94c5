//! Every tool: its name, schema, annotations and handler; the toolsets they belong to; and how a tool is found.
//!
//! A tool is defined once and is callable from MCP, from REST and from the command line. Nothing here knows a transport.

mod context;
pub use context::{Context, Origin, Progress, Session, Variables};

mod registry;
pub use registry::{
    Annotations, CallError, Definition, Handler, Output, Registry, RegistryError, Tool, Toolset, View,
    ViewError,
};

mod catalogue;
pub use catalogue::{Services, catalogue, estimated_tokens};

mod echo;
pub use echo::echo;

mod answer;
mod input;
mod waiting;

mod bus;
pub use bus::{NAME as BUS, json_of_page};

pub mod agtos;
pub mod schedule;

mod promptyoself;
pub use promptyoself::{
    DefaultAgents, Executor, NAME as PROMPTYOSELF, Options as PromptYoSelfOptions, PromptYoSelf,
};

mod a2amcp;
mod coordination;
mod discovery;
mod search;
