//! Questions from one agent to another, and their answers.
//!
//! ```text
//!          answered while a call waits           collected
//!   open ────────────────────────────▶ answered ───────────▶ done
//!    │  answered while none waits ──▶ in the asker's inbox ──▶ done (read, or collected by handle)
//!    └─ asker or addressee gone ────▶ closed
//! ```
//!
//! A question is durable before anybody waits for its answer. A call that waits says until when; the answer is held for it
//! until it collects the answer, gives up, or that time has passed. After that the answer goes to the asker's inbox, where
//! it is delivered once, be it by reading the inbox or by asking again with the question's id.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_exchange::Decision;

use crate::agent::{forget_older, retry_after};
use crate::mailbox::{Item, Kind, Message};
use crate::project::{Project, Rule};
use crate::stamp::Stamp;
use crate::{Event, MessageId, Name, Rejection, Text};

/// What is particular to a question among messages.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "`question_type` is the word of the A2AMCP catalogue")]
pub(crate) struct Question {
    pub(crate) to: Name,
    pub(crate) question_type: Name,
    pub(crate) requires_response: bool,
    pub(crate) answer: Option<Answered>,
    /// The asker or the addressee left before it was answered.
    closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) response: Text,
    pub(crate) at: Timestamp,
    pub(crate) delivered_at: Option<Timestamp>,
}

impl Question {
    pub(crate) fn is_done(&self) -> bool {
        self.closed || self.answer.as_ref().is_some_and(|answer| answer.delivered_at.is_some())
    }

    /// Closes it, unless it was answered. Answers whether it is closed.
    pub(crate) fn close(&mut self) -> bool {
        self.closed |= self.answer.is_none();
        self.closed
    }

    fn is_open(&self) -> bool {
        !self.closed && self.answer.is_none()
    }
}

// ---- commands ------------------------------------------------------------------------------------------------------

/// Asks another agent something.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Who asks.
    pub from: Name,
    /// Whom.
    pub to: Name,
    /// `interface`, `api`, `help`, `status`, or any other word.
    pub question_type: Name,
    /// What.
    pub content: Text,
    /// Whether the asker needs an answer to go on.
    pub requires_response: bool,
    /// Until when a call waits for the answer; none if none does.
    pub waits_until: Option<Timestamp>,
}

impl Ask {
    /// The most questions of one agent a minute (the A2AMCP document's limit).
    const MOST_PER_MINUTE: usize = 100;
}

impl Rule for Ask {
    type Reply = MessageId;
    const NAME: &'static str = "question_ask";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.from)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, MessageId>, Rejection> {
        let asker = project.agent(&self.from)?;
        if self.from == self.to {
            return Err(Rejection::AddressesItself);
        }
        let addressee = project.addressee(&self.to)?;
        if let Some(retry_after_seconds) = retry_after(&asker.asked, now, Self::MOST_PER_MINUTE) {
            return Err(Rejection::RateLimited { what: "max 100 queries per minute", retry_after_seconds });
        }
        addressee.inbox.check_room(&self.to)?;
        project.mail.check_room(now)?;
        let id = MessageId { from: self.from.clone(), stamp: Stamp::next(now, project.last_stamp) };
        let event = Event::QuestionAsked {
            id: id.clone(),
            to: self.to.clone(),
            question_type: self.question_type.clone(),
            content: self.content.clone(),
            requires_response: self.requires_response,
            waits_until: self.waits_until,
            at: now,
        };
        Ok(Decision::event(event, id))
    }
}

/// Answers a question.
#[derive(Debug, Clone)]
pub struct AnswerQuestion {
    /// Who answers.
    pub from: Name,
    /// Whom, if the caller says so: must be the one who asked.
    pub to: Option<Name>,
    /// Which question, as the caller wrote it.
    pub id: String,
    /// The answer.
    pub response: Text,
}

impl Rule for AnswerQuestion {
    /// Who asked.
    type Reply = Name;
    const NAME: &'static str = "question_answer";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.from)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Name>, Rejection> {
        project.agent(&self.from)?;
        if let Some(to) = &self.to {
            project.addressee(to)?;
        }
        let not_found = || Rejection::QuestionNotFound { id: self.id.clone() };
        let (id, message, question) = project.asked(&self.id).ok_or_else(not_found)?;
        if question.to != self.from || !question.is_open() || message.is_old(now) {
            return Err(not_found());
        }
        project.addressee(&id.from)?;
        if self.to.as_ref().is_some_and(|to| *to != id.from) {
            return Err(Rejection::NotTheAsker { asked_by: id.from });
        }
        let event = Event::QuestionAnswered { id: id.stamp, response: self.response.clone(), at: now };
        Ok(Decision::event(event, id.from))
    }
}

/// Looks for the answer to a question, and says whether a call goes on waiting for it.
#[derive(Debug, Clone)]
pub struct CollectAnswer {
    /// Who asked.
    pub session: Name,
    /// Which question, as the caller wrote it.
    pub id: String,
    /// What to do if there is no answer yet.
    pub otherwise: Otherwise,
}

/// What to do if there is no answer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Otherwise {
    /// Nothing.
    Leave,
    /// Hold it for the caller until then.
    WaitUntil(Timestamp),
    /// Put it into the asker's inbox when it comes.
    StopWaiting,
}

/// How a question stands, as its asker sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Collected {
    /// It is answered.
    Answer {
        /// The answer.
        response: Text,
        /// When it was given.
        answered_at: Timestamp,
        /// Whether it was delivered before.
        delivered_before: bool,
    },
    /// It is not answered yet.
    Pending {
        /// The one asked.
        to: Name,
        /// When it was handed the question.
        delivered_at: Option<Timestamp>,
        /// When it took the question out of its inbox.
        read_at: Option<Timestamp>,
    },
}

impl Rule for CollectAnswer {
    type Reply = Collected;
    const NAME: &'static str = "question_collect";

    fn speaker(&self) -> Option<&Name> {
        match self.otherwise {
            Otherwise::Leave | Otherwise::WaitUntil(_) => Some(&self.session),
            // Said in the name of a caller that may be gone: no sign of life.
            Otherwise::StopWaiting => None,
        }
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Collected>, Rejection> {
        project.agent(&self.session)?;
        let (id, message, question) = project
            .asked(&self.id)
            .filter(|(id, ..)| id.from == self.session)
            .ok_or_else(|| Rejection::QuestionNotFound { id: self.id.clone() })?;
        if let Some(answer) = &question.answer {
            let collected = Collected::Answer {
                response: answer.response.clone(),
                answered_at: answer.at,
                delivered_before: answer.delivered_at.is_some(),
            };
            return Ok(match answer.delivered_at {
                Some(_) => Decision::unchanged(collected),
                None => Decision::event(Event::AnswerDelivered { id: id.stamp, at: now }, collected),
            });
        }
        if question.closed {
            return Err(Rejection::AgentNotFound { session: question.to.clone() });
        }
        let receipt = message.receipts.first();
        let pending = Collected::Pending {
            to: question.to.clone(),
            delivered_at: receipt.and_then(|receipt| receipt.delivered_at),
            read_at: receipt.and_then(|receipt| receipt.read_at),
        };
        Ok(match self.otherwise {
            Otherwise::Leave => Decision::unchanged(pending),
            Otherwise::WaitUntil(until) => {
                Decision::event(Event::AnswerAwaited { id: id.stamp, until }, pending)
            }
            Otherwise::StopWaiting if project.mail.waits.contains_key(&id.stamp) => {
                Decision::event(Event::WaitEnded { id: id.stamp, at: now }, pending)
            }
            Otherwise::StopWaiting => Decision::unchanged(pending),
        })
    }
}

/// Nobody waits for the answer any more, as the caller is gone: it goes to the inbox.
#[derive(Debug, Clone)]
pub(crate) struct EndWait {
    pub(crate) session: Name,
    pub(crate) id: MessageId,
}

impl Rule for EndWait {
    type Reply = ();
    const NAME: &'static str = "question_end_wait";

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, ()>, Rejection> {
        project.agent(&self.session)?;
        if !project.mail.waits.contains_key(&self.id.stamp) {
            return Ok(Decision::unchanged(()));
        }
        Ok(Decision::event(Event::WaitEnded { id: self.id.stamp, at: now }, ()))
    }
}

impl Project {
    pub(crate) fn question(&self, stamp: Stamp) -> Option<&Question> {
        match &self.mail.messages.get(&stamp)?.kind {
            Kind::Question(question) => Some(question),
            Kind::Note { .. } | Kind::Notice { .. } => None,
        }
    }

    pub(crate) fn question_mut(&mut self, stamp: Stamp) -> Option<&mut Question> {
        match &mut self.mail.messages.get_mut(&stamp)?.kind {
            Kind::Question(question) => Some(question),
            Kind::Note { .. } | Kind::Notice { .. } => None,
        }
    }

    fn asked(&self, id: &str) -> Option<(MessageId, &Message, &Question)> {
        let id = MessageId::parse(id)?;
        let message = self.mail.messages.get(&id.stamp).filter(|message| message.from == id.from)?;
        let question = self.question(id.stamp)?;
        Some((id, message, question))
    }

    /// Whether a call that waits for the answer to this question has something to collect, or nothing to wait for.
    pub(crate) fn wait_is_over(&self, id: &MessageId) -> bool {
        self.question(id.stamp).is_none_or(|question| !question.is_open())
    }

    pub(crate) fn decide_waits_over(&self, now: Timestamp) -> Vec<Event> {
        let over = self.mail.waits.iter().filter(|(_, until)| **until <= now);
        over.map(|(id, _)| Event::WaitEnded { id: *id, at: now }).collect()
    }

    // ---- what the events mean ---------------------------------------------------------------------------------------

    #[expect(clippy::too_many_arguments, reason = "one per field of the event")]
    pub(crate) fn apply_asked(
        &mut self,
        id: &MessageId,
        to: &Name,
        question_type: &Name,
        content: &Text,
        requires_response: bool,
        waits_until: Option<Timestamp>,
        at: Timestamp,
    ) {
        let question = Question {
            to: to.clone(),
            question_type: question_type.clone(),
            requires_response,
            answer: None,
            closed: false,
        };
        self.store(id, std::slice::from_ref(to), Kind::Question(question), content, at);
        if let Some(asker) = self.agents.get_mut(&id.from) {
            forget_older(&mut asker.asked, at);
            asker.asked.push_back(at);
        }
        if let Some(until) = waits_until {
            self.apply_awaited(id.stamp, until);
        }
    }

    pub(crate) fn apply_awaited(&mut self, id: Stamp, until: Timestamp) {
        self.mail.waits.insert(id, until);
        self.soft.wake_at(until);
    }

    pub(crate) fn apply_wait_ended(&mut self, id: Stamp, _at: Timestamp) {
        if self.mail.waits.remove(&id).is_some() {
            self.post_answer(id);
        }
    }

    pub(crate) fn apply_answered(&mut self, id: Stamp, response: &Text, at: Timestamp) {
        self.mail.insert_answer(id, Answered { response: response.clone(), at, delivered_at: None });
        if !self.mail.waits.contains_key(&id) {
            self.post_answer(id);
        }
    }

    /// Nobody waits for it: an answer that was not delivered yet goes to the asker's inbox.
    fn post_answer(&mut self, id: Stamp) {
        let undelivered = self
            .question(id)
            .and_then(|question| question.answer.as_ref())
            .is_some_and(|answer| answer.delivered_at.is_none());
        let asker = self.mail.messages.get(&id).map(|message| message.from.clone());
        if let Some(asker) = asker.filter(|_| undelivered) {
            self.put_in(&asker, Item::Response(id));
        }
    }

    pub(crate) fn apply_answer_delivered(&mut self, id: Stamp, at: Timestamp) {
        let Some(asker) = self.mail.messages.get(&id).map(|message| message.from.clone()) else { return };
        self.take_out(&asker, Item::Response(id));
        self.mail.waits.remove(&id);
        if let Some(answer) = self.question_mut(id).and_then(|question| question.answer.as_mut()) {
            answer.delivered_at.get_or_insert(at);
        }
    }
}
