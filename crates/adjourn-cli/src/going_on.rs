//! How a person goes on with a session that is parked: the one command that the session takes.

use adjourn::core::Session;
use adjourn::core::carry::Limit;
use adjourn::core::session::{Parked, Phase};

/// What stands for the amounts, where it is not known which budget is used up.
const AMOUNTS: &str = "AMOUNTS";

/// Returns whether a pause ends only with a budget that is raised, also if it asks a question.
pub fn wants_budget(parked: &Parked) -> bool {
    parked.pause.limit == Some(Limit::BudgetExceeded)
}

/// Returns whether a session goes on only with a budget that is raised.
pub fn needs_budget(session: &Session) -> bool {
    session.suspended().is_some_and(|suspended| wants_budget(suspended.shown()))
}

/// Returns whether words alone answer what a session asks.
pub fn takes_words(session: &Session) -> bool {
    session.phase() == Phase::Asking && !needs_budget(session)
}

/// Returns the command with which a person goes on with a session that is parked, with the session
/// as it is to be named.
pub fn command(session: &Session, named: &str) -> String {
    if needs_budget(session) {
        return format!("adjourn resume {named} --add-budget {}", amounts(session));
    }
    match session.phase() {
        Phase::Asking => format!("adjourn prompt {named} ANSWER"),
        _ => format!("adjourn resume {named}"),
    }
}

/// Says which amounts a budget has to be raised by, as they are typed.
fn amounts(session: &Session) -> String {
    let used_up = session.used_up();
    let amounts: Vec<_> = used_up.iter().map(|used| format!("{}=…", used.unit.as_str())).collect();
    if amounts.is_empty() { AMOUNTS.to_owned() } else { amounts.join(",") }
}
