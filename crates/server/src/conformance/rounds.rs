//! Calls in several rounds: the server answers with what it needs, and the client calls again with it.

use std::sync::PoisonError;

use rand::RngExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ErrorData, InputRequiredResult, InputResponses};
use serde_json::{Map, Value, json};

use super::asking::sampling;
use super::tools::{answer, text};
use super::{Context, Fixtures, from_json};

impl Fixtures {
    pub(super) fn call_in_rounds(
        &self,
        call: &CallToolRequestParams,
        context: &Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = call.input_responses.as_ref();
        let done = |said: &str| answer(json!([text(said)]));
        let name = || json!({"user_name": elicitation("What is your name?", "name", "string")});
        match (&*call.name, given) {
            ("test_input_required_result_elicitation", None) => ask_for(name(), None),
            ("test_input_required_result_elicitation", Some(given)) => match given.get("user_name") {
                Some(answer) => done(&format!("Hello, {}!", content_of(answer, "name")?)),
                None => ask_for(name(), None),
            },
            ("test_input_required_result_sampling", None) => {
                let question = sampling("What is the capital of France?", 100);
                ask_for(
                    json!({"capital_question": {"method": "sampling/createMessage", "params": question}}),
                    None,
                )
            }
            ("test_input_required_result_sampling", Some(given)) => done(&said(given)),
            ("test_input_required_result_list_roots", None) => {
                ask_for(json!({"client_roots": {"method": "roots/list", "params": {}}}), None)
            }
            ("test_input_required_result_list_roots", Some(given)) => done(&said(given)),
            ("test_input_required_result_request_state", None) => {
                let confirm = elicitation("Please confirm", "ok", "boolean");
                ask_for(json!({"confirm": confirm}), Some(self.new_state("confirm")))
            }
            ("test_input_required_result_request_state", Some(_)) => {
                self.check_state(call)?;
                done("state-ok")
            }
            ("test_input_required_result_multiple_inputs", None) => {
                let greeting = sampling("Generate a greeting", 50);
                let requests = json!({
                    "user_name": elicitation("What is your name?", "name", "string"),
                    "greeting": {"method": "sampling/createMessage", "params": greeting},
                    "client_roots": {"method": "roots/list", "params": {}},
                });
                ask_for(requests, Some(self.new_state("inputs")))
            }
            ("test_input_required_result_multiple_inputs", Some(given)) => {
                self.check_state(call)?;
                done(&said(given))
            }
            ("test_input_required_result_multi_round", None) => {
                let step = elicitation("Step 1: What is your name?", "name", "string");
                ask_for(json!({"step1": step}), Some(self.new_state("step1")))
            }
            ("test_input_required_result_multi_round", Some(given)) => {
                self.check_state(call)?;
                if given.contains_key("step2") {
                    return done(&said(given));
                }
                let step = elicitation("Step 2: What is your favorite color?", "color", "string");
                ask_for(json!({"step2": step}), Some(self.new_state("step2")))
            }
            ("test_input_required_result_tampered_state", None) => {
                let sure = elicitation("Are you sure?", "ok", "boolean");
                ask_for(json!({"sure": sure}), Some(self.new_state("sure")))
            }
            ("test_input_required_result_tampered_state", Some(_)) => {
                self.check_state(call)?;
                done("The state is as it was.")
            }
            ("test_input_required_result_capabilities", _) => ask_for(what_the_client_can(context), None),
            (unknown, _) => Err(ErrorData::invalid_params(format!("Unknown tool: {unknown}"), None)),
        }
    }

    /// A state that only this server can have handed out.
    fn new_state(&self, what: &str) -> String {
        let state = format!("{what}-{:032x}", rand::rng().random::<u128>());
        self.states.lock().unwrap_or_else(PoisonError::into_inner).insert(state.clone());
        state
    }

    fn check_state(&self, call: &CallToolRequestParams) -> Result<(), ErrorData> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        match &call.request_state {
            Some(state) if states.contains(state) => Ok(()),
            _ => Err(ErrorData::invalid_params("requestState is not one that this server handed out", None)),
        }
    }
}

pub(super) fn elicitation(message: &str, field: &str, kind: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": {
        "type": "object", "properties": {field: {"type": kind}}, "required": [field],
    }}})
}

pub(super) fn ask_for(requests: Value, state: Option<String>) -> Result<CallToolResponse, ErrorData> {
    input_required(requests, state).map(Into::into)
}

pub(super) fn input_required(
    requests: Value,
    state: Option<String>,
) -> Result<InputRequiredResult, ErrorData> {
    Ok(InputRequiredResult::new(Some(from_json(requests)?), state))
}

/// The field of an accepted elicitation.
fn content_of(answer: &Value, field: &str) -> Result<String, ErrorData> {
    let content = answer.get("content").and_then(|content| content.get(field)).and_then(Value::as_str);
    content.map(str::to_owned).ok_or_else(|| {
        ErrorData::invalid_params(format!("the answer has no content with a text '{field}'"), None)
    })
}

fn said(given: &InputResponses) -> String {
    serde_json::to_string(given).unwrap_or_default()
}

fn what_the_client_can(context: &Context) -> Value {
    let can = context.client_capabilities().unwrap_or_default();
    let mut requests = Map::new();
    if can.elicitation.is_some() {
        requests.insert("name".to_owned(), elicitation("What is your name?", "name", "string"));
    }
    if can.sampling.is_some() {
        let params = sampling("Say something", 50);
        requests.insert("word".to_owned(), json!({"method": "sampling/createMessage", "params": params}));
    }
    if can.roots.is_some() {
        requests.insert("roots".to_owned(), json!({"method": "roots/list", "params": {}}));
    }
    Value::Object(requests)
}
