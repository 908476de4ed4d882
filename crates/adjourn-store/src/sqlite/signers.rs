//! The keys that a store was written with: their public halves, and whose the last commit is.

use adjourn_record::keys::{Key, KeyId, KeyRing, Keys, PublicKey};
use rusqlite::{Connection, params};

use super::turnstile::Turnstile;
use super::writer::last_commit;
use crate::error::Error;

/// Refuses keys that do not know the key that a store was last written with: a key that is missing
/// must not be replaced by another in silence, nor by one that was rotated away.
///
/// A key that was made since may go on if the store was told of it: somebody said that it is to.
pub(super) fn known_signer(connection: &Connection, keys: &Keys) -> Result<(), Error> {
    let Some(last) = last_commit(connection)? else { return Ok(()) };
    if keys.ring().get(last.key).is_some() || is_next(connection, last.key, keys.current())? {
        return Ok(());
    }
    Err(Error::UnknownSigner(last.key))
}

/// Returns whether a store was told of a key that goes on after its last.
fn is_next(connection: &Connection, last: KeyId, key: &Key) -> Result<bool, Error> {
    if !is_registered(connection, key.id())? {
        return Ok(false);
    }
    let last = registered(connection)?.get(last).map(PublicKey::created);
    Ok(last.is_some_and(|made| made < key.created()))
}

/// Returns the public halves that are in the store.
pub(super) fn registered(connection: &Connection) -> Result<KeyRing, Error> {
    let mut statement = connection.prepare("SELECT public FROM key")?;
    let mut rows = statement.query([])?;
    let mut ring = KeyRing::new();
    while let Some(row) = rows.next()? {
        let key: PublicKey = adjourn_core::json::stored(row.get::<_, String>(0)?.as_bytes())
            .map_err(|error| Error::Damaged(format!("a key in it cannot be read: {error}")))?;
        ring.insert(key);
    }
    Ok(ring)
}

fn is_registered(connection: &Connection, key: KeyId) -> Result<bool, Error> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM key WHERE id = ?1")?;
    Ok(statement.exists([key.as_bytes()])?)
}

/// Leaves the public halves of our keys in the store, for whoever verifies it.
pub(super) fn register(
    connection: &Connection,
    turnstile: &mut Turnstile,
    keys: &Keys,
) -> Result<(), Error> {
    let ring = keys.ring();
    let mut missing = Vec::new();
    for key in ring.iter() {
        if !is_registered(connection, key.id())? {
            missing.push(key);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    turnstile.begin(connection)?;
    let added = missing.iter().try_for_each(|key| {
        let public =
            serde_json::to_string(key).map_err(|error| Error::Damaged(error.to_string()))?;
        connection
            .prepare_cached("INSERT OR IGNORE INTO key (id, public) VALUES (?1, ?2)")?
            .execute(params![key.id().as_bytes(), public])?;
        Ok::<(), Error>(())
    });
    connection.execute_batch(if added.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    added
}
