//! `ls`: what is there, what it waits for, and what will wake it.

use adjourn_core::id::SessionId;
use adjourn_core::session::State;
use adjourn_store::Store as _;
use adjourn_store::rows::SessionNo;

use crate::arguments::Ls;
use crate::failure::Failure;
use crate::liveness::Living;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::{Look, Output, fill, shorten, width};
use crate::view::{self, Row, View, short};

/// Sessions read at a time.
const PAGE: usize = 256;
/// The widest state there is, and the widest time since.
const STATE: usize = "suspended".len();
const SINCE: usize = "23h 59m".len();
/// The least that a reason has, and what wakes a session: less says nothing.
const WHY: usize = 16;
const WAKES: usize = 8;
/// What stands between two columns.
const GAP: &str = "  ";
/// What helps against sessions that cannot be read. All others are as they were.
const UNREADABLE: &str = "`adjourn show` says why: if a newer program wrote it, use that one; \
                          `adjourn rm --force` removes it";
/// What is said where there is no session yet.
const NO_SESSIONS: &str = "no sessions; `adjourn demo` shows what one does";

pub fn run(settings: &Settings, ls: &Ls, output: &Output) -> Result<(), Failure> {
    let place = Place::look(settings)?;
    let living = Living::of(&place)?;
    let mut table = Table::new(output);
    let mut after = SessionNo(0);
    let mut ended = 0_usize;
    let mut unattended = false;
    let mut unreadable = Vec::new();
    loop {
        let page = place.store.sessions(after, PAGE)?;
        let Some((last, _)) = page.last() else { break };
        after = *last;
        let mut rows = Vec::new();
        for (_, listed) in &page {
            let session = match listed {
                Ok(session) => session,
                Err((id, error)) => {
                    match output.json {
                        true => output.data(&view::unreadable(*id, error).to_string()),
                        false => rows.push((id.to_string(), Row::unreadable(error))),
                    }
                    unreadable.push(*id);
                    continue;
                }
            };
            let view = View { session, now: place.clock.now(), living: &living };
            unattended |= living.nobody_wakes(session);
            // What is over is for those who ask; a list is for what can still happen.
            // What was erased is gone; that it was is for those who verify the store.
            if place.is_erased(session)? {
                continue;
            }
            match (output.json, &session.state) {
                (true, _) => output.data(&view.json().to_string()),
                (false, State::Ended(_)) if !ls.all => ended += 1,
                (false, _) => rows.push((session.id.to_string(), view.row())),
            }
        }
        table.print(rows);
    }
    if unattended && !output.json {
        output.talk("nobody is there to wake what waits; start `adjourn serve`");
    }
    match (table.any, ended) {
        (false, 0) => output.talk(NO_SESSIONS),
        (false, ended) => {
            output.talk(&format!("nothing is open; {ended} ended, `adjourn ls --all` has them"));
        }
        (true, 0) => {}
        (true, ended) => output.talk(&format!("{ended} more ended; `adjourn ls --all` has them")),
    }
    match unreadable.as_slice() {
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

    fn print(&mut self, rows: Vec<(String, Row)>) {
        if rows.is_empty() {
            return;
        }
        // In a pipe the whole id, for the program that goes on with it.
        let id = |id: &str| match self.shape.rest {
            Some(_) => short(id).to_owned(),
            None => id.to_owned(),
        };
        let rows: Vec<_> = rows.into_iter().map(|(whole, row)| (id(&whole), row)).collect();
        let ids = rows.iter().map(|(id, _)| id.len()).max().unwrap_or_default();
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
