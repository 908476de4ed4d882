//! What an agent notes is kept, whatever becomes of its step.

use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::carry::Notes;
use adjourn_driver::{Message, Part};

use super::{Player, ask, calls, say, spec};
use crate::fixture::Fixture;
use crate::points::Points;

/// What an agent notes is kept, whatever becomes of its step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_of_a_step_that_asks_for_calls_or_is_broken_off_are_kept() {
    let noted = |title: &str| {
        let lessons = vec![format!("{title} twice")];
        Part::Noted(Notes { title: Some(title.to_owned()), lessons, ..Notes::default() })
    };
    let whole = || Part::Message(Message::agent("Let me see."));
    for (what, parts) in [
        ("calls", vec![whole(), noted("Look"), calls(&["a"])]),
        ("broken", vec![whole(), noted("Look"), say("well"), Part::Broken]),
        ("parked", vec![whole(), noted("Look"), Part::Calls(vec![ask("q", "which?")])]),
    ] {
        let player = Player::new(vec![parts]);
        let fixture = Fixture::new();
        let host = fixture.host_with(Arc::new(player.clone())).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "go");
        let rests = |session: &Session| ["idle", "suspended"].contains(&session.state.name());
        let session = fixture.until(id, "at rest", rests).await;
        assert_eq!(session.title().as_deref(), Some("Look"), "{what}");
        assert_eq!(session.memory.lessons, ["Look twice"], "{what}");
        assert_eq!(session.memory.last_words, "Let me see.", "{what}");
        host.stop().await;
    }
}

/// What an agent notes is durable within 50 milliseconds, as all that is not words.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_survive_the_death_of_the_host() {
    let notes = Notes { title: Some("Look".to_owned()), ..Notes::default() };
    let player = Player {
        points: Points::new(Some(0)),
        ..Player::new(vec![vec![Part::Noted(notes), Part::State("there".to_owned())]])
    };
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(player.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    player.points.until_held(std::future::pending()).await.unwrap();
    host.kill().await;
    assert_eq!(fixture.session(id).title().as_deref(), Some("Look"));
}
