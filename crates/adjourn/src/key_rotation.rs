//! Keys that are made or revoked while a host works.

use std::convert::Infallible;
use std::time::Duration;

use adjourn_record::keys::KeyDir;
use adjourn_store::Sqlite;

/// How often a host looks whether its keys were rotated or revoked.
const LOOK: Duration = Duration::from_secs(1);

/// Takes up keys that are made or revoked in a directory; makes none.
pub(crate) async fn follow(store: Sqlite, keys: KeyDir) -> Infallible {
    let changed = || std::fs::metadata(keys.path()).and_then(|about| about.modified()).ok();
    // They may have changed since they were loaded, while the host waited for the store.
    let mut seen = None;
    let mut noted = false;
    loop {
        tokio::time::sleep(LOOK).await;
        let now = changed();
        if now.is_some() && now == seen {
            continue;
        }
        // Keys that cannot be read now are looked at again; those it has are good until then.
        let Ok(found) = keys.existing() else { continue };
        let goes_on = found.as_ref().map_or(Ok(false), |found| store.goes_on_with(found));
        let Ok(goes_on) = goes_on else { continue };
        match found.filter(|_| goes_on) {
            Some(found) => {
                store.use_keys(found);
                (seen, noted) = (now, false);
            }
            None if !noted => {
                let path = keys.path().display();
                tracing::warn!("the key of the last commit is no longer in {path}: put it back");
                noted = true;
            }
            None => {}
        }
    }
}
