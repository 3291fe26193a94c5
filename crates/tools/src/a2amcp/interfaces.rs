//! `register_interface`, `query_interface`, `list_interfaces` (contract §3.5).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_coordination::{Coordination, Interface, ListInterfaces, QueryInterface, RegisterInterface};

use super::answer::{Failure, seconds};
use super::tool::{Call, Spec, in_project, tool};
use crate::input::{NameParam, TextParam};
use crate::{Annotations, Tool};

pub(super) fn tools(coordination: &Coordination) -> Vec<Tool> {
    vec![
        tool(
            coordination,
            Spec {
                name: "register_interface",
                title: "Register interface",
                description: "Share an interface or type definition with all agents.",
                annotations: Annotations::WRITES,
                aliases: &[("interface_name", "name")],
                may_be_absent: &[],
            },
            register,
        ),
        tool(
            coordination,
            Spec {
                name: "query_interface",
                title: "Query interface",
                description: "Get a shared interface definition by name.",
                annotations: Annotations::READS,
                aliases: &[("interface_name", "name")],
                may_be_absent: &[],
            },
            query,
        ),
        tool(
            coordination,
            Spec {
                name: "list_interfaces",
                title: "List interfaces",
                description: "All shared interface definitions.",
                annotations: Annotations::READS,
                aliases: &[],
                may_be_absent: &[],
            },
            list,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct RegisterOne {
    /// Project identifier
    project_id: NameParam,
    /// Agent's session name
    session_name: NameParam,
    /// Name of interface
    interface_name: NameParam,
    /// Complete definition
    definition: TextParam,
    /// Where it's defined
    #[serde(default)]
    file_path: Option<NameParam>,
}

async fn register(call: Call, input: RegisterOne) -> Result<Value, Failure> {
    let name = input.interface_name.0;
    let command = RegisterInterface {
        session: input.session_name.0,
        name: name.clone(),
        definition: input.definition.0,
        file_path: input.file_path.map(|path| path.0),
    };
    call.send(command).await?;
    Ok(json!({
        "status": "registered",
        "interface_name": name,
        "message": "Interface registered and available to all agents",
    }))
}

#[derive(Deserialize, JsonSchema)]
struct QueryOne {
    /// Project identifier
    project_id: NameParam,
    /// Name to query
    interface_name: NameParam,
}

async fn query(call: Call, input: QueryOne) -> Result<Value, Failure> {
    let interface = call.send(QueryInterface { name: input.interface_name.0 }).await?;
    Ok(shown(&interface))
}

#[derive(Deserialize, JsonSchema)]
struct All {
    /// Project identifier
    project_id: NameParam,
}

async fn list(call: Call, _: All) -> Result<Value, Failure> {
    let interfaces = call.send(ListInterfaces).await?;
    let by_name: Map<String, Value> = interfaces
        .into_iter()
        .map(|named| (named.name.as_str().to_owned(), shown(&named.interface)))
        .collect();
    Ok(Value::Object(by_name))
}

fn shown(interface: &Interface) -> Value {
    json!({
        "definition": interface.definition,
        "registered_by": interface.registered_by,
        "file_path": interface.file_path,
        "timestamp": seconds(interface.registered_at),
    })
}

in_project!(RegisterOne, QueryOne, All);
