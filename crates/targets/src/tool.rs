//! Calls of tools.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, join_all};
use serde_json::{Map, Value};
use switchboard_access::Caller;
use switchboard_exchange::CommandId;
use switchboard_schedule::{Delivery, Manners, Message, Outcome, Retry, Target};
use switchboard_tools::{Context, Registry, View};

/// The kind `tool`: a call of a tool of this server, by name. The message is the JSON object of its arguments.
///
/// The call carries the occurrence's key as its command id, so that a repetition within ten minutes has no second effect.
/// An answer that says it is an error is a failed delivery.
#[derive(Debug, Clone, Default)]
pub struct ToolTarget {
    registry: Arc<OnceLock<Weak<Registry>>>,
}

impl ToolTarget {
    /// Names the tools there are. Tools that make schedules need targets first, hence not from the start; only the first
    /// call counts.
    pub fn connect(&self, registry: &Arc<Registry>) {
        // Not the registry itself: its tools hold the schedules, which hold this.
        let _ = self.registry.set(Arc::downgrade(registry));
    }

    fn registry(&self) -> Result<Arc<Registry>, String> {
        self.registry
            .get()
            .and_then(Weak::upgrade)
            .ok_or_else(|| "the list of tools is not there yet".to_owned())
    }

    async fn call(&self, delivery: Delivery) -> Outcome {
        let registry = match self.registry() {
            Ok(registry) => registry,
            Err(why) => return Outcome::failed(why),
        };
        let arguments = match arguments(&delivery.message) {
            Ok(arguments) => arguments,
            Err(why) => return Outcome::refused(why),
        };
        let context = Context {
            command_id: CommandId::new(delivery.key.clone()).ok(),
            ..Context::new(Caller::local())
        };
        match registry.call(&View::ALL, &delivery.address.to, arguments, context).await {
            Ok(output) if output.is_error => Outcome::failed(output.text),
            Ok(output) => Outcome::Delivered { reply: Some(output.text) },
            Err(error) => Outcome::refused(error.to_string()),
        }
    }
}

fn arguments(message: &Message) -> Result<Map<String, Value>, String> {
    let json: Result<Value, _> = match message {
        // Whoever writes a schedule by hand writes JSON as text.
        Message::Text(text) if text.trim().is_empty() => return Ok(Map::new()),
        Message::Text(text) | Message::Json(text) => serde_json::from_str(text),
    };
    match json {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) | Err(_) => Err("the message must be the JSON object of the tool's arguments".to_owned()),
    }
}

impl Target for ToolTarget {
    fn kind(&self) -> &'static str {
        "tool"
    }

    fn manners(&self) -> Manners {
        Manners {
            ordered: false,
            at_once: 64,
            per_group: 16,
            batch: 1,
            timeout: Duration::from_mins(5),
            retry: Retry::default(),
        }
    }

    fn check(&self, to: &str, message: &Message) -> Result<(), String> {
        arguments(message)?;
        let registry = self.registry()?;
        if registry.tool(&View::ALL, to).is_some() {
            Ok(())
        } else {
            Err(format!("there is no tool '{to}': `switchboard tools` lists them"))
        }
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Outcome>> {
        join_all(deliveries.into_iter().map(|delivery| self.call(delivery))).boxed()
    }
}
