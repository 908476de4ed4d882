//! `ls`: what is there, what it waits for, and what will wake it.

use adjourn_core::session::State;
use adjourn_store::Store as _;
use adjourn_store::rows::SessionNo;

use crate::arguments::Ls;
use crate::failure::Failure;
use crate::living::Living;
use crate::place::Place;
use crate::settings::{Settings, Source};
use crate::show::{Row, View};
use crate::terminal::{Look, Output, shorten};

/// Sessions read at a time.
const PAGE: usize = 256;
/// Of an id, on a terminal: enough to tell a million sessions apart.
const ID_CHARACTERS: usize = 12;
/// The least of a reason that is shown on a narrow terminal.
const WHY_CHARACTERS: usize = 16;
/// For whoever has none yet.
const NO_SESSIONS: &str = "no sessions; `adjourn demo` shows what one does";

pub fn run(settings: &Settings, ls: &Ls, output: &Output) -> Result<(), Failure> {
    let Some(place) = Place::if_there(settings)? else {
        output.talk(&nothing(settings));
        return Ok(());
    };
    let living = Living::of(&place)?;
    let mut table = Table::new(output);
    let mut after = SessionNo(0);
    let mut ended = 0_usize;
    loop {
        let page = place.store.sessions(after, PAGE)?;
        let Some((last, _)) = page.last() else { break };
        after = *last;
        let mut rows = Vec::new();
        for (_, session) in &page {
            let view = View { session, now: place.clock.now(), living: &living };
            // What is over is for those who ask; a list is for what can still happen.
            match (output.json, &session.state) {
                (true, _) => output.data(&view.json().to_string()),
                (false, State::Ended(_)) if !ls.all => ended += 1,
                (false, _) => rows.push((session.id.to_string(), view.row())),
            }
        }
        table.print(rows);
    }
    match (table.any, ended) {
        (false, 0) => output.talk(NO_SESSIONS),
        (false, ended) => {
            output.talk(&format!("nothing is open; {ended} ended, `adjourn ls --all` has them"));
        }
        (true, 0) => {}
        (true, ended) => output.talk(&format!("{ended} more ended; `adjourn ls --all` has them")),
    }
    Ok(())
}

/// Says that there is no store to list; whoever named one may have meant another.
fn nothing(settings: &Settings) -> String {
    match &settings.store.source {
        Source::Default => NO_SESSIONS.to_owned(),
        source => {
            let path = settings.store.value.display();
            format!("no sessions: there is no store {path}, which {source} names")
        }
    }
}

/// Rows under each other, page by page: the columns grow, and never shrink.
struct Table<'a> {
    output: &'a Output,
    columns: Option<usize>,
    why: usize,
    any: bool,
}

impl<'a> Table<'a> {
    fn new(output: &'a Output) -> Self {
        Self { output, columns: output.columns(), why: 0, any: false }
    }

    fn print(&mut self, rows: Vec<(String, Row)>) {
        if rows.is_empty() {
            return;
        }
        // In a pipe the whole id, for whoever goes on with it.
        let id = |id: &str| match self.columns {
            Some(_) => id.get(id.len().saturating_sub(ID_CHARACTERS)..).unwrap_or(id).to_owned(),
            None => id.to_owned(),
        };
        let rows: Vec<_> = rows.into_iter().map(|(whole, row)| (id(&whole), row)).collect();
        let ids = rows.iter().map(|(id, _)| id.len()).max().unwrap_or_default();
        let widest = |of: fn(&Row) -> &str| {
            rows.iter().map(|(_, row)| of(row).chars().count()).max().unwrap_or_default()
        };
        self.why = self.why.max(widest(|row| &row.why)).max("WHY".len());
        if let Some(columns) = self.columns {
            // id, state and since with two blanks after each, and after the reason.
            let others = ids + 2 + 9 + 2 + 7 + 2 + 2 + widest(|row| &row.wakes);
            self.why = self.why.min(columns.saturating_sub(others).max(WHY_CHARACTERS));
        }
        let why = self.why;
        if !self.any && self.columns.is_some() {
            let head = format!(
                "{:<ids$}  {:<9}  {:<7}  {:<why$}  WAKES",
                "SESSION", "STATE", "SINCE", "WHY"
            );
            self.output.data(&self.output.word(Look::Dim, &head));
        }
        for (id, row) in rows {
            self.any = true;
            let state = self.output.word(row.look, &format!("{:<9}", row.state));
            let reason = match self.columns {
                Some(_) => shorten(&row.why, why),
                None => row.why,
            };
            let line =
                format!("{id:<ids$}  {state}  {:<7}  {reason:<why$}  {}", row.since, row.wakes);
            self.output.data(line.trim_end());
        }
    }
}
