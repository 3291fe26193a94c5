//! Messages between agents: stored → delivered → read → answered, each step with its time.
//!
//! A message is **stored** when its sender is acknowledged, **delivered** when its addressee was handed it, and **read**
//! when the addressee took it out of its inbox. What was delivered and not read is handed over again. An inbox is
//! first in, first out, and goes with its agent.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use switchboard_exchange::Decision;

use crate::lock::Lock;
use crate::project::{Project, Rule};
use crate::question::{Answered, Question};
use crate::stamp::Stamp;
use crate::{Event, MessageId, Name, Rejection, Text, TicketId};

/// What lies in an inbox. In the journal as a word and a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A message, or a question.
    Message(Stamp),
    /// The answer to the question with this stamp.
    Response(Stamp),
    /// The news that a lock was granted to this place in the line.
    Granted(TicketId),
}

/// What an agent has not read yet, oldest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Inbox {
    items: VecDeque<Item>,
    /// How much text lies in it.
    bytes: usize,
}

impl Inbox {
    /// The most unread messages of one agent.
    const MOST: usize = 10_000;
    /// The most text in the unread messages of one agent.
    const MOST_BYTES: usize = 64 << 20;

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn check_room(&self, owner: &Name) -> Result<(), Rejection> {
        let (limit, is_full) = if self.bytes >= Self::MOST_BYTES {
            (Self::MOST_BYTES, true)
        } else {
            (Self::MOST, self.items.len() >= Self::MOST)
        };
        if !is_full {
            return Ok(());
        }
        Err(Rejection::Full {
            what: format!("the inbox of '{owner}'"),
            limit,
            remedy: "wait until it reads its messages",
        })
    }

    fn push(&mut self, item: Item, bytes: usize) {
        self.items.push_back(item);
        self.bytes += bytes;
    }

    fn take(&mut self, item: Item, bytes: usize) -> bool {
        // What is read was mostly the oldest.
        let position = self.items.iter().position(|other| *other == item);
        if let Some(position) = position {
            self.items.remove(position);
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        position.is_some()
    }
}

/// A message and what became of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) from: Name,
    pub(crate) content: Text,
    pub(crate) sent_at: Timestamp,
    pub(crate) kind: Kind,
    /// One per addressee.
    pub(crate) receipts: Vec<Receipt>,
    /// In how many inboxes it, or the answer to it, still lies.
    queued: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Note { message_type: Name, broadcast: bool },
    Question(Question),
    Notice { event: Name },
}

impl Message {
    /// How much text it has, with its answer.
    fn bytes(&self) -> usize {
        let answer = match &self.kind {
            Kind::Question(Question { answer: Some(answer), .. }) => answer.response.as_str().len(),
            _ => 0,
        };
        self.content.as_str().len() + answer
    }

    fn receipt_mut(&mut self, session: &Name) -> Option<&mut Receipt> {
        self.receipts.iter_mut().find(|receipt| receipt.session == *session)
    }

    /// Whether nobody needs it any more.
    fn is_done(&self, now: Timestamp) -> bool {
        let answered = match &self.kind {
            Kind::Question(question) => question.is_done() || self.is_old(now),
            Kind::Note { .. } | Kind::Notice { .. } => true,
        };
        self.queued == 0 && answered
    }

    pub(crate) fn is_old(&self, now: Timestamp) -> bool {
        now.duration_since(self.sent_at) > Mail::KEPT_FOR
    }
}

/// What became of a message at one addressee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The addressee.
    pub session: Name,
    /// When it was handed the message first.
    pub delivered_at: Option<Timestamp>,
    /// When it took the message out of its inbox.
    pub read_at: Option<Timestamp>,
}

/// All messages of a project that somebody still needs, and the latest of the others.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Mail {
    pub(crate) messages: BTreeMap<Stamp, Message>,
    /// The questions whose answer a call waits for, and until when.
    pub(crate) waits: BTreeMap<Stamp, Timestamp>,
    /// How much text is in the messages and their answers.
    #[serde(default)]
    bytes: usize,
    /// The number of messages at which the ones that are done are sorted out.
    sort_out_at: usize,
    /// The same, in bytes of text.
    #[serde(default)]
    sort_out_at_bytes: usize,
}

impl Mail {
    /// How long an unanswered question, and the receipts of a message, are kept (rule 8 of the A2AMCP contract).
    pub(crate) const KEPT_FOR: SignedDuration = SignedDuration::from_hours(24);
    /// How many messages that are done are kept for their receipts.
    const KEPT: usize = 1_000;
    /// How much text they may have.
    const KEPT_BYTES: usize = 16 << 20;
    /// The most text in messages that somebody still needs: unread ones, and questions without an answer.
    const MOST_BYTES: usize = 256 << 20;

    /// Whether there is room for another message.
    pub(crate) fn check_room(&self, now: Timestamp) -> Result<(), Rejection> {
        // What is done with makes room as soon as the next message comes.
        let needed = || self.messages.values().filter(|message| !message.is_done(now)).map(Message::bytes);
        if self.bytes < Self::MOST_BYTES || needed().sum::<usize>() < Self::MOST_BYTES {
            return Ok(());
        }
        Err(Rejection::Full {
            what: "the project's mail".to_owned(),
            limit: Self::MOST_BYTES,
            remedy: "wait until agents read their messages and answer their questions",
        })
    }

    fn insert(&mut self, stamp: Stamp, message: Message) {
        let now = message.sent_at;
        self.bytes += message.bytes();
        self.messages.insert(stamp, message);
        if self.messages.len() > self.sort_out_at.max(2 * Self::KEPT)
            || self.bytes > self.sort_out_at_bytes.max(2 * Self::KEPT_BYTES)
        {
            self.sort_out(now);
        }
    }

    pub(crate) fn insert_answer(&mut self, question: Stamp, answer: Answered) {
        let Some(message) = self.messages.get_mut(&question) else { return };
        // A snapshot from before texts were counted says none.
        self.bytes = self.bytes.saturating_sub(message.bytes());
        if let Kind::Question(question) = &mut message.kind {
            question.answer = Some(answer);
        }
        self.bytes += message.bytes();
    }

    fn sort_out(&mut self, now: Timestamp) {
        let done = self.messages.values().filter(|message| message.is_done(now));
        let (count, bytes) =
            done.fold((0, 0), |(count, bytes), message| (count + 1, bytes + message.bytes()));
        let mut too_many = usize::saturating_sub(count, Self::KEPT);
        let mut too_large = usize::saturating_sub(bytes, Self::KEPT_BYTES);
        self.messages.retain(|_, message| {
            if !message.is_done(now) {
                return true;
            }
            let gone = too_many > 0 || too_large > 0 || message.is_old(now);
            too_many = too_many.saturating_sub(1);
            too_large = too_large.saturating_sub(message.bytes());
            !gone
        });
        self.bytes = self.messages.values().map(Message::bytes).sum();
        self.sort_out_at = self.messages.len() + Self::KEPT;
        self.sort_out_at_bytes = self.bytes + Self::KEPT_BYTES;
    }

    pub(crate) fn open_waits(&self) -> impl Iterator<Item = Stamp> {
        self.waits.keys().copied()
    }

    pub(crate) fn wait_deadlines(&self) -> impl Iterator<Item = Timestamp> {
        self.waits.values().copied()
    }
}

/// A message, as its addressee sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// Its id; opaque.
    pub id: String,
    /// Who sent it.
    pub from: Name,
    /// What kind it is.
    pub kind: LetterKind,
    /// Its text.
    pub content: Text,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// Whether it was handed over before and not read.
    pub delivered_before: bool,
}

/// What kind of message it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LetterKind {
    /// Somebody tells something.
    Note {
        /// `info`, `warning`, or what the sender says.
        message_type: Name,
        /// Whether everybody got it.
        broadcast: bool,
    },
    /// Somebody asks something.
    Question {
        /// `interface`, `api`, `help`, `status`, or what the sender says.
        question_type: Name,
        /// Whether the sender waits, or waited, for the answer.
        requires_response: bool,
    },
    /// Somebody answered a question whose asker was not waiting any more.
    Response {
        /// The question.
        response_to: String,
    },
    /// A lock was granted to the addressee's place in the line.
    LockGranted {
        /// The place.
        ticket: TicketId,
        /// What it covers.
        path: String,
        /// The fencing token.
        token: u64,
        /// Until when it is to be claimed.
        claim_by: Option<Timestamp>,
    },
    /// Something happened (A2AMCP system events).
    Notice {
        /// What: `agent_joined`, `file_lock_released`, …
        event: Name,
    },
}

// ---- commands ------------------------------------------------------------------------------------------------------

/// Tells other agents something.
#[derive(Debug, Clone)]
pub struct SendMessage {
    /// Who tells.
    pub session: Name,
    /// Whom; none for everybody else in the project.
    pub to: Option<Vec<Name>>,
    /// `info`, `warning`, `help_needed`, or any other word.
    pub message_type: Name,
    /// What.
    pub content: Text,
}

/// What became of a message to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its id; none if there was nobody to send it to.
    pub id: Option<MessageId>,
    /// How many got it.
    pub recipients: usize,
}

impl Rule for SendMessage {
    type Reply = Sent;
    const NAME: &'static str = "message_send";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Sent>, Rejection> {
        project.agent(&self.session)?;
        let to = match &self.to {
            None => project.agents.keys().filter(|name| **name != self.session).cloned().collect(),
            Some(named) => {
                let mut to = Vec::with_capacity(named.len());
                for name in named {
                    if *name == self.session {
                        return Err(Rejection::AddressesItself);
                    }
                    if !to.contains(name) {
                        to.push(name.clone());
                    }
                }
                to
            }
        };
        for name in &to {
            project.addressee(name)?.inbox.check_room(name)?;
        }
        if to.is_empty() {
            return Ok(Decision::unchanged(Sent { id: None, recipients: 0 }));
        }
        project.mail.check_room(now)?;
        let id = MessageId { from: self.session.clone(), stamp: Stamp::next(now, project.last_stamp) };
        let sent = Sent { id: Some(id.clone()), recipients: to.len() };
        let event = Event::MessageSent {
            id,
            to,
            message_type: self.message_type.clone(),
            content: self.content.clone(),
            broadcast: self.to.is_none(),
            at: now,
        };
        Ok(Decision::event(event, sent))
    }
}

/// Puts a message into an inbox for a sender that is no agent of the project, such as a schedule.
///
/// A sender of that kind is one occasion, as `schedule-93@2025-01-02T09:00:00Z`, and tells once: a repetition among the
/// newest thousand messages gets the first answer.
#[derive(Debug, Clone)]
pub struct PostMessage {
    /// Who tells.
    pub from: Name,
    /// Whom.
    pub to: Name,
    /// `info`, `warning`, `help_needed`, or any other word.
    pub message_type: Name,
    /// What.
    pub content: Text,
}

impl Rule for PostMessage {
    type Reply = MessageId;
    const NAME: &'static str = "message_post";

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, MessageId>, Rejection> {
        let inbox = &project.addressee(&self.to)?.inbox;
        let mut posted = project.mail.messages.iter().rev().take(Mail::KEPT);
        if let Some((stamp, _)) = posted.find(|(_, message)| message.from == self.from) {
            return Ok(Decision::unchanged(MessageId { from: self.from.clone(), stamp: *stamp }));
        }
        inbox.check_room(&self.to)?;
        project.mail.check_room(now)?;
        let id = MessageId { from: self.from.clone(), stamp: Stamp::next(now, project.last_stamp) };
        let event = Event::MessageSent {
            id: id.clone(),
            to: vec![self.to.clone()],
            message_type: self.message_type.clone(),
            content: self.content.clone(),
            broadcast: false,
            at: now,
        };
        Ok(Decision::event(event, id))
    }
}

/// Takes all messages out of the inbox, as A2AMCP does: delivered and read in one step.
#[derive(Debug, Clone)]
pub struct TakeMessages {
    /// Whose inbox.
    pub session: Name,
}

impl TakeMessages {
    /// The most looks a minute where limits are strict.
    const MOST_PER_MINUTE: usize = 10;
}

impl Rule for TakeMessages {
    type Reply = Vec<Letter>;
    const NAME: &'static str = "messages_take";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Vec<Letter>>, Rejection> {
        let agent = project.agent(&self.session)?;
        if project.settings.strict_rate_limits
            && let Some(retry_after_seconds) = agent.check_retry_after(now, Self::MOST_PER_MINUTE)
        {
            return Err(Rejection::RateLimited {
                what: "max 10 message checks per minute",
                retry_after_seconds,
            });
        }
        Ok(project.decide_read(&self.session, &agent.inbox, usize::MAX, now))
    }

    fn note(&self, project: &mut Project, now: Timestamp, accepted: bool) {
        if accepted
            && project.settings.strict_rate_limits
            && let Some(agent) = project.agents.get_mut(&self.session)
        {
            agent.note_check(now);
        }
    }
}

/// Reads messages: the oldest first, and what was handed over before and not read again.
#[derive(Debug, Clone)]
pub struct ReadMessages {
    /// Whose inbox.
    pub session: Name,
    /// How many at most.
    pub limit: usize,
    /// Whether they stay in the inbox until they are acknowledged.
    pub keep: bool,
    /// Ids of messages that were handed over before and are read now; unknown ones are ignored.
    pub acknowledge: Vec<String>,
}

/// Messages, and how many more there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letters {
    /// The oldest unread ones.
    pub letters: Vec<Letter>,
    /// How many more lie in the inbox.
    pub more: usize,
}

impl Rule for ReadMessages {
    type Reply = Letters;
    const NAME: &'static str = "messages_read";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(&self, project: &Project, now: Timestamp) -> Result<Decision<Event, Letters>, Rejection> {
        let inbox = &project.agent(&self.session)?.inbox;
        let is_acknowledged = |item: &Item| self.acknowledge.contains(&project.item_id(*item));
        let (acknowledged, left): (Vec<Item>, Vec<Item>) =
            inbox.items.iter().copied().partition(is_acknowledged);
        let left = Inbox { items: left.into(), bytes: 0 };
        let mut events = Vec::new();
        if !acknowledged.is_empty() {
            events.push(Event::MessagesRead { session: self.session.clone(), ids: acknowledged, at: now });
        }
        let read = if self.keep {
            project.decide_delivered(&self.session, &left, self.limit, now)
        } else {
            project.decide_read(&self.session, &left, self.limit, now)
        };
        events.extend(read.events);
        let more = left.len().saturating_sub(read.reply.len());
        Ok(Decision::events(events, Letters { letters: read.reply, more }))
    }
}

/// What became of the caller's messages, newest first.
#[derive(Debug, Clone)]
pub struct MessageStatus {
    /// Who sent them.
    pub session: Name,
    /// Only this one.
    pub id: Option<String>,
    /// How many at most.
    pub limit: usize,
}

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The message.
    pub id: MessageId,
    /// Whether it is a question.
    pub is_question: bool,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// What became of it at each addressee.
    pub receipts: Vec<Receipt>,
    /// When the question was answered.
    pub answered_at: Option<Timestamp>,
    /// When the answer reached its asker.
    pub answer_delivered_at: Option<Timestamp>,
}

impl Rule for MessageStatus {
    type Reply = Vec<Delivery>;
    const NAME: &'static str = "message_status";

    fn speaker(&self) -> Option<&Name> {
        Some(&self.session)
    }

    fn decide(
        &self,
        project: &Project,
        _now: Timestamp,
    ) -> Result<Decision<Event, Vec<Delivery>>, Rejection> {
        project.agent(&self.session)?;
        let mine = |(_, message): &(&Stamp, &Message)| message.from == self.session;
        let delivery = |(stamp, message): (&Stamp, &Message)| message.delivery(*stamp);
        let messages = &project.mail.messages;
        let Some(asked) = &self.id else {
            let latest = messages.iter().rev().filter(mine).take(self.limit).map(delivery);
            return Ok(Decision::unchanged(latest.collect()));
        };
        let found = MessageId::parse(asked).and_then(|id| messages.get_key_value(&id.stamp)).filter(mine);
        match found {
            Some(found) => Ok(Decision::unchanged(vec![delivery(found)])),
            None => Err(Rejection::MessageNotFound { id: asked.clone() }),
        }
    }
}

impl Message {
    pub(crate) fn delivery(&self, stamp: Stamp) -> Delivery {
        let (is_question, answered_at, answer_delivered_at) = match &self.kind {
            Kind::Question(question) => {
                let answer = question.answer.as_ref();
                (true, answer.map(|answer| answer.at), answer.and_then(|answer| answer.delivered_at))
            }
            Kind::Note { .. } | Kind::Notice { .. } => (false, None, None),
        };
        Delivery {
            id: MessageId { from: self.from.clone(), stamp },
            is_question,
            stored_at: self.sent_at,
            receipts: self.receipts.clone(),
            answered_at,
            answer_delivered_at,
        }
    }
}

/// The latest messages of the project, newest first, without their texts.
#[derive(Debug, Clone)]
pub struct ListMessages {
    /// How many at most.
    pub limit: usize,
}

impl Rule for ListMessages {
    type Reply = Vec<Delivery>;
    const NAME: &'static str = "message_list";

    fn decide(
        &self,
        project: &Project,
        _now: Timestamp,
    ) -> Result<Decision<Event, Vec<Delivery>>, Rejection> {
        let messages = project.mail.messages.iter().rev().take(self.limit);
        Ok(Decision::unchanged(messages.map(|(stamp, message)| message.delivery(*stamp)).collect()))
    }
}

impl Project {
    /// The agent called `session`, to whom something is to be sent.
    pub(crate) fn addressee(&self, session: &Name) -> Result<&crate::agent::Agent, Rejection> {
        self.agents.get(session).ok_or_else(|| Rejection::AgentNotFound { session: session.clone() })
    }

    fn decide_read(
        &self,
        session: &Name,
        inbox: &Inbox,
        limit: usize,
        now: Timestamp,
    ) -> Decision<Event, Vec<Letter>> {
        let ids: Vec<Item> = inbox.items.iter().take(limit).copied().collect();
        let letters = self.letters(session, &ids);
        if ids.is_empty() {
            return Decision::unchanged(letters);
        }
        Decision::event(Event::MessagesRead { session: session.clone(), ids, at: now }, letters)
    }

    fn decide_delivered(
        &self,
        session: &Name,
        inbox: &Inbox,
        limit: usize,
        now: Timestamp,
    ) -> Decision<Event, Vec<Letter>> {
        let mut ids: Vec<Item> = inbox.items.iter().take(limit).copied().collect();
        let letters = self.letters(session, &ids);
        ids.retain(|item| !self.was_delivered(session, *item));
        if ids.is_empty() {
            return Decision::unchanged(letters);
        }
        Decision::event(Event::MessagesDelivered { session: session.clone(), ids, at: now }, letters)
    }

    fn was_delivered(&self, session: &Name, item: Item) -> bool {
        match item {
            Item::Message(stamp) => self.mail.messages.get(&stamp).is_some_and(|message| {
                message
                    .receipts
                    .iter()
                    .any(|receipt| receipt.session == *session && receipt.delivered_at.is_some())
            }),
            Item::Response(stamp) => {
                self.question(stamp).and_then(|question| question.answer.as_ref()?.delivered_at).is_some()
            }
            // It is news until the lock is claimed or gone, and has no receipt.
            Item::Granted(_) => true,
        }
    }

    fn item_id(&self, item: Item) -> String {
        let of = |stamp: Stamp| {
            let from = self.mail.messages.get(&stamp).map_or("", |message| message.from.as_str());
            format!("{from}-{stamp}")
        };
        match item {
            Item::Message(stamp) => of(stamp),
            Item::Response(stamp) => format!("response-{}", of(stamp)),
            Item::Granted(ticket) => ticket.to_string(),
        }
    }

    fn letters(&self, session: &Name, items: &[Item]) -> Vec<Letter> {
        items.iter().filter_map(|item| self.letter(session, *item)).collect()
    }

    fn letter(&self, session: &Name, item: Item) -> Option<Letter> {
        let id = self.item_id(item);
        let delivered_before = self.was_delivered(session, item);
        match item {
            Item::Message(stamp) => {
                let message = self.mail.messages.get(&stamp)?;
                let kind = match &message.kind {
                    Kind::Note { message_type, broadcast } => {
                        LetterKind::Note { message_type: message_type.clone(), broadcast: *broadcast }
                    }
                    Kind::Question(question) => LetterKind::Question {
                        question_type: question.question_type.clone(),
                        requires_response: question.requires_response,
                    },
                    Kind::Notice { event } => LetterKind::Notice { event: event.clone() },
                };
                Some(Letter {
                    id,
                    from: message.from.clone(),
                    kind,
                    content: message.content.clone(),
                    sent_at: message.sent_at,
                    delivered_before,
                })
            }
            Item::Response(stamp) => {
                let message = self.mail.messages.get(&stamp)?;
                let question = self.question(stamp)?;
                let answer = question.answer.as_ref()?;
                Some(Letter {
                    id,
                    from: question.to.clone(),
                    kind: LetterKind::Response {
                        response_to: MessageId { from: message.from.clone(), stamp }.to_string(),
                    },
                    content: answer.response.clone(),
                    sent_at: answer.at,
                    delivered_before,
                })
            }
            Item::Granted(ticket) => {
                let lock = self.locks.iter().find(|lock| lock.ticket == Some(ticket))?;
                Some(Letter {
                    id,
                    from: session.clone(),
                    kind: LetterKind::LockGranted {
                        ticket,
                        path: lock.scope.as_str().to_owned(),
                        token: lock.token,
                        claim_by: lock.claim_by,
                    },
                    content: Text::default(),
                    sent_at: lock.locked_at,
                    delivered_before: false,
                })
            }
        }
    }

    // ---- what the events mean ---------------------------------------------------------------------------------------

    pub(crate) fn store(&mut self, id: &MessageId, to: &[Name], kind: Kind, content: &Text, at: Timestamp) {
        self.last_stamp = self.last_stamp.max(id.stamp);
        let mut queued = 0;
        for session in to {
            if let Some(agent) = self.agents.get_mut(session) {
                agent.inbox.push(Item::Message(id.stamp), content.as_str().len());
                queued += 1;
            }
        }
        let receipt =
            |session: &Name| Receipt { session: session.clone(), delivered_at: None, read_at: None };
        let message = Message {
            from: id.from.clone(),
            content: content.clone(),
            sent_at: at,
            kind,
            receipts: to.iter().map(receipt).collect(),
            queued,
        };
        self.mail.insert(id.stamp, message);
    }

    pub(crate) fn apply_message_sent(
        &mut self,
        id: &MessageId,
        to: &[Name],
        message_type: &Name,
        content: &Text,
        broadcast: bool,
        at: Timestamp,
    ) {
        self.store(id, to, Kind::Note { message_type: message_type.clone(), broadcast }, content, at);
    }

    pub(crate) fn apply_noticed(
        &mut self,
        id: &MessageId,
        to: &[Name],
        event: &Name,
        content: &Text,
        at: Timestamp,
    ) {
        self.store(id, to, Kind::Notice { event: event.clone() }, content, at);
    }

    pub(crate) fn apply_delivered(&mut self, session: &Name, items: &[Item], at: Timestamp) {
        for item in items {
            self.note_delivered(session, *item, at);
        }
    }

    fn note_delivered(&mut self, session: &Name, item: Item, at: Timestamp) {
        match item {
            Item::Message(stamp) => {
                let receipt =
                    self.mail.messages.get_mut(&stamp).and_then(|message| message.receipt_mut(session));
                if let Some(receipt) = receipt {
                    receipt.delivered_at.get_or_insert(at);
                }
            }
            Item::Response(stamp) => {
                if let Some(answer) = self.question_mut(stamp).and_then(|question| question.answer.as_mut()) {
                    answer.delivered_at.get_or_insert(at);
                }
            }
            Item::Granted(_) => {}
        }
    }

    pub(crate) fn apply_read(&mut self, session: &Name, items: &[Item], at: Timestamp) {
        for item in items {
            self.note_delivered(session, *item, at);
            if let Item::Message(stamp) = item
                && let Some(message) = self.mail.messages.get_mut(stamp)
                && let Some(receipt) = message.receipt_mut(session)
            {
                receipt.read_at.get_or_insert(at);
            }
            self.take_out(session, *item);
        }
    }

    /// Takes one item out of an inbox.
    pub(crate) fn take_out(&mut self, session: &Name, item: Item) {
        let bytes = self.item_bytes(item);
        let taken = self.agents.get_mut(session).is_some_and(|agent| agent.inbox.take(item, bytes));
        if taken && let Some(message) = self.message_of(item) {
            message.queued = message.queued.saturating_sub(1);
        }
    }

    /// The message that is kept for as long as `item` lies in an inbox.
    fn message_of(&mut self, item: Item) -> Option<&mut Message> {
        match item {
            Item::Message(stamp) | Item::Response(stamp) => self.mail.messages.get_mut(&stamp),
            Item::Granted(_) => None,
        }
    }

    /// Puts one item into an inbox.
    pub(crate) fn put_in(&mut self, session: &Name, item: Item) {
        let bytes = self.item_bytes(item);
        let Some(agent) = self.agents.get_mut(session) else { return };
        agent.inbox.push(item, bytes);
        if let Some(message) = self.message_of(item) {
            message.queued += 1;
        }
    }

    fn item_bytes(&self, item: Item) -> usize {
        match item {
            Item::Message(stamp) => {
                self.mail.messages.get(&stamp).map_or(0, |message| message.content.as_str().len())
            }
            Item::Response(stamp) => self
                .question(stamp)
                .and_then(|question| question.answer.as_ref())
                .map_or(0, |answer| answer.response.as_str().len()),
            Item::Granted(_) => 0,
        }
    }

    pub(crate) fn tell_granted(&mut self, lock: &Lock, ticket: TicketId) {
        self.put_in(&lock.session, Item::Granted(ticket));
    }

    pub(crate) fn untell_granted(&mut self, lock: &Lock) {
        if let Some(ticket) = lock.ticket {
            self.take_out(&lock.session, Item::Granted(ticket));
        }
    }

    /// The agent is gone: what lay in its inbox is nobody's, and its questions are closed.
    pub(crate) fn forget_inbox(&mut self, session: &Name, inbox: &Inbox) {
        for item in &inbox.items {
            if let Some(message) = self.message_of(*item) {
                message.queued = message.queued.saturating_sub(1);
            }
        }
        for (stamp, message) in &mut self.mail.messages {
            let is_asker = message.from == *session;
            if let Kind::Question(question) = &mut message.kind
                && (is_asker || question.to == *session)
            {
                let is_closed = question.close();
                // An answer that was given is still held for the asker, but for nobody after it.
                if is_closed || is_asker {
                    self.mail.waits.remove(stamp);
                }
            }
        }
    }
}
