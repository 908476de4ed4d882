//! The scenarios of `conformance/`, played through the verbs of the library.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop where it fails")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn::clock::Machine;
use adjourn::{Adjourn, Error, Event as Occurrence, Moments, RunningHost, SessionRef};
use adjourn_conformance::given::Recording;
use adjourn_conformance::scenario::{Event, How, Restart, Resume, Scenario, Suspend, Why};
use adjourn_conformance::{Ending, Face, Refusal, Reply, logs};
use adjourn_core::Rejected;
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::driver::DriverSpec;
use adjourn_core::session::Phase;
use adjourn_driver::Message;
use adjourn_store::Environment as _;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::host::embed;
use crate::store::{self, ann};

/// A cancel has time at any pace: scenarios have no calls that hang in one.
const CANCEL_GRACE: Duration = Duration::from_secs(600);

/// A store with the session of one scenario, and a host in this process that drives it.
pub struct Played {
    runtime: Arc<Runtime>,
    session: SessionRef,
    drivers: Recording,
    host: Arc<Mutex<Option<RunningHost>>>,
    /// How long each host that is still to come waits for calls when it is drained.
    graces: std::vec::IntoIter<Option<Duration>>,
    standing: Box<dyn Fn(&mut Value) + Send>,
    look_back: Box<dyn Fn(Ending) -> Result<Ending, String> + Send>,
    /// Held, so that it is there as long as the store.
    _directory: store::Fixture<Machine>,
}

impl Played {
    /// Starts a host with drivers that record what they are given, and makes the session.
    ///
    /// # Errors
    /// The session cannot be made.
    ///
    /// # Panics
    /// The store cannot be opened.
    pub fn open(
        scenario: &Scenario,
        runtime: &Arc<Runtime>,
        drivers: Recording,
        driver: DriverSpec,
    ) -> Result<Self, String> {
        let directory = store::Fixture::with(Machine);
        let adjourn = embed(directory.open(), Arc::new(Machine)).unwrap().acting_as(ann());
        let mut graces = scenario.graces().into_iter();
        let opened: Result<_, Error> = runtime.block_on(async {
            let host = start(&adjourn, &drivers, graces.next().flatten()).await?;
            Ok((host, adjourn.create_with(driver).await?))
        });
        let (host, session) = opened.map_err(|error| error.to_string())?;
        Ok(Self {
            runtime: Arc::clone(runtime),
            session,
            drivers,
            host: Arc::new(Mutex::new(Some(host))),
            graces,
            standing: Box::new(|_| ()),
            look_back: Box::new(Ok),
            _directory: directory,
        })
    }

    /// Changes what is told of where the session stands before it is compared.
    #[must_use]
    pub fn standing_as(mut self, standing: impl Fn(&mut Value) + Send + 'static) -> Self {
        self.standing = Box::new(standing);
        self
    }

    /// Looks at what the scenario came to before it is compared.
    #[must_use]
    pub fn looking_back(
        mut self,
        look_back: impl Fn(Ending) -> Result<Ending, String> + Send + 'static,
    ) -> Self {
        self.look_back = Box::new(look_back);
        self
    }

    /// Does something with the session, and answers when that is done.
    fn give<F>(&self, work: impl FnOnce(SessionRef) -> F) -> Reply
    where
        F: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        let (sender, reply) = Reply::pair();
        let work = work(self.session.clone());
        self.runtime.spawn(async move {
            let done = work.await.map_err(|error| match error {
                Error::Refused(rejected) => refusal(rejected),
                other => Refusal::broken(other.to_string()),
            });
            // The player may have given up by now.
            let _ = sender.send(done);
        });
        reply
    }
}

async fn start(
    adjourn: &Adjourn,
    drivers: &Recording,
    grace: Option<Duration>,
) -> Result<RunningHost, Error> {
    let host = adjourn.host().others(Arc::new(drivers.clone()));
    match grace {
        Some(grace) => host.drain(grace).start().await,
        None => host.start().await,
    }
}

impl Face for Played {
    fn prompt(&mut self, text: &str) -> Reply {
        // Every message is another one.
        let (text, message) = (text.to_owned(), Machine.uuid().to_string());
        self.give(|session| async move {
            session.prompt(text).message_id(message).await?;
            Ok(Value::Null)
        })
    }

    fn suspend(&mut self, suspend: &Suspend) -> Reply {
        let conditions = match Conditions::parse(&suspend.resume_when, Spelling::Camel) {
            Ok(conditions) => conditions,
            Err(invalid) => {
                return Reply::now(Err(refusal(invalid.within("resumeWhen").into())));
            }
        };
        let suspend = suspend.clone();
        self.give(|session| async move {
            let mut asked = session.suspend().mode(suspend.mode).conditions(conditions);
            if let Some(reason) = suspend.reason {
                asked = asked.reason(reason);
            }
            if let Some(grace) = suspend.grace_ms {
                asked = asked.grace(Duration::from_millis(grace));
            }
            asked.accepted().await?;
            Ok(Value::Null)
        })
    }

    fn resume(&mut self, resume: &Resume) -> Reply {
        let resume = resume.clone();
        self.give(|session| async move {
            let state = session.load().await?;
            // Without a handle, the question is meant that is shown; a key says by itself what is.
            let by_sight = resume.idempotency_key.is_none() && state.phase() == Phase::Asking;
            let shown = state.suspended().filter(|_| by_sight);
            let given = resume.handle.map(|handle| handle.parse().unwrap());
            let handle = given.or(shown.map(|suspended| suspended.shown().pause.handle));
            let mut wake = session.resume().handle(handle);
            if let Some(input) = resume.input {
                wake = wake.input(Message::user_value(input));
            }
            if resume.continue_transcript == Some(false) {
                wake = wake.fresh();
            }
            if let Some(key) = resume.idempotency_key {
                wake = wake.key(key);
            }
            let woken = wake.await?;
            Ok(woken.resumption().map(logs::resumption).unwrap_or_default())
        })
    }

    fn event(&mut self, event: &Event) -> Reply {
        let event = event.clone();
        self.give(|session| async move {
            let source = event.source.unwrap_or_else(|| "conformance".to_owned());
            let mut occurrence = Occurrence::new(event.name).source(source);
            if let Some(subject) = event.subject {
                occurrence = occurrence.subject(subject);
            }
            if let Some(id) = event.id {
                occurrence = occurrence.id(id);
            }
            if let Some(data) = event.data {
                occurrence = occurrence.data(&data);
            }
            let addressed = event.session.then_some(session.id());
            session.adjourn().publish(occurrence.to(addressed)).await?;
            Ok(Value::Null)
        })
    }

    fn cancel(&mut self, why: &Why) -> Reply {
        let reason = why.reason.clone();
        self.give(|session| async move {
            session.cancel().reason(reason).grace(CANCEL_GRACE).await?;
            Ok(Value::Null)
        })
    }

    fn close(&mut self, why: &Why) -> Reply {
        let reason = why.reason.clone();
        self.give(|session| async move {
            session.close().reason(reason).await?;
            Ok(Value::Null)
        })
    }

    fn restart(&mut self, restart: &Restart) -> Reply {
        let grace = self.graces.next().flatten();
        let (runtime, host) = (Arc::clone(&self.runtime), Arc::clone(&self.host));
        let (adjourn, drivers) = (self.session.adjourn().clone(), self.drivers.clone());
        let Restart { how, away, .. } = restart.clone();
        Reply::later(move || {
            let mut host = host.lock().unwrap();
            let old = host.take().unwrap();
            match how {
                How::Kill => runtime.block_on(old.kill()),
                How::Drain => runtime.block_on(old.stop()).unwrap(),
            }
            std::thread::sleep(away.map(|away| away.0).unwrap_or_default());
            *host = Some(runtime.block_on(start(&adjourn, &drivers, grace)).unwrap());
            Ok(Value::Null)
        })
    }

    fn status(&mut self) -> Result<Value, String> {
        let session = self.runtime.block_on(self.session.load());
        let session = session.map_err(|error| error.to_string())?;
        let mut status = serde_json::to_value(session.status()).unwrap();
        (self.standing)(&mut status);
        Ok(status)
    }

    fn ending(&mut self) -> Result<Ending, String> {
        let mut moments = Moments::from_start(&self.session);
        let (mut journal, mut transcript) = (Vec::new(), Vec::new());
        for moment in self.runtime.block_on(moments.rest()).map_err(|error| error.to_string())? {
            for (_, said) in &moment.said {
                let mut object = serde_json::to_value(said).unwrap();
                if let Some(object) = object.as_object_mut() {
                    object.insert("revision".to_owned(), moment.revision.into());
                    object.insert("text".to_owned(), said.text().into());
                }
                transcript.push(object);
            }
            journal.push((moment.revision, moment.event));
        }
        let given = Some(self.drivers.given()?);
        (self.look_back)(Ending { given, ..logs::look_back(journal, transcript)? })
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        if let Some(host) = self.host.lock().unwrap().take() {
            self.runtime.block_on(host.kill());
        }
    }
}

fn refusal(rejected: Rejected) -> Refusal {
    let (reason, message) = (rejected.reason().to_owned(), rejected.to_string());
    let path = match rejected {
        Rejected::Invalid { path, .. } => Some(path),
        _ => None,
    };
    Refusal { reason, path, message }
}
