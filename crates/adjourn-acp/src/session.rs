//! One session on one connection: what is asked of it, and who waits for which answer.
//!
//! Everything a client sees of a session is read off its journal, which this process has written,
//! or another, or one that is gone by now. So a second editor, a command line and a restart all
//! look the same. `projection.rs` has the order in which things are told.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use adjourn::core::command::{Reach, Suspend};
use adjourn::core::driver::Need;
use adjourn::core::facts::SpanLinks;
use adjourn::core::id::{Handle, RequestId, RunId, SessionId};
use adjourn::core::ledger::CallId;
use adjourn::core::session::Phase;
use adjourn::core::{Session, json};
use adjourn::driver::{ClientAbilities, Message, Words};
use adjourn::store::{Done, Store};
use adjourn::{Accepted, Account, SessionRef};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::agent_update::Context;
use crate::cancel_timeout::until;
use crate::content::described;
use crate::face::Face;
use crate::inbox::Ask;
use crate::options;
use crate::outbox::{BATCH_BYTES, Marked, Outbox};
use crate::peer::Peer;
use crate::pending_requests::PendingRequests;
use crate::permissions::Viewer;
use crate::projection::News;
use crate::question::{Shown, UNREADABLE};
use crate::queued_prompt::{Queued, Turn, turn};
use crate::resume::revisions;
use crate::rpc::{CANCELLED, Error, Id, Outgoing};
use crate::suspension::SessionAwaitResumptionResponse;
use crate::update::Foreground;
use crate::waiting_notice::WaitingNotice;

/// How a request of ours is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ours {
    /// The question of this suspension, as a form.
    Question(Handle),
    /// The news that the agent parked itself.
    Await(Handle),
    /// A permission, by the number of its request among those of this process.
    Permission(u64),
    /// Something else that this client can do, by the number of its request.
    Request { number: u64, makes_terminal: bool },
    /// A terminal that was asked for and is not wanted any more.
    UnwantedTerminal,
}

/// A prompt whose turn is not over (v1), or that is not in yet (v2).
pub(crate) struct WaitingPrompt {
    pub(crate) id: Id,
    /// The first revision of the commit that took it.
    pub(crate) at: u64,
    /// The last revision of that commit.
    pub(crate) after: u64,
    pub(crate) fate: Fate,
}

/// What a prompt is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// How its turn ended.
    Taken,
    /// That its sender has taken the request back.
    TakenBack,
    /// That it was canceled while it waited its turn.
    Canceled,
}

/// A suspend that has not taken effect.
pub(crate) struct WaitingSuspend {
    pub(crate) id: Id,
    /// The first revision of the commit that took it.
    pub(crate) at: u64,
    pub(crate) handle: Handle,
    pub(crate) request: RequestId,
}

/// A resume that is committed, and not told yet.
pub(crate) struct WaitingResume {
    pub(crate) id: Id,
    /// The first revision of its commit.
    pub(crate) at: u64,
    /// The answer: where the session stands after its commit, and what it did.
    pub(crate) answer: Value,
}

/// What wakes an attachment.
enum Woken {
    /// The client asks for something, or is gone.
    Ask(Option<Ask>),
    /// The agent says something.
    Words,
    /// There may be something new.
    Look,
}

/// A session as far as it was told.
pub(crate) struct View<S: Store> {
    pub(crate) account: Account<S>,
    /// Whether the host that let go of the session cut something off, once one has.
    pub(crate) cut_off: Option<bool>,
    /// The phase it was in before the commit that is being shown.
    pub(crate) began: Phase,
}

impl<S: Store> View<S> {
    /// A session as it is, and what happens to it next.
    pub(crate) fn new(account: Account<S>) -> Self {
        let began = account.session().phase();
        Self { account, cut_off: None, began }
    }

    /// Returns the session as far as it was told.
    pub(crate) const fn session(&self) -> &Session {
        self.account.session()
    }
}

/// One session on one connection.
pub(crate) struct Attachment<S: Store> {
    pub(crate) face: Arc<Face<S>>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) id: SessionId,
    pub(crate) out: Outbox,
    pub(crate) lines: Outgoing,
    /// Whether the client sees the session; the connection looks, too.
    pub(crate) attached: Arc<AtomicBool>,
    /// The run that this client has prompted or woken last; the connection looks, too.
    pub(crate) run: Arc<Mutex<Option<RunId>>>,
    /// Registered as long as the client sees the session.
    pub(crate) viewer: Option<Viewer>,
    /// What the connection asks its client.
    pub(crate) asked: Arc<PendingRequests>,
    pub(crate) view: Option<View<S>>,
    /// The first revision that the client is shown.
    pub(crate) visible_from: u64,
    pub(crate) prompts: Vec<WaitingPrompt>,
    /// The prompt that waits its turn.
    pub(crate) queued: Option<Queued>,
    /// The turn that this client's last prompt began.
    pub(crate) turn: Option<Turn>,
    pub(crate) suspends: Vec<WaitingSuspend>,
    pub(crate) resumes: Vec<WaitingResume>,
    /// What this connection said itself, which a v1 client does not expect to hear again.
    pub(crate) own: Vec<RangeInclusive<u64>>,
    pub(crate) ours: HashMap<Id, Ours>,
    /// The question that this client was shown.
    pub(crate) question: Option<Shown>,
    /// Marks a place in what goes out next.
    pub(crate) mark: Option<Marked>,
    /// What this client was told that the session is called.
    pub(crate) title: Option<String>,
    /// How full the agent has said that its context is.
    pub(crate) context: Option<Context>,
    /// Whether the step under way has used something that the client was not told.
    pub(crate) owes_usage: bool,
    /// How things stand that a client which comes without a replay has not seen: it is told behind
    /// the answer that attaches it.
    pub(crate) introduction: Vec<Value>,
    /// The agent's last message, said or thought, while nothing that clients show lies behind it.
    pub(crate) last_message: Option<(String, Words)>,
    /// Suspensions that this client was shown as calls.
    pub(crate) waits: HashSet<Handle>,
    /// Names that the client gave to suspensions.
    pub(crate) aliases: HashMap<String, Handle>,
    pub(crate) foreground: Option<Foreground>,
    pub(crate) news: News,
    /// The idempotency key of the last resume that found nothing to wake, or was not to.
    pub(crate) idle_key: Option<String>,
    pub(crate) inbox: mpsc::Receiver<Ask>,
    /// How much was asked so far.
    pub(crate) heard: u64,
    /// How much of it is done, and has left nothing to do; the connection looks, too.
    pub(crate) done: Arc<AtomicU64>,
    /// What was heard while something else was being done.
    pub(crate) later: VecDeque<Ask>,
    /// The request whose replay is under way, as long as it can be taken back.
    pub(crate) replaying: Option<Id>,
    /// When the host should have followed a cancel that prompts wait for.
    pub(crate) cancel_until: Option<Instant>,
    /// Calls that the client was told are over, before the host has said so.
    pub(crate) ended_calls: HashSet<CallId>,
    /// What the client was told that other processes keep waiting.
    pub(crate) notice: WaitingNotice,
}

impl<S: Store> Attachment<S> {
    /// Serves until the connection is gone.
    pub(crate) async fn run(mut self) {
        loop {
            let late = until(self.cancel_until);
            let look = until(self.notice.look_at);
            let asked = self.viewer.as_ref().map(Viewer::changed);
            let mut view = self.view.take();
            let woken = tokio::select! {
                ask = self.next_ask() => Woken::Ask(ask),
                woken = stirs(view.as_mut()) => woken,
                () = or_never(asked) => Woken::Look,
                () = late => Woken::Look,
                () = look => Woken::Look,
            };
            self.view = view;
            match woken {
                Woken::Ask(Some(ask)) => self.take(ask).await,
                Woken::Ask(None) => return self.end().await,
                Woken::Words => {
                    // The journal is not read for words that go on with what was told.
                    if self.preview() {
                        if self.flush().await.is_err() {
                            break;
                        }
                        continue;
                    }
                }
                Woken::Look => {}
            }
            loop {
                if let Err(error) = self.catch_up().await {
                    self.give_up(&error);
                }
                self.answer_for_silent_host();
                if !self.take_turn().await {
                    break;
                }
            }
            self.preview();
            self.ask_permissions();
            self.ask_client();
            self.say_what_is_awaited().await;
            self.rest();
            if self.flush().await.is_err() {
                break;
            }
            self.count();
        }
    }

    /// Returns what resolves when something has happened that was not shown; never without a view.
    pub(crate) fn changed(&mut self) -> impl Future<Output = ()> + Send + use<S> {
        let changed = self.view.as_mut().map(|view| view.account.moments().changed());
        // A store that fails says so when it is read.
        or_never(changed.map(|changed| async { drop(changed.await) }))
    }

    async fn take(&mut self, ask: Ask) {
        match ask {
            Ask::Begin { id } => match self.watch().await {
                Ok(()) => {
                    // Nothing is said about a session before the client knows its name.
                    let mut answer = Map::new();
                    answer.insert("sessionId".to_owned(), json!(self.id));
                    if let Some(view) = &self.view {
                        answer.extend(options::fields(self.peer.version, view.session()));
                    }
                    self.lines.respond(&id, &Ok(Value::Object(answer)));
                    self.attach(0);
                }
                Err(error) => self.lines.respond(&id, &Err(error)),
            },
            Ask::Prompt { id, said, written } => self.prompt(id, said, written).await,
            Ask::Suspend { id, suspend, spans } => self.suspend(id, suspend, spans).await,
            Ask::Resume { id, wish, load, written } => {
                if let Err(error) = self.resume(&id, &wish, load, written).await {
                    self.lines.respond(&id, &Err(error));
                }
            }
            Ask::SetOption { id, choice } => self.set_option(&id, choice).await,
            Ask::Cancel => self.cancel().await,
            Ask::Close { id } => self.close(&id).await,
            Ask::Delete { id } => self.delete(&id).await,
            Ask::TakeBack { id } => self.take_back(&id).await,
            Ask::Answered { id, result } => self.answered(&id, result.into_inner()).await,
        }
    }

    /// Returns the way to the session, in the name of this client.
    pub(crate) fn session(&self) -> SessionRef<S> {
        self.face.session(self.id, &self.peer)
    }

    /// Ends the run, with the grace that is configured.
    pub(crate) async fn cancel_run(&self) -> Result<Done, Error> {
        let cancel = self.session().cancel().grace(self.face.options.cancel_grace);
        Ok(cancel.await?.commit)
    }

    /// Remembers what this client has set to work.
    pub(crate) fn has_moved(&self, done: &Done) {
        let run = done.session.run().map(|run| run.id);
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = run;
    }

    /// Makes sure that the session is watched.
    pub(crate) async fn watch(&mut self) -> Result<(), Error> {
        if self.view.is_none() {
            // From before the look on, so that no word falls between.
            let words = self.face.adjourn.live().watch(self.id);
            let session = self.face.find(&self.id.to_string()).await?;
            self.context = self.context_of(&session).await?;
            self.owes_usage = false;
            let mut account = Account::after(&self.session(), Session::clone(&session));
            account.listen(Some(words));
            self.view = Some(View::new(account));
        }
        Ok(())
    }

    /// Watches the session no more.
    pub(crate) fn unwatch(&mut self) {
        self.view = None;
    }

    /// Shows the session to the client from a revision on.
    pub(crate) fn attach(&mut self, from: u64) {
        if !self.attached.swap(true, Ordering::Relaxed) {
            tracing::debug!(session = %self.id, client = self.peer.name, "session is shown");
            self.visible_from = from;
            self.foreground = None;
            self.viewer = Some(self.face.attend(self.id, self.peer.abilities));
            let needs = self.view.as_ref().map(|view| &view.session().driver.needs);
            if needs.is_some_and(|needs| needs.contains(&Need::Permissions)) {
                // The host of this process left it alone while no client was there to answer.
                self.face.adjourn.look_again();
            }
        }
    }

    /// Takes a request of ours back.
    pub(crate) fn call_off(&mut self, id: &Id) {
        match self.ours.remove(id) {
            // The client may have made it by now. Its answer is still heard, so that it can be told
            // to let go of it.
            Some(Ours::Request { makes_terminal: true, .. }) => {
                self.ours.insert(id.clone(), Ours::UnwantedTerminal);
            }
            Some(Ours::UnwantedTerminal) => {
                self.ours.insert(id.clone(), Ours::UnwantedTerminal);
                return;
            }
            _ => drop(self.asked.settle(id)),
        }
        self.lines.notify("$/cancel_request", &json!({ "requestId": raw(id) }));
    }

    /// Gives a prompt over this connection.
    pub(crate) async fn give_prompt(
        &self,
        said: &Message,
        handle: Option<Handle>,
    ) -> Result<Done, Error> {
        let prompt = self.session().prompt(said.clone()).described(described(said));
        // It can be asked for permissions already: without that, no host would take the session.
        let _viewer = self.face.attend(self.id, ClientAbilities::default());
        Ok(prompt.answering(handle).reach(Reach::OwnFace).await?.commit)
    }

    /// A prompt was taken: its turn is shown, and answered when it is over.
    pub(crate) fn prompted(&mut self, id: Id, done: &Done) {
        self.has_moved(done);
        self.turn = turn(&done.session);
        let own = revisions(done);
        self.attach(*own.start());
        let (at, after) = (*own.start(), *own.end());
        self.own.push(own);
        self.prompts.push(WaitingPrompt { id, at, after, fate: Fate::Taken });
    }

    async fn suspend(&mut self, id: Id, suspend: Suspend, spans: SpanLinks) {
        if let Err(error) = self.watch().await {
            return self.lines.respond(&id, &Err(error));
        }
        match self.session().suspend_as(suspend).spans(spans).accepted().await {
            Ok(Accepted { request, handle, commit, .. }) => {
                let at = *revisions(&commit).start();
                self.suspends.push(WaitingSuspend { id, at, handle, request });
            }
            Err(error) => self.lines.respond(&id, &Err(error.into())),
        }
    }

    pub(crate) async fn take_back(&mut self, id: &Id) {
        if let Some(suspend) = self.suspends.iter().find(|suspend| suspend.id == *id) {
            let withdraw = self.session().withdraw(suspend.request);
            // Refused if it has taken effect in the meantime; then it is answered as such. Others
            // may want the session suspended all the same; this one does not wait for it.
            if withdraw.await.is_ok() {
                self.suspends.retain(|suspend| suspend.id != *id);
                let error = Error::new(CANCELLED, "the request was taken back");
                self.lines.respond(id, &Err(error));
            }
        } else if self.queued.as_ref().is_some_and(|queued| queued.id == *id) {
            self.queued = None;
            let error = Error::new(CANCELLED, "the request was taken back");
            self.lines.respond(id, &Err(error));
        } else if let Some(prompt) = self.prompts.iter_mut().find(|prompt| prompt.id == *id) {
            prompt.fate = Fate::TakenBack;
            let _ = self.cancel_run().await;
            self.await_cancel();
        }
    }

    async fn answered(&mut self, id: &Id, result: Result<Value, Value>) {
        match (self.ours.remove(id), result) {
            (Some(Ours::Question(handle)), Ok(result)) => {
                self.question_answered(id, handle, &result).await;
            }
            (Some(Ours::Question(handle)), Err(Value::Null)) => {
                self.answer_not_taken(id, handle, UNREADABLE).await;
            }
            (Some(Ours::Await(handle)), Ok(result)) => {
                if let Ok(SessionAwaitResumptionResponse { handle: alias, .. }) =
                    serde_json::from_value(result)
                {
                    self.alias(alias, handle);
                }
            }
            (Some(Ours::Permission(number)), result) => self.permitted(number, result),
            (Some(Ours::Request { number, .. }), result) => self.client_replied(number, result),
            (Some(Ours::UnwantedTerminal), Ok(result)) => self.release_unwanted(&result),
            // A client that cannot do it leaves the session as it is.
            (Some(_), Err(_)) | (None, _) => {}
        }
    }

    /// Shows what has happened since the last look.
    pub(crate) async fn catch_up(&mut self) -> Result<(), Error> {
        loop {
            let Some(view) = &mut self.view else { return Ok(()) };
            let moments = view.account.moments().page().await?;
            let more = view.account.moments().is_behind();
            for moment in &moments {
                self.bridge(moment)?;
                self.show(moment);
                if self.lines.len() > BATCH_BYTES {
                    self.flush().await?;
                }
            }
            if !more {
                break;
            }
            self.flush().await?;
            self.listen().await;
        }
        self.answer_suspends();
        Ok(())
    }

    /// Returns an id for a request of ours.
    pub(crate) fn number(&self) -> Id {
        self.asked.register(self.id)
    }
}

/// Waits until the agent says something or something may have happened; for ever without a view.
async fn stirs<S: Store>(view: Option<&mut View<S>>) -> Woken {
    let Some(view) = view else { return std::future::pending().await };
    match view.account.stirs().await {
        true => Woken::Look,
        false => Woken::Words,
    }
}

/// Waits for something, or for ever.
async fn or_never(wait: Option<impl Future<Output = ()>>) {
    match wait {
        Some(wait) => wait.await,
        None => std::future::pending().await,
    }
}

/// Returns an id as the value that it is.
fn raw(id: &Id) -> Value {
    json::stored(id.as_json().as_bytes()).unwrap_or_default()
}
