//! The trials, and what they share: agents at work, hosts that come and go, and the reckoning.

pub mod crash;
pub mod pausing;
pub mod reach;
pub mod rolling;

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use adjourn::KnownHost;
use adjourn::core::id::SessionId;
use adjourn_testkit::dice::Dice;
use adjourn_testkit::process::Child;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::life::{Life, Manners};
use crate::oracle::{self, Marks};
use crate::process::Program;
use crate::report::Report;
use crate::scene::Scene;
use crate::story::Story;

/// How long what takes milliseconds may take on a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often somebody looks who waits for a host.
const LOOK: Duration = Duration::from_millis(5);

/// Agents at work, and what is known of them.
pub struct Stage {
    /// Where.
    pub scene: Scene,
    /// Starts processes.
    pub program: Program,
    /// Gives commands.
    pub client: Client,
    report: Arc<Mutex<Report>>,
    stories: Arc<Mutex<BTreeMap<SessionId, Story>>>,
    over: Arc<AtomicBool>,
    lives: JoinSet<()>,
}

impl Stage {
    /// Prepares a stage in a directory, for processes of `program`.
    pub fn new(directory: &std::path::Path, program: std::path::PathBuf) -> Self {
        let scene = Scene::at(directory);
        Self {
            program: Program::new(program, scene.clone()),
            client: Client::new(&scene),
            scene,
            report: Arc::default(),
            stories: Arc::default(),
            over: Arc::default(),
            lives: JoinSet::new(),
        }
    }

    /// Waits until the first hosts are in the list of the store.
    ///
    /// # Errors
    /// One of them has ended instead: nobody would drive the agents.
    ///
    /// # Panics
    /// The store fails, or nothing happens.
    pub async fn join(&self, hosts: &mut [Child]) -> Result<(), String> {
        let start = Instant::now();
        while self.hosts().await.len() < hosts.len() {
            if let Some(status) = hosts.iter_mut().find_map(Child::has_ended) {
                return Err(format!("a host ended with {status} before it began"));
            }
            assert!(start.elapsed() < PATIENCE, "the hosts do not begin");
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Asks a host to end, and waits until it has; returns whether it ended well.
    ///
    /// # Panics
    /// It does not end.
    pub async fn dismiss(&self, mut host: Child) -> bool {
        let early = host.has_ended();
        host.ask_to_end().await;
        let status = host.ended().await;
        let ended_well = early.is_none() && status.success();
        if !ended_well {
            self.died(status);
        }
        ended_well
    }

    /// Notes that a host ended that should not have, or not so.
    pub fn died(&self, status: ExitStatus) {
        self.note(|report| report.wrong.push(format!("a host ended by itself: {status}")));
    }

    /// Sets so many agents to work. Where one ends the next begins, until [`Stage::last_ones`].
    pub fn people(&mut self, agents: u64, manners: Manners, dice: &mut Dice) {
        let numbers = Arc::new(AtomicU64::new(0));
        for _ in 0..agents {
            let (client, report) = (self.client.clone(), Arc::clone(&self.report));
            let (stories, over) = (Arc::clone(&self.stories), Arc::clone(&self.over));
            let (numbers, mut dice) = (Arc::clone(&numbers), dice.fork());
            self.lives.spawn(async move {
                loop {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    let (client, report) = (client.clone(), Arc::clone(&report));
                    let life = Life::live(client, report, dice.fork(), manners, number);
                    let (id, story) = life.await;
                    stories.lock().unwrap_or_else(PoisonError::into_inner).insert(id, story);
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
    }

    /// Notes something in the report.
    pub fn note(&self, note: impl FnOnce(&mut Report)) {
        note(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns whether something has gone wrong already.
    pub fn failed(&self) -> bool {
        !self.report.lock().unwrap_or_else(PoisonError::into_inner).is_clean()
    }

    /// Lets those who are at work come to their end.
    ///
    /// # Panics
    /// A client panicked.
    pub async fn last_ones(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        while let Some(lived) = self.lives.join_next().await {
            lived.expect("no client panics");
        }
    }

    /// Returns the hosts in the list of the store.
    async fn hosts(&self) -> Vec<KnownHost> {
        self.client.adjourn().known_hosts().await.expect("the store works")
    }

    /// Compares what is known outside of the store with the store. No host may run any more.
    ///
    /// # Panics
    /// The store fails.
    pub async fn reckon(self, marks: Marks) -> Report {
        // Whatever the dead have left, the next host clears away, and leaves nothing itself.
        let mut host = self.program.host(1);
        let start = Instant::now();
        let pid = Some(u64::from(host.id()));
        let only = |hosts: Vec<KnownHost>| {
            hosts.len() == 1 && hosts.iter().all(|host| host.about.pid() == pid)
        };
        while !(only(self.hosts().await) && self.scene.files_of_hosts().len() == 2) {
            // It is dismissed below, and then somebody asks how it ended.
            if host.has_ended().is_some() {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "the dead are not buried");
            tokio::time::sleep(LOOK).await;
        }
        self.dismiss(host).await;
        let mut report = std::mem::take(&mut *self.report.lock().expect("nobody panics"));
        for path in self.scene.files_of_hosts() {
            report.wrong.push(format!("{} was left behind", path.display()));
        }
        for host in self.hosts().await {
            report.wrong.push(format!("{} is still in the list of hosts", host.id));
        }
        let stories = self.stories.lock().expect("nobody panics").clone();
        let adjourn = self.client.adjourn();
        oracle::check_marks(&self.scene, adjourn, &stories, marks, &mut report).await;
        oracle::verify(adjourn, &mut report).await;
        report
    }
}
