//! Staying with a task of an agent: telling what happens to it, and coming back when the connection
//! breaks.

use std::collections::BTreeMap;
use std::time::Duration;

use adjourn_a2a::client::{Ask, Outgoing, ReadEvent, Reply, Said, Seen};
use serde_json::{Map, Value};

use super::connection::{Connection, Events, may_be_taken};
use super::shown;
use crate::failure::Failure;
use crate::signals::{Ended, Signals};
use crate::terminal::{Look, Output};

/// How often a connection is made again that tells nothing before it breaks.
const TRIES: u32 = 6;
/// How long to wait before the first of these, and twice as long before each that follows; no longer
/// than before the last of them where the agent tells again and again what was told before.
const WAIT: Duration = Duration::from_millis(250);
/// How often an agent is asked that does not tell by itself.
const POLL: Duration = Duration::from_secs(1);

/// A task, as far as it was told.
pub struct Following<'a> {
    connection: &'a Connection,
    output: &'a Output,
    /// What is known of the task.
    seen: Seen,
    /// The last event that was told.
    last_event: Option<String>,
    /// What was said under each id.
    said: BTreeMap<String, String>,
    /// The artifact whose line goes on.
    line: Option<String>,
    /// How often the connection has broken without telling anything.
    broken: u32,
    /// How often it has ended or broken without telling anything new.
    quiet: u32,
}

/// As much as was told of a task, to see whether a connection has told anything new.
#[derive(PartialEq)]
struct Told {
    state: Option<String>,
    pause: Option<Map<String, Value>>,
    /// How long all is that was said.
    said: usize,
}

impl<'a> Following<'a> {
    /// Follows what comes of a message that is yet to be sent.
    pub fn new(connection: &'a Connection, output: &'a Output) -> Self {
        Self {
            connection,
            output,
            seen: Seen::default(),
            last_event: None,
            said: BTreeMap::new(),
            line: None,
            broken: 0,
            quiet: 0,
        }
    }

    /// Follows a task.
    pub fn of(connection: &'a Connection, task: &str, output: &'a Output) -> Self {
        let seen = Seen { task: Some(task.to_owned()), ..Seen::default() };
        Self { seen, ..Self::new(connection, output) }
    }

    /// Sends a message to an agent that answers it at once, and returns what it answers.
    pub async fn give(&self, message: &Outgoing, signals: &mut Signals) -> Result<Seen, Failure> {
        let ask = Ask::Send { message };
        tokio::select! {
            answered = self.connection.granted(&ask) => Ok(Seen::read(&answered?)),
            ended = signals.next() => Err(may_be_taken(&ask, self.left(ended))),
        }
    }

    /// Sends a message, and tells what comes of it until the stream ends.
    pub async fn send(&mut self, message: &Outgoing, signals: &mut Signals) -> Result<(), Failure> {
        let ask = Ask::Stream { message };
        let stream = tokio::select! {
            stream = self.connection.stream(&ask) => stream?,
            ended = signals.next() => return Err(may_be_taken(&ask, self.left(ended))),
        };
        let mut events = stream.map_err(|refusal| self.connection.refused(refusal, &ask))?;
        let broke = self.take(&mut events, &ask, signals).await;
        if self.seen.task.is_some() || self.seen.message.is_some() {
            return broke.map(|_| ());
        }
        // There is nothing to come back to.
        let failure = match broke {
            Ok(None) => Failure::other("the stream ended without an answer"),
            Ok(Some(why)) => Failure::other(format!("the connection broke: {why}")),
            Err(left) => left,
        };
        Err(may_be_taken(&ask, failure))
    }

    /// Stays until the task is at its end or asks something, and says so.
    pub async fn stay(mut self, signals: &mut Signals) -> Result<(), Failure> {
        while !self.is_done() {
            let Some(task) = self.seen.task.clone() else {
                return Err(Failure::other("the agent has answered nothing"));
            };
            if self.connection.peer.streams {
                self.subscribe(&task, signals).await?;
            } else {
                self.poll(&task, signals).await?;
            }
        }
        self.end()
    }

    /// Watches a task until the stream ends or breaks, and waits a while if there is more to watch.
    /// Some agents end the stream of a task that goes on: they are asked ever less often for as long
    /// as they tell nothing new.
    async fn subscribe(&mut self, task: &str, signals: &mut Signals) -> Result<(), Failure> {
        let (last_event, before) = (self.last_event.clone(), self.told());
        let ask = Ask::Subscribe { task, last_event: last_event.as_deref() };
        let stream = tokio::select! {
            stream = self.connection.stream(&ask) => stream,
            ended = signals.next() => return Err(self.left(ended)),
        };
        let broke = match stream {
            Ok(Ok(mut events)) => self.take(&mut events, &ask, signals).await?,
            Ok(Err(refusal)) => {
                // A task that is over is not watched any more; it can be seen.
                let refused = self.connection.refused(refusal, &ask);
                let Ok(Ok(shown)) = self.connection.ask(&Ask::Get { task }).await else {
                    return Err(refused);
                };
                self.tell(None, &Seen::read(&shown));
                return if self.is_done() { Ok(()) } else { Err(refused) };
            }
            Err(failure) if self.broken == 0 && self.seen.state.is_none() => return Err(failure),
            Err(failure) => Some(failure.told()),
        };
        if self.is_done() {
            return Ok(());
        }
        let why = broke.unwrap_or_else(|| "it ended".to_owned());
        self.breaks(task, &why)?;
        self.end_line();
        self.quiet = if self.told() == before { self.quiet.saturating_add(1) } else { 1 };
        if self.quiet == 1 {
            self.output.talk(&format!("[the stream broke off: {why}; trying again]"));
        }
        self.sleep(WAIT * 2u32.pow(self.quiet.min(TRIES).saturating_sub(1)), signals).await
    }

    /// Counts a connection that broke; one that breaks again and again is lost.
    fn breaks(&mut self, task: &str, why: &str) -> Result<(), Failure> {
        self.broken += 1;
        if self.broken <= TRIES {
            return Ok(());
        }
        let hint = format!("`adjourn a2a watch {} {task}` goes on", self.connection.url);
        Err(Failure::other(format!("the connection is lost: {why}")).hint(hint))
    }

    fn told(&self) -> Told {
        let Seen { state, pause, .. } = &self.seen;
        let said = self.said.values().map(String::len).sum();
        Told { state: state.clone(), pause: pause.clone(), said }
    }

    /// Looks at a task after a while.
    async fn poll(&mut self, task: &str, signals: &mut Signals) -> Result<(), Failure> {
        let ask = Ask::Get { task };
        let shown = tokio::select! {
            shown = self.connection.ask(&ask) => shown,
            ended = signals.next() => return Err(self.left(ended)),
        };
        match shown {
            Ok(shown) => {
                let shown = shown.map_err(|refusal| self.connection.refused(refusal, &ask))?;
                self.broken = 0;
                self.tell(None, &Seen::read(&shown));
            }
            Err(failure) if self.broken == 0 && self.seen.state.is_none() => return Err(failure),
            Err(failure) => self.breaks(task, &failure.told())?,
        }
        match self.is_done() {
            true => Ok(()),
            false => self.sleep(POLL, signals).await,
        }
    }

    async fn sleep(&self, how_long: Duration, signals: &mut Signals) -> Result<(), Failure> {
        tokio::select! {
            () = tokio::time::sleep(how_long) => Ok(()),
            ended = signals.next() => Err(self.left(ended)),
        }
    }

    /// Tells the events of a stream until it ends; returns why, if it broke.
    async fn take(
        &mut self,
        events: &mut Events,
        ask: &Ask<'_>,
        signals: &mut Signals,
    ) -> Result<Option<String>, Failure> {
        let binding = self.connection.peer.interface.binding;
        // A stream begins with the task, but for one that goes on behind an event.
        let mut begins = self.last_event.is_none();
        loop {
            let next = async {
                match begins {
                    true => self.connection.in_time(events.next()).await,
                    false => Ok(events.next().await),
                }
            };
            let ReadEvent { id, data } = tokio::select! {
                next = next => match next? {
                    Ok(Some(event)) => event,
                    Ok(None) => return Ok(None),
                    Err(why) => return Ok(Some(why)),
                },
                ended = signals.next() => {
                    self.end_line();
                    return Err(self.left(ended));
                }
            };
            let told = Reply { status: 200, body: &data }.read_event(binding, ask);
            let (told, frame) = match told {
                Ok(told) => told,
                Err(refusal) => return Ok(Some(refusal.message)),
            };
            (self.broken, begins) = (0, false);
            self.last_event = id.or_else(|| self.last_event.take());
            for told in told.into_iter().chain(frame) {
                self.tell(self.last_event.clone(), &Seen::read(&told));
            }
            if self.is_done() {
                return Ok(None);
            }
        }
    }

    /// Tells what is new.
    pub fn tell(&mut self, event: Option<String>, seen: &Seen) {
        if seen.task.is_some() && self.seen.task != seen.task {
            self.seen.task.clone_from(&seen.task);
            if let (false, Some(task)) = (self.output.json, &self.seen.task) {
                self.output.talk(&format!("[{task}]"));
            }
        }
        let (mut moved, mut new) = (false, Vec::new());
        let stood = shown::standing(&self.seen, &self.connection.url);
        if self.says_again(seen) {
            // The proposal's frame says less of a pause than the event before it has said.
        } else if seen.state.is_some() {
            moved = self.seen.state != seen.state || self.seen.pause != seen.pause;
            self.seen.state.clone_from(&seen.state);
            self.seen.since.clone_from(&seen.since);
            self.seen.pause.clone_from(&seen.pause);
            self.seen.status_words.clone_from(&seen.status_words);
            self.seen.choices.clone_from(&seen.choices);
        }
        self.seen.context = seen.context.clone().or_else(|| self.seen.context.take());
        self.seen.message = seen.message.clone().or_else(|| self.seen.message.take());
        for said in &seen.said {
            new.extend(self.hear(said));
        }
        if self.output.json {
            if moved || !new.is_empty() || seen.message.is_some() {
                let mut object =
                    Seen { said: new, task: self.seen.task.clone(), ..seen.clone() }.to_value();
                if let (Some(object), Some(event)) = (object.as_object_mut(), event) {
                    object.insert("eventId".to_owned(), event.into());
                }
                self.output.data(&object.to_string());
            }
            return;
        }
        for said in &new {
            self.print(said);
        }
        if let Some(message) = &seen.message {
            self.output.said(message);
        }
        // Where it comes to rest is said at the end.
        let standing = shown::standing(&self.seen, &self.connection.url);
        if moved && standing != stood && !self.is_done() {
            self.end_line();
            let leave = if seen.is_paused() { "; Ctrl-C leaves it" } else { "" };
            self.output.talk(&format!("[{standing}{leave}]"));
        }
    }

    /// Tells whether this says of a pause nothing but what is known of it.
    fn says_again(&self, seen: &Seen) -> bool {
        let (Some(known), Some(told)) = (&self.seen.pause, &seen.pause) else { return false };
        seen.state == self.seen.state
            && told.iter().all(|(name, value)| value.is_null() || known.get(name) == Some(value))
            && (seen.status_words.is_none() || seen.status_words == self.seen.status_words)
    }

    /// Returns what was not told yet of what is said: a stream that goes on begins with the whole.
    fn hear(&mut self, said: &Said) -> Option<Said> {
        let known = self.said.entry(said.id.clone()).or_default();
        let (text, append) = match (said.append, said.text.strip_prefix(known.as_str())) {
            (true, _) => (said.text.clone(), true),
            (false, Some(rest)) => (rest.to_owned(), !known.is_empty()),
            (false, None) => {
                known.clear();
                (said.text.clone(), false)
            }
        };
        known.push_str(&text);
        (!text.is_empty()).then(|| Said { id: said.id.clone(), text, append })
    }

    fn print(&mut self, said: &Said) {
        if self.line.as_ref().is_some_and(|line| *line != said.id || !said.append) {
            self.end_line();
        }
        match self.output.on_terminal() {
            true => self.output.words(Look::Plain, &said.text),
            false => self.output.bytes(said.text.as_bytes()),
        }
        self.line = Some(said.id.clone());
    }

    fn end_line(&mut self) {
        if self.line.take().is_some() {
            match self.output.on_terminal() {
                true => self.output.end_words(),
                false => self.output.bytes(b"\n"),
            }
        }
    }

    fn is_done(&self) -> bool {
        self.seen.is_over() || self.seen.is_asking() || self.seen.message.is_some()
    }

    /// Says where the task stands that was given and is not waited for.
    pub fn detached(self, seen: &Seen) -> Result<(), Failure> {
        self.output.object(
            &seen.to_value(),
            &match &seen.message {
                Some(message) => message.clone(),
                None => shown::line(seen),
            },
        );
        Ok(())
    }

    /// Says how the task came to rest; one that did not complete is a failure.
    fn end(mut self) -> Result<(), Failure> {
        self.end_line();
        if self.seen.message.is_some() {
            return Ok(());
        }
        let state = self.seen.state.as_deref().unwrap_or("unknown");
        if self.seen.is_asking() || state == "completed" {
            let standing = shown::standing(&self.seen, &self.connection.url);
            self.output.talk(&format!("[{standing}]"));
            return Ok(());
        }
        let why = self.seen.status_words.as_deref().unwrap_or("the agent does not say why");
        let how = if state == "failed" { "failed".to_owned() } else { format!("was {state}") };
        Err(Failure::other(format!("the task {how}: {why}")))
    }

    /// Says that the task is left alone, because a signal says so.
    pub fn left(&self, Ended(code): Ended) -> Failure {
        let message = match &self.seen.task {
            None => "left; nothing was answered yet",
            Some(_) if self.seen.is_paused() => "left; the task stays paused",
            Some(_) => "left; the task goes on without you",
        };
        let failure = Failure::interrupted(code, message);
        match &self.seen.task {
            Some(task) => failure.hint(format!("adjourn a2a watch {} {task}", self.connection.url)),
            None => failure,
        }
    }
}
