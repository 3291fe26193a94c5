//! Messages to agents that work side by side.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, join_all};
use switchboard_coordination::{Coordination, Name, PostMessage, Rejection, Text};
use switchboard_exchange::{CommandError, CommandId};
use switchboard_schedule::{Delivery, Manners, Message, Outcome, Retry, Target};

/// The kind `inbox`: a message to a session of a project, written `project/session`. An agent of A2AMCP finds it in
/// `check_messages`, any other in `message_read`.
///
/// The sender is the occurrence, such as `schedule-93@2025-01-02T09:00:00Z`. A session that is not there now may come back,
/// so its messages are tried again.
#[derive(Debug, Clone)]
pub struct InboxTarget {
    coordination: Coordination,
}

impl InboxTarget {
    /// The inboxes of `coordination`.
    pub fn new(coordination: Coordination) -> Self {
        Self { coordination }
    }

    async fn post(&self, delivery: Delivery) -> Outcome {
        let (project, command) = match command(&delivery) {
            Ok(parsed) => parsed,
            Err(why) => return Outcome::refused(why),
        };
        let id = CommandId::new(delivery.key.clone()).ok();
        match self.coordination.send(&project, command, id).await {
            Ok(_) => Outcome::delivered(),
            Err(CommandError::Rejected(Rejection::AgentNotFound { session })) => {
                Outcome::failed(format!("no session '{session}' is registered in project '{project}'"))
            }
            Err(error) => Outcome::failed(error.to_string()),
        }
    }
}

fn command(delivery: &Delivery) -> Result<(Name, PostMessage), String> {
    let (project, session) = parse(&delivery.address.to)?;
    let command = PostMessage {
        from: Name::new(&*delivery.key).map_err(|why| why.to_string())?,
        to: session,
        message_type: Name::new("schedule").map_err(|why| why.to_string())?,
        content: Text::new(delivery.message.as_str()).map_err(|why| why.to_string())?,
    };
    Ok((project, command))
}

/// Reads `project/session`. A project's name may hold slashes, that of a session may not.
fn parse(to: &str) -> Result<(Name, Name), String> {
    let (project, session) =
        to.rsplit_once('/').ok_or_else(|| format!("'{to}' names no inbox: write it as 'project/session'"))?;
    let name = |text: &str| Name::new(text).map_err(|why| format!("'{to}' names no inbox: {why}"));
    Ok((name(project)?, name(session)?))
}

impl Target for InboxTarget {
    fn kind(&self) -> &'static str {
        "inbox"
    }

    fn manners(&self) -> Manners {
        Manners {
            ordered: true,
            at_once: 256,
            per_group: 1,
            batch: 1,
            timeout: Duration::from_secs(30),
            // About a day: whoever is away longer does not want to be woken for what is past.
            retry: Retry { first_ms: 5_000, factor: 2, max_ms: 600_000, attempts: Some(150) },
        }
    }

    fn check(&self, to: &str, _message: &Message) -> Result<(), String> {
        parse(to).map(drop)
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Outcome>> {
        join_all(deliveries.into_iter().map(|delivery| self.post(delivery))).boxed()
    }
}
