//! `interface_register`, `interface_get`, `interface_list`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_coordination::{
    Coordination, Interface, ListInterfaces, Name, QueryInterface, RegisterInterface,
};

use super::answer::Failure;
use super::tool::{Call, in_project, tool};
use crate::input::{NameParam, TextParam};
use crate::{Annotations, Tool};

pub(super) fn tools(coordination: &Coordination) -> Vec<Tool> {
    vec![
        tool(
            coordination,
            "interface_register",
            "Register interface",
            "Share a type or API definition; an existing name is replaced.",
            Annotations::SETS,
            register,
        ),
        tool(
            coordination,
            "interface_get",
            "Get interface",
            "One shared definition, by exact name.",
            Annotations::READS,
            get,
        ),
        tool(
            coordination,
            "interface_list",
            "List interfaces",
            "All shared definitions, by name.",
            Annotations::READS,
            list,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct RegisterInput {
    project: NameParam,
    session: NameParam,
    name: NameParam,
    definition: TextParam,
    /// Where it is defined
    #[serde(default)]
    file: Option<NameParam>,
}

async fn register(call: Call, input: RegisterInput) -> Result<Value, Failure> {
    let name = input.name.0;
    let command = RegisterInterface {
        session: input.session.0,
        name: name.clone(),
        definition: input.definition.0,
        file_path: input.file.map(|file| file.0),
    };
    call.send(command).await?;
    Ok(json!({"registered": name}))
}

#[derive(Deserialize, JsonSchema)]
struct GetInput {
    project: NameParam,
    name: NameParam,
}

async fn get(call: Call, input: GetInput) -> Result<Value, Failure> {
    let name = input.name.0;
    let interface = call.send(QueryInterface { name: name.clone() }).await?;
    Ok(shown(&name, &interface))
}

#[derive(Deserialize, JsonSchema)]
struct ListInput {
    project: NameParam,
}

async fn list(call: Call, _: ListInput) -> Result<Value, Failure> {
    let interfaces = call.send(ListInterfaces).await?;
    let shown = interfaces.iter().map(|named| shown(&named.name, &named.interface));
    Ok(json!({"interfaces": shown.collect::<Vec<_>>()}))
}

fn shown(name: &Name, interface: &Interface) -> Value {
    json!({
        "name": name,
        "definition": interface.definition,
        "file": interface.file_path,
        "registered_by": interface.registered_by,
        "registered_at": interface.registered_at,
    })
}

in_project!(RegisterInput, GetInput, ListInput);
