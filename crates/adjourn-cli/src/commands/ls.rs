//! `ls`: what is there, what it waits for, and what will wake it.

use adjourn::core::Session;
use adjourn::core::id::SessionId;
use adjourn::{Error, Filter, Query, Sort, StateKind, StoreError};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::filter::{Ls, Order};
use crate::founding::NAME;
use crate::liveness::Living;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::{Look, Output, fill, one_line, shorten, width};
use crate::view::{self, Row, View, short};

/// Sessions read at a time.
const PAGE: usize = 256;
/// The widest state there is, and the widest time since.
const STATE: usize = "suspended".len();
const SINCE: usize = "23h 59m".len();
/// The widest name that is shown as a whole.
const NAMES: usize = 24;
/// The least that a reason has, and what wakes a session: less says nothing.
const WHY: usize = 16;
const WAKES: usize = 8;
/// What stands between two columns.
const GAP: &str = "  ";
/// What helps against sessions that cannot be read. All others are as they were.
const UNREADABLE: &str = "`adjourn show` says why: if a newer program wrote it, use that one; \
                          `adjourn rm --force` removes it";
/// What is said where no session is as it was asked for.
const NO_MATCH: &str = "no session is like that; `adjourn ls --all` lists all of them";
/// What is said where there is no session yet.
const NO_SESSIONS: &str = "no sessions; `adjourn demo` shows what one does";

pub async fn run(settings: &Settings, ls: &Ls, output: &Output) -> Result<(), Failure> {
    let place = Place::look(settings).await?;
    let living = Living::of(&place).await?;
    let mut query = Query { sort: sort(ls)?, after: ls.after, ..Query::new(Filter::default(), 0) };
    query.filter = ls.wanted.filter(&place).await?;
    // What is over is for those who ask; a list is for what can still happen.
    let leaves_ended = query.filter.states.is_empty() && !ls.all && !output.json;
    if leaves_ended {
        query.filter.states = StateKind::OPEN.to_vec();
    }
    let mut table = Table::new(output);
    let mut left = ls.limit.unwrap_or(usize::MAX);
    let (mut behind, mut unattended, mut unreadable) = (0, false, Vec::new());
    let next = loop {
        query.limit = left.min(PAGE);
        let page = place.adjourn.query(query.clone()).await.map_err(failed)?;
        behind = page.behind.max(behind);
        left -= page.sessions.len();
        let mut rows = Vec::new();
        for listed in &page.sessions {
            let session = match listed {
                Ok(session) => session,
                Err((id, error)) => {
                    match output.json {
                        true => output.data(&view::unreadable(*id, error).to_string()),
                        false => rows.push((id.to_string(), None, Row::unreadable(error))),
                    }
                    unreadable.push(*id);
                    continue;
                }
            };
            let view = View { session, now: place.clock.now(), living: &living };
            unattended |= living.nobody_wakes(session);
            match output.json {
                true => output.data(&view.json().to_string()),
                false => {
                    let name = session.labels.get(NAME).cloned();
                    rows.push((session.id.to_string(), name, titled(session, view.row())));
                }
            }
        }
        table.print(rows);
        match page.next {
            Some(next) if left > 0 => query.after = Some(next),
            next => break next,
        }
    };
    if output.json {
        // The last line is about the list, and there only if there is something to say of it.
        let next = next.map(|next| ("next", json!(next.to_string())));
        let behind = Some(("behind", json!(behind))).filter(|_| behind > 0);
        let about: Map<_, _> =
            next.into_iter().chain(behind).map(|(key, value)| (key.to_owned(), value)).collect();
        if !about.is_empty() {
            output.data(&Value::from(about).to_string());
        }
        return refuse(&unreadable);
    }
    if unattended {
        output.talk("nobody is there to wake what waits; start `adjourn serve`");
    }
    let is_all = ls.wanted.is_anything() && ls.limit.is_none() && ls.after.is_none();
    let ended = match leaves_ended && is_all {
        true => ended(&place).await?,
        false => 0,
    };
    match (table.any, ended) {
        (false, 0) if !is_all => output.talk(NO_MATCH),
        (false, 0) => output.talk(NO_SESSIONS),
        (false, ended) => {
            output.talk(&format!("nothing is open; {ended} ended, `adjourn ls --all` has them"));
        }
        (true, 0) => {}
        (true, ended) => output.talk(&format!("{ended} more ended; `adjourn ls --all` has them")),
    }
    if let Some(next) = next {
        output.talk(&format!("there are more: go on with --after {next}"));
    }
    if behind > 0 {
        output.talk(&format!(
            "the list is {behind} entries of the journal behind: what changed last may be missing"
        ));
    }
    refuse(&unreadable)
}

/// Puts the title of a session, if it has one, before why it is where it is.
fn titled(session: &Session, row: Row) -> Row {
    let title = one_line(&session.memory.title);
    let why = match (title.as_str(), row.why.as_str()) {
        ("", why) => why.to_owned(),
        (title, "") => title.to_owned(),
        (title, why) => format!("{title} · {why}"),
    };
    Row { why, ..row }
}

/// Returns the order that is asked for; pages that are turned stay in theirs.
fn sort(ls: &Ls) -> Result<Sort, Failure> {
    let asked = ls.sort.map(|order| match order {
        Order::Oldest => Sort::Oldest,
        Order::Newest => Sort::Newest,
        Order::Stalest => Sort::Stalest,
        Order::Freshest => Sort::Freshest,
    });
    let begun = ls.after.map(|after| after.sort());
    if let (Some(asked), Some(begun)) = (asked, begun)
        && asked != begun
    {
        return Err(Failure::usage("--after: the list it comes from is in another order")
            .hint("without --sort, the order stays as it was"));
    }
    let usual = if ls.wanted.older_than.is_some() { Sort::Stalest } else { Sort::Oldest };
    Ok(asked.or(begun).unwrap_or(usual))
}

/// Tells a cursor that was typed for the wrong list from a store that fails.
fn failed(error: Error) -> Failure {
    match error {
        Error::Store(StoreError::ForeignCursor(_)) => Failure::usage(format!("--after: {error}"))
            .hint("give it with the flags and the store of the list that ended with it"),
        error => error.into(),
    }
}

/// Counts the sessions that have ended.
async fn ended(place: &Place) -> Result<u64, Failure> {
    let tally = place.adjourn.tally().await?;
    Ok(tally.states.get(StateKind::Ended.as_str()).map_or(0, |ended| ended.count))
}

/// Fails if sessions cannot be read.
fn refuse(unreadable: &[SessionId]) -> Result<(), Failure> {
    match unreadable {
        [] => Ok(()),
        [id] => Err(Failure::store(format!("session {id} cannot be read")).hint(UNREADABLE)),
        many => {
            Err(Failure::store(format!("{} sessions cannot be read", many.len())).hint(UNREADABLE))
        }
    }
}

/// Rows under each other: columns are as wide as what was printed so far needs, if there is room.
struct Table<'a> {
    output: &'a Output,
    shape: Shape,
    why: usize,
    /// A reason, and the choices if it is a question.
    with_choices: usize,
    wakes: usize,
    any: bool,
}

impl<'a> Table<'a> {
    fn new(output: &'a Output) -> Self {
        let shape = output.columns().map_or(Shape::PIPE, Shape::on_terminal);
        let (why, wakes) = ("WHY".len(), "WAKES".len());
        Self { output, shape, why, with_choices: why, wakes, any: false }
    }

    /// Prints sessions, each with its id and its name, if it has one.
    fn print(&mut self, rows: Vec<(String, Option<String>, Row)>) {
        if rows.is_empty() {
            return;
        }
        // In a pipe the whole id, for the program that goes on with it.
        let id = |id: &str, name: Option<String>| match (self.shape.rest, name) {
            (Some(_), Some(name)) => shorten(&one_line(&name), NAMES),
            (Some(_), None) => short(id).to_owned(),
            (None, _) => id.to_owned(),
        };
        let rows: Vec<_> =
            rows.into_iter().map(|(whole, name, row)| (id(&whole, name), row)).collect();
        let ids = rows.iter().map(|(id, _)| width(id)).max().unwrap_or_default();
        if let (false, Some(columns)) = (self.any, self.output.columns()) {
            // Names that are longer than ids take from what follows.
            let over = ids.saturating_sub(SessionId::SHORT);
            self.shape = Shape::on_terminal(columns.saturating_sub(over));
        }
        for (_, row) in &rows {
            self.why = self.why.max(width(&row.why));
            self.with_choices = self.with_choices.max(width(&row.with_choices()));
            self.wakes = self.wakes.max(width(&row.wakes));
        }
        let (why, wakes) = self.shape.share(self.why, self.with_choices, self.wakes);
        if !self.any && self.shape.rest.is_some() {
            let head = self.shape.line([
                fill("SESSION", ids),
                fill("STATE", STATE),
                fill("SINCE", SINCE),
                fill("WHY", why),
                "WAKES".to_owned(),
            ]);
            self.output.data(&self.output.word(Look::Dim, &head));
        }
        for (id, row) in rows {
            self.any = true;
            // `unreadable` is longer than any state; what it is too long takes from what follows.
            let over = width(&row.state).saturating_sub(STATE);
            let (since, why) = match self.shape.since {
                true => (SINCE - over, why),
                false => (SINCE, why.saturating_sub(over)),
            };
            // Half of the choices is worth less than all of the question.
            let reason = Some(row.with_choices()).filter(|whole| width(whole) <= why);
            let reason = reason.unwrap_or_else(|| shorten(&row.why, why));
            let line = self.shape.line([
                fill(&id, ids),
                self.output.word(row.look, &fill(&row.state, STATE)),
                fill(&row.since, since),
                fill(&reason, why),
                shorten(&row.wakes, wakes),
            ]);
            self.output.data(&line);
        }
    }
}

/// Which columns there are, besides the id and the reason.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    state: bool,
    since: bool,
    wakes: bool,
    /// What the terminal has left for the reason and what wakes it.
    rest: Option<usize>,
}

impl Shape {
    /// A pipe has room for everything.
    const PIPE: Self = Self { state: true, since: true, wakes: true, rest: None };

    /// Leaves out what does not fit: first how long it has been so, then the state, which what
    /// wakes a session mostly tells, too.
    fn on_terminal(columns: usize) -> Self {
        let rest = columns.saturating_sub(SessionId::SHORT + GAP.len());
        let state = STATE + GAP.len();
        let since = SINCE + GAP.len();
        let least = WHY + GAP.len() + WAKES;
        let (state, since, rest) = match rest {
            rest if rest >= state + since + least => (true, true, rest - state - since),
            rest if rest >= state + least => (true, false, rest - state),
            rest => (false, false, rest),
        };
        Self { state, since, wakes: rest >= least, rest: Some(rest) }
    }

    /// Shares the room between a reason and what wakes it, by how much each would like to have;
    /// choices have what is left.
    fn share(&self, why: usize, with_choices: usize, wakes: usize) -> (usize, usize) {
        match self.rest {
            None => (with_choices, wakes),
            Some(rest) if !self.wakes => (with_choices.min(rest), 0),
            Some(rest) => {
                let room = rest.saturating_sub(GAP.len());
                // Neither takes more than half of it from the other.
                let why = why.min((room - wakes.min(room / 2)).max(WHY));
                let wakes = wakes.min(room - why);
                (with_choices.min(room - wakes), wakes)
            }
        }
    }

    fn line(&self, [id, state, since, why, wakes]: [String; 5]) -> String {
        let cells = [
            Some(id),
            self.state.then_some(state),
            self.since.then_some(since),
            Some(why),
            self.wakes.then_some(wakes),
        ];
        cells.into_iter().flatten().collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_left_out_where_there_is_no_room() {
        let shape = |columns| {
            let Shape { state, since, wakes, rest } = Shape::on_terminal(columns);
            (state, since, wakes, rest.unwrap())
        };
        assert_eq!(shape(200), (true, true, true, 166));
        assert_eq!(shape(60), (true, true, true, 26));
        assert_eq!(shape(59), (true, false, true, 34));
        assert_eq!(shape(51), (true, false, true, 26));
        assert_eq!(shape(50), (false, false, true, 36));
        assert_eq!(shape(40), (false, false, true, 26));
        assert_eq!(shape(39), (false, false, false, 25));
        assert_eq!(shape(1), (false, false, false, 0));
    }

    #[test]
    fn the_reason_and_what_wakes_it_share_the_room() {
        for (columns, why, wakes, shared) in [
            // All of both.
            (100, 20, 30, (20, 30)),
            // What one does not need is the other's.
            (80, 100, 12, (32, 12)),
            (80, 12, 100, (12, 32)),
            // Half each, but never less of a reason than says something.
            (100, 100, 100, (32, 32)),
            (60, 100, 100, (16, 8)),
            (60, 100, 5, (19, 5)),
            (30, 100, 100, (16, 0)),
        ] {
            let shape = Shape::on_terminal(columns);
            assert_eq!(shape.share(why, why, wakes), shared, "{why} and {wakes} in {columns}");
        }
        assert_eq!(Shape::PIPE.share(100, 150, 200), (150, 200));
        // Choices take nothing from anybody.
        assert_eq!(Shape::on_terminal(60).share(12, 28, 12), (12, 12));
        assert_eq!(Shape::on_terminal(80).share(12, 28, 12), (28, 12));
    }
}
