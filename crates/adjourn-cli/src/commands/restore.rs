//! `restore`: puts a backup in the place of the store.

use adjourn::{living_at, restore};
use serde_json::json;

use crate::arguments::Restore;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::terminal::{Output, warn};

pub async fn run(settings: &Settings, given: &Restore, output: &Output) -> Result<(), Failure> {
    let store = &settings.store()?.value;
    let own = store.canonicalize().unwrap_or_else(|_| store.clone());
    let living = living_at(&own).await;
    if living > 0 {
        let who =
            if living == 1 { "process drives or watches" } else { "processes drive or watch" };
        return Err(Failure::store(format!("{living} {who} sessions of {}", own.display()))
            .hint("stop hosts first: `adjourn serve`, editors, and `adjourn log --follow`"));
    }
    let restored = restore(&given.from, store).await?;
    if let Some(log) = &restored.without {
        warn(&format!("{} was left out: it cannot be read there", log.display()));
    }
    let kept: Vec<_> = restored.kept.iter().map(|path| path.display().to_string()).collect();
    for path in &kept {
        output.talk(&format!("kept {path}"));
    }
    let store = restored.store.display().to_string();
    output.object(&json!({ "restored": store, "kept": kept }), &store);
    Ok(())
}
