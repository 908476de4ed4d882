//! One step: limits are looked at, the model is asked, and its answer is judged.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use adjourn_core::carry::Usage;
use adjourn_core::command::RunEnd;
use adjourn_core::conditions::Conditions;
use adjourn_core::session::Outcome;
use adjourn_core::{MARK, limits};
use adjourn_driver::{
    Block, CallContent, Emitter, Finish, ModelMessage, ModelRole, Opening, Park, Part, Role, Shown,
    Step, TranscriptError, UNASKED,
};

use super::AgentDriver;
use super::answer::{Answer, hear};
use super::call::FAILURE;
use super::permission::Again;
use super::place::{Place, SourceId};
use super::recover::Flow;
use super::requested::too_much;
use crate::events::{AgentEvent, LlmCallCompleted};
use crate::failure::{Action, Failure, FailureKind};
use crate::model::{FinishReason, ModelError, ModelRequest, ModelUsage};
use crate::record::dollars;
use crate::tool::{ToolSpec, Toolbox};

/// How long an agent waits for a quota at most: what is said to refill later never does.
const LONGEST_PARK: Duration = Duration::from_secs(3653 * 24 * 60 * 60);

/// What is told instead of why the model stopped, of a call that failed and has used something.
const FAILED: &str = "error";

/// A step under way.
pub(super) struct Stepping {
    pub(super) driver: AgentDriver,
    pub(super) step: Step,
    pub(super) out: Emitter<Part>,
    pub(super) place: Place,
    /// What tools have raised since the last step.
    raised: Vec<FailureKind>,
    /// Whether the model has given an answer that can be used.
    pub(super) spoken: bool,
}

/// What the calls that have come back since the last step leave to do.
struct Fresh {
    /// The first failure of each kind.
    failures: Vec<Failure>,
    /// Calls that were not run because no person could be asked about one of their message.
    unasked: Vec<CallContent>,
}

impl Stepping {
    pub(super) fn new(driver: AgentDriver, step: Step, out: Emitter<Part>) -> Self {
        let place = Place::read(&step.session);
        Self { driver, step, out, place, raised: Vec::new(), spoken: false }
    }

    /// Runs the step to its end.
    pub(super) async fn run(mut self) {
        if let Err(error) = self.go().await {
            self.out.emit(Part::Finished(Finish::failed(error.to_string()))).await;
        }
    }

    async fn go(&mut self) -> Result<(), TranscriptError> {
        let hard = self.driver.inner.limits.loop_hard_threshold;
        if self.place.enter(&self.step.session, hard) {
            // A person's answer is told once: it holds also if this step is broken off.
            self.out.emit(Part::State(self.place.write())).await;
        }
        // What was decided about an answer that was broken off.
        if let Some(pending) = self.place.pending.take()
            && self.carry_out(pending).await == Flow::Over
        {
            return Ok(());
        }
        // The answer came to calls that the model has asked for already: it is not asked again.
        if let Some(permitted) = self.permitted()? {
            return self.go_on_with(permitted).await;
        }
        let from = self.place.seen;
        let Fresh { failures, unasked: calls } = self.fresh_results()?;
        let unmet = std::mem::take(&mut self.place.unmet);
        let mut met = VecDeque::from(one_of_each_kind(unmet.iter().chain(&failures)));
        if !calls.is_empty() {
            self.place.unmet = met.into();
            return self.go_on_with(Again { from, calls, granted: Vec::new(), parks: true }).await;
        }
        self.raised = met.iter().map(|failure| failure.kind).collect();
        while let Some(failure) = met.pop_front() {
            // If a person is asked about this one, the others come behind the answer.
            self.place.unmet = met.iter().cloned().collect();
            let pending = self.meet(failure, None).await;
            if self.carry_out(pending).await == Flow::Over {
                return Ok(());
            }
        }
        for failure in self.limits_reached() {
            let pending = self.meet(failure, None).await;
            if self.carry_out(pending).await == Flow::Over {
                return Ok(());
            }
        }
        let Some(toolboxes) = self.toolboxes().await else { return Ok(()) };
        let request = self.request(&toolboxes)?;
        let answer = hear(&self.driver, request, &self.out).await;
        self.account(&answer).await;
        self.judge(answer, &toolboxes).await;
        Ok(())
    }

    /// Returns the tools there are; nothing if the step is over because some cannot be had.
    pub(super) async fn toolboxes(&mut self) -> Option<Vec<Arc<Toolbox>>> {
        if self.step.opening != Opening::Next {
            self.driver.sources.begin_turn().await;
        }
        let (toolboxes, failed) = self.driver.toolboxes(&self.step).await;
        self.place.asked_sources.retain(|asked| failed.iter().any(|(source, _)| source == asked));
        let untold = |(_, failure): &(SourceId, Failure)| self.driver.sources.is_untold(failure);
        let failed: Vec<_> = failed.into_iter().filter(untold).collect();
        for (_, failure) in &failed {
            // The run goes on without those tools: whoever watches is told as the model is.
            self.out.emit(Part::Shown(Shown::notice(&failure.explanation))).await;
        }
        // A person who was asked about a source and has left it as it is wants to go on without it.
        let (given_up, failed): (Vec<_>, Vec<_>) =
            failed.into_iter().partition(|(source, _)| self.place.asked_sources.contains(source));
        for (_, failure) in &given_up {
            self.place.learn(failure);
        }
        for failure in one_of_each_kind(failed.iter().map(|(_, failure)| failure)) {
            self.raised.push(failure.kind);
            let pending = self.meet_of_source(failure).await;
            if pending.action == Action::AskUser {
                let of_kind = failed.iter().filter(|(_, other)| other.kind == pending.failure.kind);
                self.place.asked_sources.extend(of_kind.map(|(source, _)| source.clone()));
            }
            if self.carry_out(pending).await == Flow::Over {
                return None;
            }
        }
        Some(toolboxes)
    }

    /// Returns what the calls that have come back since the last step leave to do.
    fn fresh_results(&mut self) -> Result<Fresh, TranscriptError> {
        let entries = self.since(self.place.seen)?;
        self.place.seen = self.step.transcript.len();
        let mut failures: Vec<Failure> = Vec::new();
        let mut unasked = BTreeSet::new();
        for result in &entries {
            match result.role {
                Role::Tool => {}
                // What is said behind them is about them: the model reads both.
                Role::User => {
                    unasked.clear();
                    continue;
                }
                _ => continue,
            }
            let marked = |name| result.structured.as_ref().and_then(|value| value.get(name));
            if result.is_error && marked(UNASKED).is_some() {
                unasked.extend(&result.answers);
            }
            let failure =
                marked(FAILURE).and_then(|value| serde_json::from_value(value.clone()).ok());
            match failure {
                Some(failure) if result.is_error => {
                    let failure: Failure = Failure::bounded(failure);
                    if failures.iter().all(|other| other.kind != failure.kind) {
                        failures.push(failure);
                    }
                }
                _ if !result.is_error => {
                    self.place.attempts.remove(&FailureKind::ToolError);
                }
                _ => {}
            }
        }
        let calls = entries.iter().flat_map(|entry| &entry.calls);
        let unasked = calls.filter(|call| unasked.contains(&call.id)).cloned().collect();
        Ok(Fresh { failures, unasked })
    }

    /// Returns every limit that the run has reached: one that is let pass hides no other.
    fn limits_reached(&self) -> Vec<Failure> {
        let mut reached = Vec::new();
        let (session, limits) = (&self.step.session, &self.driver.inner.limits);
        let (answers, added) = (self.place.iterations, &session.added);
        if answers >= limits.max_iterations.saturating_add(added.iterations) {
            let why = format!("The run has had {answers} answers of the model, as many as it may");
            reached.push(Failure::new(FailureKind::IterationLimit, why));
        }
        let worked = session.run().map_or(0, |run| run.progress.active_ms);
        let worked = Duration::from_millis(worked);
        if worked >= limits.max_execution_time {
            let (worked, limit) = (worked.as_secs(), limits.max_execution_time.as_secs_f64());
            let why = format!("The run has worked for {worked} s, and may for {limit} s");
            reached.push(Failure::new(FailureKind::TimeLimit, why));
        }
        let limited = limits.max_cost_micro_usd.or(session.budget.cost_micro_usd);
        let model = &self.driver.inner.model;
        if limited.is_some()
            && !self.driver.inner.config.prices.knows(model.id())
            && !model.states_cost()
        {
            // A limit that could never be reached is not one that anybody meant.
            let why = format!("What {} costs is not known here, and cost is limited", model.id());
            reached.push(Failure::new(FailureKind::CapabilityGap, why));
        }
        let totals = &session.totals;
        let cost = limits.max_cost_micro_usd.map(|max| max.saturating_add(added.cost_micro_usd));
        if let Some(max) = cost.filter(|max| totals.cost_micro_usd >= *max) {
            let (used, max) = (dollars(totals.cost_micro_usd), dollars(max));
            let why = format!("The run has cost {used} USD, and may cost {max} USD");
            reached.push(Failure::new(FailureKind::BudgetExceeded, why));
        }
        let tokens = limits.max_tokens.map(|max| max.saturating_add(added.tokens));
        if let Some(max) = tokens.filter(|max| totals.tokens() >= *max) {
            let why = format!("The run has used {} tokens, and may use {max}", totals.tokens());
            reached.push(Failure::new(FailureKind::BudgetExceeded, why));
        }
        reached
    }

    /// Returns what the model is asked.
    fn request(&mut self, toolboxes: &[Arc<Toolbox>]) -> Result<ModelRequest, TranscriptError> {
        let mut messages = self.step.transcript.messages()?;
        let answers = *self.place.answers.get_or_insert_with(|| {
            let answers = messages.iter().filter(|message| message.role == ModelRole::Agent);
            answers.count() as u64
        });
        let lessons = self.place.lessons.iter().map(|lesson| format!("\n- {lesson}"));
        let lessons: String = lessons.collect();
        let mut notes = String::new();
        if !lessons.is_empty() {
            notes = format!("{MARK} What went wrong in this run so far:{lessons}");
        }
        if let Some(instruction) = &self.place.instruction {
            let apart = if notes.is_empty() { "" } else { "\n" };
            notes = format!("{notes}{apart}{MARK} {instruction}");
        }
        if !notes.is_empty() {
            // It is not said: it stands in no transcript, and in this request alone.
            messages.push(ModelMessage {
                role: ModelRole::User,
                blocks: vec![Block::text(notes)],
                calls: Vec::new(),
                answers: None,
                structured: None,
                is_error: false,
            });
        }
        Ok(ModelRequest {
            instructions: self.driver.inner.config.instructions.clone(),
            messages,
            answers,
            tools: match toolboxes {
                // Those of the agent itself do not change.
                [_] => Arc::clone(&self.driver.inner.specs),
                toolboxes => specs(toolboxes),
            },
            environment: Arc::clone(&self.step.environment),
        })
    }

    /// Counts what a model call has used.
    async fn account(&mut self, answer: &Answer) {
        let inner = Arc::clone(&self.driver.inner);
        let (model, usage) = (inner.model.id(), answer.usage);
        let cost = inner.config.prices.cost(model, &usage);
        if cost.is_none() && answer.end.is_ok() {
            self.place.unpriced_calls += 1;
        }
        let spent = Usage {
            cost_micro_usd: cost.unwrap_or(0),
            prompt_tokens: usage.prompt_tokens.unwrap_or(0),
            completion_tokens: usage.completion_tokens.unwrap_or(0),
            active_ms: millis(answer.took),
        };
        self.out.emit(Part::Spent(spent)).await;
        // The next request holds all of it.
        let used = spent.prompt_tokens.saturating_add(spent.completion_tokens);
        if used > 0 {
            let size = inner.config.prices.context_tokens(model).unwrap_or(0);
            self.out.emit(Part::Shown(Shown::Context { used, size })).await;
        }
        let reason = match &answer.end {
            Ok(reason) => Some(reason.as_str()),
            // A program that adds up what is told of model calls must come to what was counted.
            Err(_) => (usage != ModelUsage::default()).then_some(FAILED),
        };
        if let Some(reason) = reason {
            self.driver.tell(|| {
                AgentEvent::LlmCallCompleted(LlmCallCompleted {
                    model_id: model.to_owned(),
                    prompt_tokens: usage.prompt_tokens,
                    cached_prompt_tokens: usage.cached_prompt_tokens,
                    completion_tokens: usage.completion_tokens,
                    cost_usd: cost.map(dollars),
                    duration_s: answer.took.as_secs_f64(),
                    finish_reason: reason.to_owned(),
                })
            });
        }
    }

    /// Does what follows from an answer.
    async fn judge(&mut self, answer: Answer, toolboxes: &[Arc<Toolbox>]) {
        let (failure, wait) = match &answer.end {
            Err(error) => {
                if let Some(park) = self.quota(error).filter(|_| !answer.said) {
                    self.out.emit(Part::Park(park)).await;
                    return self.finish(None).await;
                }
                let now = self.driver.clock.now();
                let mut why = error.message.clone();
                if let Some(at) = error.quota_refills_at(now) {
                    why = format!("{why}; it can be asked again at {at}");
                    if !self.driver.inner.limits.park_on_quota {
                        why += ", and the guardrail park_on_quota parks a run until then";
                    }
                }
                (Some(Failure::new(error.kind, why)), error.wait(now))
            }
            Ok(reason) => (unusable(reason, &answer), None),
        };
        if let Some(failure) = failure {
            // What it said is not whole.
            let pending = self.meet(failure, wait).await;
            return self.break_off(pending).await;
        }
        self.spoken = true;
        let mut calls = self.requested(answer.calls, toolboxes);
        let refused = too_much(&calls).or_else(|| self.misparked(&calls));
        self.raised.extend(refused.as_ref().map(|refused| refused.kind));
        self.place.answered(&self.raised);
        if calls.is_empty() {
            let end = RunEnd { outcome: Outcome::Completed, error: None, ends_session: false };
            return self.finish(Some(end)).await;
        }
        if let Some(failure) = refused.or_else(|| self.looping(&calls)) {
            // The calls are not asked for: none dangles, and none runs.
            let pending = self.meet(failure, None).await;
            if self.carry_out(pending).await == Flow::GoOn {
                self.finish(None).await;
            }
            return;
        }
        self.ask_for_permission(&mut calls, &[], false);
        self.out.emit(Part::Calls(calls)).await;
        self.finish(None).await;
    }

    /// Returns the park for a quota that says when it refills, if the agent may park for that. One
    /// that refills before the call would be tried again is no reason to park.
    fn quota(&self, error: &ModelError) -> Option<Park> {
        let inner = &self.driver.inner;
        if !inner.limits.park_on_quota {
            return None;
        }
        let now = self.driver.clock.now();
        let at = error.quota_refills_at(now)?;
        let attempts = self.place.attempts.get(&error.kind).copied().unwrap_or(0);
        let (wait, backoff) = (at.since(now), inner.policy.backoff(error.kind, attempts));
        if wait <= backoff || wait > LONGEST_PARK {
            return None;
        }
        let reason = limits::excerpt(&format!("quota: {}", error.message), limits::EXCERPT_BYTES);
        Some(Park::Await { reason, conditions: Some(Conditions::at(at)), summary: None })
    }
}

impl AgentDriver {
    /// Returns the tools there are, and why some cannot be had, by the places of their sources.
    async fn toolboxes(&self, step: &Step) -> (Vec<Arc<Toolbox>>, Vec<(SourceId, Failure)>) {
        let mut toolboxes = vec![Arc::clone(&self.inner.toolbox)];
        let mut failures = Vec::new();
        let clock = self.clock.as_ref();
        let found = self.sources.look(&step.session, &step.environment, clock).await;
        for (place, found) in found.into_iter().enumerate() {
            match found {
                Ok(toolbox) => toolboxes.push(toolbox),
                Err(error) => failures.push((self.sources.id(place), error.failure.bounded())),
            }
        }
        (toolboxes, failures)
    }
}

/// Returns what the model is told of tools. Of two with one name the first counts, as it does when
/// the tool is called.
fn specs(toolboxes: &[Arc<Toolbox>]) -> Arc<[ToolSpec]> {
    let mut names = BTreeSet::new();
    let all = toolboxes.iter().flat_map(|toolbox| toolbox.specs());
    all.filter(|spec| names.insert(spec.name.as_str())).cloned().collect()
}

/// Says why an answer that ended cannot be used.
fn unusable(reason: &FinishReason, answer: &Answer) -> Option<Failure> {
    let failure = match reason {
        FinishReason::Length => {
            Failure::new(FailureKind::OutputTruncated, "the answer was cut off at its length")
        }
        FinishReason::ContentFilter => {
            Failure::new(FailureKind::OutputRefused, "a filter stopped the answer")
        }
        FinishReason::Refusal => Failure::new(FailureKind::OutputRefused, "the model refused"),
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other(_)
            if !answer.said && answer.calls.is_empty() =>
        {
            Failure::new(FailureKind::NoProgress, "the model answered with nothing")
        }
        // Its words announce what it has not done.
        FinishReason::ToolCalls if answer.calls.is_empty() => {
            Failure::new(FailureKind::NoProgress, "the model stopped for calls and asked for none")
        }
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other(_) => return None,
    };
    Some(failure)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Puts the failures of each kind together, so that the model is told of all of them at once and a
/// person is asked once.
fn one_of_each_kind<'a>(failures: impl Iterator<Item = &'a Failure>) -> Vec<Failure> {
    let mut each: Vec<Failure> = Vec::new();
    for failure in failures {
        match each.iter_mut().find(|other| other.kind == failure.kind) {
            Some(other) => {
                let explanation = format!("{}; {}", other.explanation, failure.explanation);
                *other = Failure { explanation, ..other.clone() }.bounded();
            }
            None => each.push(failure.clone()),
        }
    }
    each
}
