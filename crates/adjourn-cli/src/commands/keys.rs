//! `keys`: what commits are signed with, and what is still believed.

use std::path::Path;

use adjourn::clock::{Environment as _, Machine};
use adjourn::keys::{KeyDir, KeyId, PublicKey};
use serde_json::{Value, json};

use crate::arguments::{Accept, Keys, Revoke, Share};
use crate::failure::Failure;
use crate::input_file;
use crate::place::{Place, keys_of};
use crate::private_file::PrivateFile;
use crate::settings::Settings;
use crate::terminal::Output;

pub async fn run(settings: &Settings, keys: &Keys, output: &Output) -> Result<(), Failure> {
    match keys {
        Keys::List => list(settings, output).await,
        Keys::Rotate => rotate(settings, output).await,
        Keys::Revoke(which) => revoke(settings, which, output).await,
        Keys::Share(share) => self::share(settings, share, output),
        Keys::Accept(accept) => self::accept(settings, accept, output),
    }
}

/// A key, and what it is to this user.
struct Known {
    key: PublicKey,
    state: &'static str,
}

impl Known {
    fn json(&self) -> Value {
        let mut object = json!({
            "key": self.key.id().to_string(),
            "state": self.state,
            "madeAt": self.key.created().to_string(),
        });
        if let (Some(revoked), Some(object)) = (self.key.revoked(), object.as_object_mut()) {
            object.insert("revokedAt".to_owned(), json!(revoked.at.to_string()));
            object.insert("reason".to_owned(), json!(revoked.reason));
        }
        object
    }

    fn text(&self) -> String {
        let Self { key, state } = self;
        let line = format!("{}  {state:<8}  made {}", key.id(), key.created());
        match key.revoked() {
            Some(revoked) if revoked.reason.is_empty() => format!("{line}, revoked {}", revoked.at),
            Some(revoked) => format!("{line}, revoked {}: {}", revoked.at, revoked.reason),
            None => line,
        }
    }
}

/// Returns this user's keys, oldest first, and then those that the store knows and the user has not.
async fn known(settings: &Settings) -> Result<Vec<Known>, Failure> {
    // Without a home there are none of this user's own.
    let directory = keys_of(settings).ok();
    let existing = directory.as_ref().map(KeyDir::existing).transpose()?.flatten();
    let current = existing.map(|keys| keys.current().id());
    let own = directory.as_ref().map(KeyDir::ring).transpose()?.unwrap_or_default();
    let mut all: Vec<_> = own
        .iter()
        .map(|key| {
            let state = match key {
                key if key.revoked().is_some() => "revoked",
                key if Some(key.id()) == current => "current",
                _ => "accepted",
            };
            Known { key: key.clone(), state }
        })
        .collect();
    // Those of others, whose records are opened here.
    let others = directory.as_ref().map(KeyDir::accepted).transpose()?.unwrap_or_default();
    all.extend(others.into_iter().filter(|key| own.get(key.id()).is_none()).map(|key| {
        let state = if key.revoked().is_some() { "revoked" } else { "records" };
        Known { key, state }
    }));
    all.sort_by_key(|known| (known.key.created(), known.key.id()));
    // Without a store there is nothing more to know.
    if settings.store().is_ok()
        && let Some(place) = Place::look_if_there(settings).await?
    {
        let others = place.adjourn.known_keys().await?;
        let known: Vec<_> = all.iter().map(|known| known.key.id()).collect();
        let others = others.iter().filter(|key| !known.contains(&key.id()));
        all.extend(others.map(|key| Known { key: key.clone(), state: "missing" }));
    }
    Ok(all)
}

async fn list(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let known = known(settings).await?;
    for key in &known {
        output.object(&key.json(), &key.text());
    }
    output.talk(&match keys_of(settings).map(|keys| keys.path().display().to_string()) {
        Ok(path) if known.is_empty() => format!("no keys in {path}; the first commit makes one"),
        Ok(path) => format!("the keys are in {path}"),
        Err(_) => "there is no HOME to have keys in".to_owned(),
    });
    Ok(())
}

async fn rotate(settings: &Settings, output: &Output) -> Result<(), Failure> {
    // A key that the store cannot be told of would not be a key to go on with.
    if settings.store().is_ok() {
        Place::look_if_there(settings).await?;
    }
    let keys = keys_of(settings)?.rotate(Machine.now())?;
    // The store learns the public half, so that it goes on with this key whatever came before.
    if settings.store().is_ok() {
        Place::open_with_new_key(settings).await?;
    }
    made(keys.current().id(), output);
    Ok(())
}

async fn revoke(settings: &Settings, which: &Revoke, output: &Output) -> Result<(), Failure> {
    let known = known(settings).await?;
    let found: Vec<_> =
        known.iter().filter(|known| known.key.id().to_string().starts_with(&which.key)).collect();
    let known = match found.as_slice() {
        [known] if which.key.len() >= 4 => known,
        [] => {
            return Err(Failure::not_found(format!("there is no key {:?}", which.key))
                .hint("`adjourn keys list` lists them; four characters are enough"));
        }
        _ => {
            return Err(Failure::usage(format!("{:?} may be more than one key", which.key))
                .hint("give more of it"));
        }
    };
    let directory = keys_of(settings)?;
    let reason = which.reason.as_deref().unwrap_or_default();
    let revocation = directory.revoke(&known.key, reason, Machine.now())?;
    let revoked = PublicKey::new(known.key.as_bytes(), known.key.created(), Some(revocation));
    let revoked = revoked.map_err(|error| Failure::other(error.to_string()))?;
    let shown = Known { key: revoked, state: "revoked" };
    output.object(&shown.json(), &shown.text());
    if known.state == "current" {
        made(directory.load(Machine.now())?.current().id(), output);
    }
    Ok(())
}

/// Writes what another machine needs to open records that are sealed here.
fn share(settings: &Settings, share: &Share, output: &Output) -> Result<(), Failure> {
    let file = match share.to.as_path() {
        path if path == Path::new("-") => None,
        path => Some(PrivateFile::begin(path, share.force)?),
    };
    let directory = keys_of(settings)?;
    let text = match directory.share(None)? {
        Some(text) => text,
        None => {
            directory.load(Machine.now())?;
            directory.share(None)?.ok_or_else(|| Failure::other("there is no key to share"))?
        }
    };
    match file {
        Some(file) => {
            file.finish(&text)?;
            let path = share.to.display().to_string();
            output.object(&json!({ "file": path }), &path);
        }
        None => output.bytes(&text),
    }
    output.talk(
        "whoever has it can make records that `adjourn import` takes where it is accepted: send it \
         over a channel you trust, and delete it once `adjourn keys accept` has read it there",
    );
    Ok(())
}

/// Accepts records that are sealed on another machine.
fn accept(settings: &Settings, accept: &Accept, output: &Output) -> Result<(), Failure> {
    let text = input_file::read(&accept.from, input_file::SETTINGS_BYTES).map_err(|error| {
        Failure::usage(format!("cannot read {}: {error}", accept.from.display()))
    })?;
    let directory = keys_of(settings)?;
    // Records are opened beside a key of one's own.
    directory.load(Machine.now())?;
    let key = directory.accept(text.as_bytes(), &accept.from)?;
    let shown = Known { key, state: "records" };
    output.object(&shown.json(), &shown.text());
    output
        .talk("records that are sealed with it are taken in here; `adjourn keys revoke` ends that");
    Ok(())
}

fn made(key: KeyId, output: &Output) {
    output.object(&json!({ "key": key.to_string(), "state": "current" }), &key.to_string());
    output.talk("commits are signed with it; hosts that run take it up within a second");
}
