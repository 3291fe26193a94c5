//! What each agent has to do.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_exchange::Decision;

use crate::project::{Project, Rule};
use crate::stamp::Stamp;
use crate::{AgentView, Event, Name, Rejection, Text, TodoId};

/// How far a todo is. Any may follow any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
    /// Cannot go on.
    Blocked,
}

/// How urgent a todo is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// 1 in the A2AMCP catalogue.
    #[default]
    High,
    /// 2.
    Medium,
    /// 3.
    Low,
}

impl Priority {
    /// 1 for high to 3 for low.
    pub const fn number(self) -> i64 {
        match self {
            Self::High => 1,
            Self::Medium => 2,
            Self::Low => 3,
        }
    }
}

/// One todo of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// Its id, unique in the project.
    pub id: TodoId,
    /// What is to be done.
    pub text: Text,
    /// How far it is.
    pub status: TodoStatus,
    /// How urgent it is.
    pub priority: Priority,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was done; none while it is not.
    pub completed_at: Option<Timestamp>,
}

/// An agent and its todos.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTodos {
    /// The agent.
    pub agent: AgentView,
    /// Its todos, oldest first.
    pub todos: Vec<Todo>,
}

/// One more todo.
#[derive(Debug, Clone)]
pub struct AddTodo {
    /// Whose.
    pub session: Name,
    /// What is to be done.
    pub text: Text,
    /// How urgent it is.
    pub priority: Priority,
}

impl AddTodo {
    /// The most todos of one agent.
    const MOST: usize = 10_000;
    /// The most text in them.
    const MOST_BYTES: usize = 16 << 20;
}

impl Rule for AddTodo {
    type Reply = TodoId;
    const NAME: &'static str = "todo_add";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, TodoId>, Rejection> {
        let todos = &project.agent(&self.session)?.todos;
        let full = |limit| Rejection::Full {
            what: format!("the todo list of '{}'", self.session),
            limit,
            remedy: "register again to begin a new list",
        };
        if todos.len() >= Self::MOST {
            return Err(full(Self::MOST));
        }
        if todos.iter().map(|todo| todo.text.as_str().len()).sum::<usize>() >= Self::MOST_BYTES {
            return Err(full(Self::MOST_BYTES));
        }
        let id = TodoId(Stamp::next(now, project.last_stamp));
        let event = Event::TodoAdded {
            session: self.session.clone(),
            id,
            text: self.text.clone(),
            priority: self.priority,
            at: now,
        };
        Ok(Decision::event(event, id))
    }
}

/// A todo is further on.
#[derive(Debug, Clone)]
pub struct UpdateTodo {
    /// Whose.
    pub session: Name,
    /// Which, as the caller wrote it.
    pub id: String,
    /// How far it is now.
    pub status: TodoStatus,
}

impl Rule for UpdateTodo {
    type Reply = TodoId;
    const NAME: &'static str = "todo_update";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, TodoId>, Rejection> {
        let agent = project.agent(&self.session)?;
        let todo = TodoId::parse(&self.id)
            .and_then(|id| agent.todos.iter().find(|todo| todo.id == id))
            .ok_or_else(|| Rejection::TodoNotFound { id: self.id.clone() })?;
        let mut events = vec![Event::TodoUpdated {
            session: self.session.clone(),
            id: todo.id,
            status: self.status,
            at: now,
        }];
        if self.status == TodoStatus::Completed {
            events.extend(project.notice("todo_completed", &self.session, now, || {
                format!("Agent {} completed: {}", self.session, todo.text)
            }));
        }
        Ok(Decision::events(events, todo.id))
    }
}

/// The caller's todos, oldest first.
#[derive(Debug, Clone)]
pub struct MyTodos {
    /// Whose.
    pub session: Name,
}

impl Rule for MyTodos {
    type Reply = Vec<Todo>;
    const NAME: &'static str = "todo_mine";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, _now: Timestamp) -> Result<Decision<Event, Vec<Todo>>, Rejection> {
        Ok(Decision::unchanged(project.agent(&self.session)?.todos.clone()))
    }
}

/// All agents' todos, in the order of registration.
#[derive(Debug, Clone)]
pub struct AllTodos;

impl Rule for AllTodos {
    type Reply = Vec<AgentTodos>;
    const NAME: &'static str = "todo_list";

    fn decide(
        &self,
        project: &Project,
        _now: Timestamp,
    ) -> Result<Decision<Event, Vec<AgentTodos>>, Rejection> {
        let todos = project
            .agents
            .iter()
            .map(|(session, agent)| AgentTodos { agent: agent.view(session), todos: agent.todos.clone() })
            .collect();
        Ok(Decision::unchanged(todos))
    }
}

impl Project {
    pub(crate) fn apply_todo_added(
        &mut self,
        session: &Name,
        id: TodoId,
        text: &Text,
        priority: Priority,
        at: Timestamp,
    ) {
        self.last_stamp = self.last_stamp.max(id.0);
        let todo = Todo {
            id,
            text: text.clone(),
            status: TodoStatus::Pending,
            priority,
            created_at: at,
            completed_at: None,
        };
        if let Some(agent) = self.agents.get_mut(session) {
            agent.todos.push(todo);
        }
    }

    pub(crate) fn apply_todo_updated(
        &mut self,
        session: &Name,
        id: TodoId,
        status: TodoStatus,
        at: Timestamp,
    ) {
        let todos = self.agents.get_mut(session).map(|agent| &mut agent.todos);
        if let Some(todo) = todos.and_then(|todos| todos.iter_mut().find(|todo| todo.id == id)) {
            todo.completed_at = match status {
                // Completing once more does not move the time.
                TodoStatus::Completed => todo.completed_at.or(Some(at)),
                TodoStatus::Pending | TodoStatus::InProgress | TodoStatus::Blocked => None,
            };
            todo.status = status;
        }
    }
}
