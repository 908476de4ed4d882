//! The whole job: a prompt, the agent says something and parks, a resume, it says something and
//! ends. Through a host in the same process here; `acp_runs.rs` has the same through an editor's
//! pipe.

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use adjourn::core::Session;
use adjourn::core::event::What;
use adjourn::core::id::SessionId;
use adjourn::core::session::State;
use adjourn::feed::Following;
use adjourn::{Adjourn, Claimant, Moments, SessionRef};
use adjourn_testkit::process::processor_time;
use anyhow::{Result, bail};
use tokio::task::JoinSet;

use super::child::runtime;
use super::figures::Figures;
use super::log::Log;
use super::sessions::{create, open, prompt, resume};

/// What the agent does in one run.
pub const SCRIPT: &str =
    r#"{"steps": [{"say": "hello"}, {"await": {"reason": "waiting"}}, {"say": "good bye"}]}"#;
/// Sessions that run at once.
pub const SESSIONS: usize = 64;
/// How long a throughput is measured.
pub const SPAN: Duration = Duration::from_millis(1500);
/// Runs that are counted exactly.
const COUNTED: u64 = 50;

/// Measures one round.
///
/// What is compared lies between two of what it is compared with: a machine that gets slower or
/// faster by and by counts for neither.
pub fn measure(place: &Path, log: &Log, figures: &mut Figures) -> Result<()> {
    let in_span = |start: Instant, _| start.elapsed() < SPAN;
    let work = |name: &str, sessions, through| {
        Work::of(&place.join(name).with_extension("db"), sessions, through, in_span)
    };
    let alone = work("run", 1, Through::Library)?;
    let beneath = work("run-beneath", 1, Through::Beneath)?;
    let again = work("run-again", 1, Through::Library)?;
    figures.add("run_cycles_per_s_n1", alone.per_second());
    figures.add(
        "run_library_percent_n1",
        percent(mean(&alone, &again, Work::per_second), beneath.per_second()),
    );
    let counted = |name: &str, through| {
        Work::of(&place.join(name).with_extension("db"), 1, through, |_, runs| runs < COUNTED)
    };
    for (through, name, commits, commands) in [
        (Through::Library, "counted", "run_commits", "run_commands"),
        (Through::Beneath, "counted-beneath", "run_beneath_commits", "run_beneath_commands"),
    ] {
        let counted = counted(name, through)?;
        figures.add(commits, counted.each(counted.commits));
        figures.add(commands, counted.each(counted.commands));
    }
    let first = work("runs", SESSIONS, Through::Library)?;
    let beneath = work("beneath", SESSIONS, Through::Beneath)?;
    let second = work("second", SESSIONS, Through::Library)?;
    let logged = log.on(|| work("logged", SESSIONS, Through::Library))?;
    let third = work("third", SESSIONS, Through::Library)?;
    figures.add("run_cycles_per_s_n64", first.per_second());
    figures.add("run_cpu_us", first.cpu_us());
    // What the verbs of the library leave of the throughput beneath them, and what they take.
    let library = |of: fn(&Work) -> f64| percent(mean(&first, &second, of), of(&beneath));
    figures.add("run_library_percent_n64", library(Work::per_second));
    figures.add("run_library_cpu_percent_n64", library(Work::cpu_us));
    let with_log = |of: fn(&Work) -> f64| percent(of(&logged), mean(&second, &third, of));
    figures.add("run_log_percent_n64", with_log(Work::per_second));
    figures.add("run_log_cpu_percent_n64", with_log(Work::cpu_us));
    Ok(())
}

fn mean(one: &Work, other: &Work, of: fn(&Work) -> f64) -> f64 {
    (of(one) + of(other)) / 2.0
}

fn percent(part: f64, whole: f64) -> f64 {
    100.0 * part / whole
}

/// What some sessions did, and what it took.
struct Work {
    runs: u64,
    spent: Duration,
    cpu: Duration,
    /// Transactions that were committed.
    commits: u64,
    /// Decisions in the journals.
    commands: u64,
}

impl Work {
    /// Has sessions run again and again, each while `go_on` says so of the start and of the runs
    /// that the session has done.
    fn of(
        path: &Path,
        sessions: usize,
        through: Through,
        go_on: fn(Instant, u64) -> bool,
    ) -> Result<Self> {
        let adjourn = open(path)?;
        let ids: Vec<_> = (0..sessions).map(|_| create(&adjourn, SCRIPT)).collect::<Result<_>>()?;
        let runtime = runtime()?;
        runtime.block_on(hosted(&adjourn, async |claimant| {
            let clients = Clients { adjourn: &adjourn, claimant, through };
            // The first run of each is not measured: what is made once is there by then.
            clients.all(&ids, |_, runs| runs < 1).await?;
            let decisions = decisions(&adjourn, &ids).await?;
            let (before, cpu, start) =
                (adjourn.metrics(), processor_time(std::process::id()), Instant::now());
            let runs = clients.all(&ids, go_on).await?;
            let (spent, cpu) =
                (start.elapsed(), processor_time(std::process::id()).saturating_sub(cpu));
            let commits = adjourn.metrics().commits - before.commits;
            let commands = self::decisions(&adjourn, &ids).await? - decisions;
            Ok(Self { runs, spent, cpu, commits, commands })
        }))
    }

    fn per_second(&self) -> f64 {
        self.runs as f64 / self.spent.as_secs_f64()
    }

    fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.runs as f64
    }

    fn each(&self, count: u64) -> f64 {
        count as f64 / self.runs as f64
    }
}

/// Does something beside a host, and stops the host.
async fn hosted<T, F>(adjourn: &Adjourn, work: impl FnOnce(Claimant) -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let host = adjourn.host().scripts().max_running(SESSIONS).start().await?;
    let result = work(host.claimant().clone()).await;
    host.stop().await?;
    result
}

/// Through what clients prompt, resume and wait.
#[derive(Clone, Copy)]
enum Through {
    /// The verbs of the library and what it tells of a session, as a program does.
    Library,
    /// What the library itself is made of: the other side of `run_library_percent_n64`, which by
    /// definition is beneath the verbs.
    Beneath,
}

/// Those who prompt and resume sessions.
struct Clients<'a> {
    adjourn: &'a Adjourn,
    claimant: Claimant,
    through: Through,
}

impl Clients<'_> {
    /// Runs all sessions at once, each in a task, and returns how many runs there were.
    async fn all(&self, ids: &[SessionId], go_on: fn(Instant, u64) -> bool) -> Result<u64> {
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for id in ids.iter().copied() {
            let mut client = self.client(id).await?;
            tasks.spawn(async move {
                let mut runs = 0;
                while go_on(start, runs) {
                    client.run().await?;
                    runs += 1;
                }
                Ok::<_, anyhow::Error>(runs)
            });
        }
        let mut total = 0;
        while let Some(runs) = tasks.join_next().await {
            total += runs??;
        }
        Ok(total)
    }

    async fn client(&self, id: SessionId) -> Result<Client> {
        let session = self.adjourn.session(id);
        Ok(match self.through {
            Through::Library => {
                let moments = session.watch().from_now().await?;
                Client::Library(Box::new(Library { session, moments }))
            }
            Through::Beneath => {
                let following = self.adjourn.feed().follow(id);
                Client::Beneath(Beneath { session, claimant: self.claimant.clone(), following })
            }
        })
    }
}

/// A client that prompts and resumes one session.
enum Client {
    Library(Box<Library>),
    Beneath(Beneath),
}

impl Client {
    /// One run, from the prompt to the end.
    async fn run(&mut self) -> Result<()> {
        match self {
            Self::Library(client) => client.run().await,
            Self::Beneath(client) => client.run().await,
        }
    }
}

/// A client as a program is one that embeds the library.
struct Library {
    session: SessionRef,
    moments: Moments,
}

impl Library {
    async fn run(&mut self) -> Result<()> {
        self.session.prompt("go").await?;
        self.until(|what| matches!(what, What::Suspended(_))).await?;
        self.session.resume().await?;
        self.until(|what| matches!(what, What::RunEnded(_))).await
    }

    async fn until(&mut self, is_it: impl Fn(&What) -> bool) -> Result<()> {
        while let Some(moment) = self.moments.next().await? {
            if is_it(&moment.event.what) {
                return Ok(());
            }
        }
        bail!("the session has ended")
    }
}

/// A client that gives its commands to the host's claimant and follows the feed, as the verbs do.
struct Beneath {
    session: SessionRef,
    claimant: Claimant,
    following: Following,
}

impl Beneath {
    async fn run(&self) -> Result<()> {
        self.claimant.give(prompt(self.session.id(), "go")).await?;
        self.until(|session| session.suspended().is_some()).await?;
        self.claimant.give(resume(self.session.id())).await?;
        self.until(|session| matches!(session.state, State::Idle)).await
    }

    async fn until(&self, is_so: impl Fn(&Session) -> bool) -> Result<()> {
        loop {
            let session = match self.following.session() {
                Some(session) => session,
                None => self.session.load().await?,
            };
            if is_so(&session) {
                return Ok(());
            }
            self.following.changed().await;
        }
    }
}

/// Counts the decisions in the journals of sessions.
async fn decisions(adjourn: &Adjourn, ids: &[SessionId]) -> Result<u64> {
    let mut count = 0;
    for id in ids {
        let entries = adjourn.session(*id).journal(1, usize::MAX).await?;
        count += entries.iter().filter(|entry| entry.begins_decision()).count() as u64;
    }
    Ok(count)
}
