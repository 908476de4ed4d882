//! `log`: what happened to a session.

use std::collections::VecDeque;

use adjourn::Moment;
use adjourn::core::session::State;
use adjourn::core::time::Timestamp;
use adjourn::driver::Joining;
use adjourn::telling::ends_words;

use crate::arguments::{Log, Since};
use crate::entry::{happened, said};
use crate::failure::Failure;
use crate::log_lines::{LogLines, words};
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;
use crate::times::Times;
use crate::watch::{Seen, Watch};

pub async fn run(settings: &Settings, log: &Log, output: &Output) -> Result<(), Failure> {
    let place = Place::look(settings).await?;
    let id = place.find(&log.which.session).await?;
    let now = place.clock.now();
    let since = log.since.map(|since| match since {
        Since::Ago(ago) => now.before(ago),
        Since::At(at) => at,
    });
    let mut story = LogLines::new(Times::of(output, now));
    let mut watcher = Watch::from_start(&place, id);
    // Of a long journal only the end is read, where that is all that is shown.
    if let (Some(tail), false, None) = (log.tail, log.transcript, since) {
        let length = place.session(id).await?.revision;
        let from = length.saturating_sub(u64::try_from(tail).unwrap_or(u64::MAX)) + 1;
        if let Some((before, watch)) = Watch::at(&place, id, from).await? {
            story.go_on_from(&before);
            watcher = watch;
        }
    }
    let mut lines = Lines {
        is_transcript: log.transcript,
        since,
        tail: log.tail,
        kept: VecDeque::new(),
        joining: Joining::default(),
    };
    loop {
        let Some(Seen { session, moments }) = watcher.page().await? else {
            return Err(Failure::no_session(id));
        };
        story.look_at(place.clock.now());
        for moment in &moments {
            lines.take(moment, &mut story, output);
        }
        if !output.is_read() {
            return Ok(());
        }
        // A journal of any length is shown in little memory. What led to a state has been shown to
        // a user who follows only when nothing comes after that was read.
        if watcher.is_behind() || (log.follow && !moments.is_empty() && lines.tail.is_none()) {
            continue;
        }
        if log.transcript && !log.follow && !output.json {
            lines.end(session.at, &story, output);
        }
        lines.print(output);
        if !log.follow || (matches!(session.state, State::Ended(_)) && moments.is_empty()) {
            return Ok(());
        }
        if moments.is_empty() {
            watcher.wait().await;
        }
    }
}

/// What is shown of a log: all of it, or its last lines.
struct Lines {
    /// Whether it is what was said, and not what happened.
    is_transcript: bool,
    since: Option<Timestamp>,
    /// How many lines are shown of what is there at first; nothing once they are shown.
    tail: Option<usize>,
    kept: VecDeque<String>,
    /// Messages that were committed in segments: people are shown each once, when it is over.
    joining: Joining,
}

impl Lines {
    /// Takes what happened in one moment.
    fn take(&mut self, moment: &Moment, story: &mut LogLines, output: &Output) {
        let at = moment.event.at;
        let line = story.event(&moment.event, output);
        let entries = moment.said.iter();
        let mut over: Vec<_> =
            entries.filter_map(|(number, said)| self.joining.take(*number, said)).collect();
        if ends_words(&moment.event.what) {
            over.extend(self.joining.break_off());
        }
        if self.since.is_some_and(|since| at < since) {
            return;
        }
        if !self.is_transcript {
            let object = happened(moment.revision, &moment.event);
            self.add(if output.json { object.to_string() } else { line }, output);
            return;
        }
        if output.json {
            for (number, message) in &moment.said {
                self.add(said(moment, *number, message).to_string(), output);
            }
            return;
        }
        for (_, message) in over {
            if let Some(words) = words(&story.time(at), &message) {
                self.add(words, output);
            }
        }
    }

    /// Takes messages that are not over, where the log ends.
    fn end(&mut self, at: Timestamp, story: &LogLines, output: &Output) {
        let open: Vec<_> = self.joining.open().collect();
        for (_, message) in open {
            if let Some(words) = words(&story.time(at), &message) {
                self.add(format!("{words} …"), output);
            }
        }
    }

    fn add(&mut self, line: String, output: &Output) {
        match self.tail {
            None => self.print_line(&line, output),
            Some(tail) => {
                if self.kept.len() >= tail {
                    self.kept.pop_front();
                }
                self.kept.push_back(line);
            }
        }
    }

    /// Prints the last lines of what was there at first; what follows is printed as it comes.
    fn print(&mut self, output: &Output) {
        if self.tail.take().is_some() {
            for line in std::mem::take(&mut self.kept) {
                self.print_line(&line, output);
            }
        }
    }

    fn print_line(&self, line: &str, output: &Output) {
        match self.is_transcript {
            true => output.said(line),
            false => output.data(line),
        }
    }
}
