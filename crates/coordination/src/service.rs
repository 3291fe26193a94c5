//! The way in: commands to projects, and the calls that wait.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use switchboard_exchange::{CommandError, CommandId, Decide, Exchange};
use switchboard_journal::StreamId;
use tokio_util::sync::CancellationToken;

use crate::agent::later;
use crate::{
    Acquire, Acquired, Ask, ClaimTicket, CollectAnswer, Collected, CompleteTask, MessageId, Name, Otherwise,
    Project, Rejection, completion_file,
};

/// Why a command got no reply.
pub type CoordinationError = CommandError<Rejection>;

type Result<T> = std::result::Result<T, CoordinationError>;

/// What the service takes from configuration, beside the machine's [`Settings`](crate::Settings).
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// Where completion files are written; none for nowhere.
    pub status_dir: Option<PathBuf>,
}

/// How long a caller waits, and how it is kept informed.
#[derive(Clone)]
pub struct Patience {
    /// At most so long.
    pub time: SignedDuration,
    /// Cancelled when the caller gives up.
    pub cancelled: CancellationToken,
    /// Told `(waited, at most)` every few seconds.
    pub progress: Arc<dyn Fn(SignedDuration, SignedDuration) + Send + Sync>,
}

impl std::fmt::Debug for Patience {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Patience").field("time", &self.time).finish_non_exhaustive()
    }
}

/// How often a caller that waits hears that it still does.
const PROGRESS_EVERY: SignedDuration = SignedDuration::from_secs(5);

/// How much longer than its caller a wait is kept open in the journal: the caller itself ends it, unless it is gone.
const GRACE: SignedDuration = SignedDuration::from_secs(5);

/// Agents that work side by side. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Coordination {
    exchange: Exchange<Project>,
    options: Arc<ServiceOptions>,
}

impl Coordination {
    /// The prefix of the streams that hold projects.
    pub const STREAMS: &'static str = "project/";

    /// The service over `exchange`.
    pub fn new(exchange: Exchange<Project>, options: ServiceOptions) -> Self {
        Self { exchange, options: Arc::new(options) }
    }

    /// The exchange that runs the projects.
    pub fn exchange(&self) -> &Exchange<Project> {
        &self.exchange
    }

    /// The stream of `project`.
    ///
    /// # Panics
    /// Never: a name of 1,024 characters has at most 4,096 bytes, which with the prefix is within a stream's bound.
    pub fn stream(project: &Name) -> StreamId {
        let name = format!("{}{project}", Self::STREAMS);
        #[expect(clippy::expect_used, reason = "the bounds of the two types guarantee it")]
        StreamId::new(name).expect("a project's name fits into a stream's")
    }

    /// Sends a command that does not wait. See [`Exchange::send`].
    pub async fn send<C>(
        &self,
        project: &Name,
        command: C,
        id: Option<CommandId>,
    ) -> Result<<Project as Decide<C>>::Reply>
    where
        Project: Decide<C>,
        C: Send + 'static,
    {
        self.exchange.send(&Self::stream(project), command, id).await
    }

    /// Reports a task as done, and leaves the file by which an orchestrator learns of it.
    pub async fn complete(&self, project: &Name, command: CompleteTask, id: Option<CommandId>) -> Result<()> {
        let session = command.session.clone();
        self.send(project, command, id).await?;
        if let Some(directory) = &self.options.status_dir {
            completion_file::write(directory.clone(), &session).await;
        }
        Ok(())
    }

    /// Asks a question and waits for its answer, if there is `patience`. The id is that of the question, for
    /// [`wait_for_answer`](Self::wait_for_answer).
    ///
    /// # Errors
    /// Besides those of the command: [`Rejection::AgentNotFound`] if the one asked leaves while the caller waits.
    pub async fn ask(
        &self,
        project: &Name,
        mut question: Ask,
        patience: Option<Patience>,
        id: Option<CommandId>,
    ) -> Result<(MessageId, Option<Collected>)> {
        let (asker, to) = (question.from.clone(), question.to.clone());
        question.waits_until = patience.as_ref().map(|patience| self.deadline(patience));
        let asked = self.send(project, question, id).await?;
        let Some(patience) = patience else { return Ok((asked, None)) };
        let waiting =
            Waiting { service: self.clone(), project: project.clone(), asker, question: Some(asked.clone()) };
        match waiting.collect(&patience).await {
            Ok(collected) => Ok((asked, Some(collected))),
            Err(CommandError::Rejected(rejection)) => Err(CommandError::Rejected(rejection)),
            // The question stands, whatever became of the wait: its id is what the caller goes on with.
            Err(error) => {
                tracing::debug!(%project, question = %asked, %error, "a wait for an answer was cut short");
                Ok((asked, Some(Collected::Pending { to, delivered_at: None, read_at: None })))
            }
        }
    }

    /// Waits for the answer to a question asked before. Answers [`Collected::Pending`] when patience is at its end.
    pub async fn wait_for_answer(
        &self,
        project: &Name,
        asker: &Name,
        question: &str,
        patience: &Patience,
    ) -> Result<Collected> {
        let collect = CollectAnswer {
            session: asker.clone(),
            id: question.to_owned(),
            otherwise: Otherwise::WaitUntil(self.deadline(patience)),
        };
        let now = self.send(project, collect, None).await?;
        let Some(asked) = MessageId::parse(question).filter(|_| matches!(now, Collected::Pending { .. }))
        else {
            return Ok(now);
        };
        let waiting = Waiting {
            service: self.clone(),
            project: project.clone(),
            asker: asker.clone(),
            question: Some(asked),
        };
        waiting.collect(patience).await
    }

    /// Takes a lock; if it is not free and there is `patience`, waits in line for it. Answers [`Acquired::Waiting`] when
    /// patience is at its end: the place in the line stays, for [`wait_for_lock`](Self::wait_for_lock).
    pub async fn acquire(
        &self,
        project: &Name,
        mut wish: Acquire,
        patience: Option<&Patience>,
        id: Option<CommandId>,
    ) -> Result<Acquired> {
        let session = wish.session.clone();
        wish.wait = patience.is_some();
        match (self.send(project, wish, id).await?, patience) {
            (Acquired::Waiting(ticket), Some(patience)) => {
                match self.wait_for_lock(project, &session, &ticket.id.to_string(), patience).await {
                    Ok(acquired) => Ok(acquired),
                    Err(CommandError::Rejected(rejection)) => Err(CommandError::Rejected(rejection)),
                    // The place in the line stands, whatever became of the wait.
                    Err(error) => {
                        tracing::debug!(%project, ticket = %ticket.id, %error, "a wait for a lock was cut short");
                        Ok(Acquired::Waiting(ticket))
                    }
                }
            }
            (acquired, _) => Ok(acquired),
        }
    }

    /// Waits on, at a place in the line taken before.
    pub async fn wait_for_lock(
        &self,
        project: &Name,
        session: &Name,
        ticket: &str,
        patience: &Patience,
    ) -> Result<Acquired> {
        let claim = || ClaimTicket { session: session.clone(), ticket: ticket.to_owned() };
        let now = self.send(project, claim(), None).await?;
        let Acquired::Waiting(place) = now else { return Ok(now) };
        let is_over = move |project: &Project| project.has_left_line(place.id).then_some(());
        match self.wait_until(project, is_over, patience).await {
            Ok(()) => self.send(project, claim(), None).await,
            Err(error) => Err(error),
        }
    }

    fn deadline(&self, patience: &Patience) -> Timestamp {
        later(self.exchange.clock().now(), patience.time + GRACE)
    }

    /// Waits until `condition` holds or patience is at its end, whichever is first.
    async fn wait_until<F>(&self, project: &Name, condition: F, patience: &Patience) -> Result<()>
    where
        F: FnMut(&Project) -> Option<()> + Send + 'static,
    {
        let clock = self.exchange.clock();
        let stream = Self::stream(project);
        let mut holds = pin!(self.exchange.wait_for(&stream, condition));
        // Counted in pauses, not by the time of day: that may jump while somebody waits.
        let mut waited = SignedDuration::ZERO;
        while waited < patience.time {
            let pause = PROGRESS_EVERY.min(patience.time - waited);
            tokio::select! {
                biased;
                held = &mut holds => return held,
                () = patience.cancelled.cancelled() => return Ok(()),
                () = clock.sleep_until(later(clock.now(), pause)) => {
                    waited += pause;
                    (patience.progress)(waited, patience.time);
                }
            }
        }
        Ok(())
    }
}

/// A call that waits for an answer. If it is dropped half-way the wait ends, so that the answer goes to the inbox.
struct Waiting {
    service: Coordination,
    project: Name,
    asker: Name,
    question: Option<MessageId>,
}

impl Waiting {
    async fn collect(mut self, patience: &Patience) -> Result<Collected> {
        let Some(asked) = self.question.clone() else { return Err(CommandError::Stopping) };
        let is_over = move |project: &Project| project.wait_is_over(&asked).then_some(());
        self.service.wait_until(&self.project, is_over, patience).await?;
        let collected = self.service.send(&self.project, self.stop(), None).await;
        self.question = None;
        collected
    }

    fn stop(&self) -> CollectAnswer {
        CollectAnswer {
            session: self.asker.clone(),
            id: self.question.as_ref().map(MessageId::to_string).unwrap_or_default(),
            otherwise: Otherwise::StopWaiting,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.question.is_none() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (service, project, asker, question) =
            (self.service.clone(), self.project.clone(), self.asker.clone(), self.question.take());
        runtime.spawn(async move {
            if let Some(question) = question {
                service.end_wait(&project, asker, &question).await;
            }
        });
    }
}

impl Coordination {
    async fn end_wait(&self, project: &Name, asker: Name, question: &MessageId) {
        let stop = crate::question::EndWait { session: asker, id: question.clone() };
        if let Err(error) = self.send(project, stop, None).await {
            // The wait ends by itself at its deadline.
            tracing::debug!(%project, %question, %error, "an abandoned wait stays open for now");
        }
    }
}
