//! The life of keys in their directory: made, rotated, revoked, damaged, exposed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use adjourn_core::time::Timestamp;
use adjourn_record::commit::{self, Head, Row};
use adjourn_record::keys::{
    Damage, Error, Key, KeyDir, KeyRing, Keys, PublicKey, PublicKeyError, Revocation,
};
use adjourn_record::merkle::Tree;
use adjourn_record::portable::{Header, OpenError, Record};
use serde_json::Value;
use tempfile::TempDir;

use crate::fixtures::{NOW, key, session};

fn dir() -> (TempDir, KeyDir) {
    let root = tempfile::tempdir().unwrap();
    let dir = KeyDir::new(root.path().join("adjourn/keys"));
    (root, dir)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn file_of(dir: &KeyDir, key: &Key) -> PathBuf {
    dir.path().join(format!("{}.json", key.id()))
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    set_mode(path, 0o600);
}

fn commit(keys: &Keys, prev: Head) -> Row {
    Row::sign(keys.current(), prev, &Tree::new(), NOW)
}

fn record(keys: &Keys) -> Record {
    let header = Header {
        tenant: "acme".to_owned(),
        session: session(1),
        run: None,
        handle: "suspend-019abf6b-7d51-7c1d-bb02-0123456789ad".parse().unwrap(),
        suspended_at: NOW,
        expires_at: None,
    };
    Record::seal(keys.current(), &header, "{}".to_owned()).unwrap()
}

#[test]
fn the_first_use_makes_a_key_for_its_owner_only() {
    let (_root, dir) = dir();
    assert_eq!(dir.ring().unwrap(), KeyRing::new(), "asking for public keys makes none");
    assert!(!dir.path().exists());

    let keys = dir.load(NOW).unwrap();
    assert_eq!(keys.current().created(), NOW);
    assert_eq!(mode(dir.path()), 0o700);
    assert_eq!(mode(&file_of(&dir, keys.current())), 0o600);
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".lock", &format!("{}.json", keys.current().id())]);

    let again = dir.load(NOW).unwrap();
    assert_eq!(again.current().id(), keys.current().id());
    assert_eq!(dir.ring().unwrap(), keys.ring());
    assert!(record(&keys).open(&again, NOW, None).is_ok());
}

#[test]
fn a_rotated_key_signs_nothing_more_and_is_still_believed() {
    let (_root, dir) = dir();
    let old = dir.load(NOW).unwrap();
    // The clock may have gone back since; what was made last is current all the same.
    let new = dir.rotate(Timestamp::from_millis(0)).unwrap();
    assert_ne!(new.current().id(), old.current().id());
    assert_eq!(dir.load(NOW).unwrap().current().id(), new.current().id());

    assert!(record(&old).open(&new, NOW, None).is_ok());
    let first = commit(&old, Head::START);
    let second = commit(&new, first.head());
    let audit = commit::verify(&dir.ring().unwrap(), [&first, &second], None).unwrap();
    assert_eq!((audit.head, audit.marked), (second.head(), vec![]));
}

#[test]
fn a_revoked_key_marks_commits_and_its_records_are_refused() {
    let (_root, dir) = dir();
    let old = dir.load(NOW).unwrap();
    let first = commit(&old, Head::START);
    let sealed = record(&old);
    let public = old.current().public(None);

    let revocation = Revocation { at: NOW, reason: "laptop lost".to_owned() };
    assert_eq!(dir.revoke(&public, "laptop lost", NOW).unwrap(), revocation);
    assert_eq!(dir.revoke(&public, "again", Timestamp::default()).unwrap(), revocation);

    // It was the current one: another takes its place, once.
    let new = dir.load(NOW).unwrap();
    assert_ne!(new.current().id(), old.current().id());
    assert_eq!(dir.load(NOW).unwrap().current().id(), new.current().id());

    let refused = OpenError::RevokedKey { key: public.id(), revocation: revocation.clone() };
    assert_eq!(sealed.open(&new, NOW, None), Err(refused));
    let second = commit(&new, first.head());
    let audit = commit::verify(&dir.ring().unwrap(), [&first, &second], None).unwrap();
    assert_eq!(audit.head, second.head());
    assert_eq!(audit.marked.len(), 1);
    assert_eq!((audit.marked[0].key, &audit.marked[0].revocation), (public.id(), &revocation));
    assert_eq!((audit.marked[0].first, audit.marked[0].last), (1, 1));
}

#[test]
fn a_revocation_outlasts_the_secret() {
    let (_root, dir) = dir();
    let first = dir.load(NOW).unwrap();
    let second = dir.rotate(NOW).unwrap();
    dir.revoke(&second.current().public(None), "leaked", NOW).unwrap();
    fs::remove_file(file_of(&dir, second.current())).unwrap();

    let ring = dir.ring().unwrap();
    assert_eq!(ring.get(second.current().id()).unwrap().revoked().unwrap().reason, "leaked");
    assert!(dir.existing().unwrap().is_none(), "looking makes none");
    // The key that had been rotated away does not come back.
    let third = dir.load(NOW).unwrap();
    assert_eq!(third.ring().get(second.current().id()), ring.get(second.current().id()));
    assert_eq!(dir.existing().unwrap().unwrap().ring(), third.ring());
    assert!(![first.current().id(), second.current().id()].contains(&third.current().id()));
}

#[test]
fn a_key_that_was_never_here_can_be_revoked() {
    let (_root, dir) = dir();
    let stolen = key(7).public(None);
    dir.revoke(&stolen, "machine stolen", NOW).unwrap();
    // Nor does it need a second revocation, if whoever knows it knows of a first.
    let earlier = Revocation { at: Timestamp::from_millis(0), reason: "left the firm".to_owned() };
    let known = key(9).public(Some(earlier.clone()));
    assert_eq!(dir.revoke(&known, "machine stolen", NOW).unwrap(), earlier);
    let keys = dir.load(NOW).unwrap();
    assert_ne!(keys.current().id(), stolen.id());
    assert!(dir.ring().unwrap().get(stolen.id()).unwrap().revoked().is_some());
}

#[test]
fn files_open_to_others_are_refused_with_a_hint() {
    let (_root, dir) = dir();
    let keys = dir.load(NOW).unwrap();
    let path = file_of(&dir, keys.current());
    for exposed in [0o644, 0o640, 0o604, 0o620, 0o601] {
        set_mode(&path, exposed);
        let error = dir.load(NOW).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{} is open to others than its owner (mode {exposed:04o})", path.display())
        );
        assert_eq!(
            error.hint().unwrap(),
            format!(
                "run `chmod 600 {}`; if somebody else may have read it, rotate and revoke the key",
                path.display()
            )
        );
    }
    for fine in [0o600, 0o400] {
        set_mode(&path, fine);
        assert!(dir.load(NOW).is_ok());
    }
    set_mode(dir.path(), 0o755);
    let error = dir.ring().unwrap_err();
    assert!(matches!(&error, Error::Exposed { path, .. } if path == dir.path()), "{error}");
    assert!(error.hint().unwrap().starts_with("run `chmod 700 "));
}

#[test]
fn a_truncated_key_file_is_refused_and_not_replaced() {
    let (_root, dir) = dir();
    let keys = dir.load(NOW).unwrap();
    let path = file_of(&dir, keys.current());
    let whole = fs::read_to_string(&path).unwrap();
    for length in 0..whole.trim_end().len() {
        write(&path, &whole[..length]);
        let error = dir.load(NOW).unwrap_err();
        assert!(matches!(&error, Error::Damaged { path: named, .. } if *named == path), "{error}");
        assert!(error.to_string().contains("it ends too early"), "{error}");
    }
    write(&path, &whole);
    assert_eq!(dir.load(NOW).unwrap().current().id(), keys.current().id());
}

#[test]
fn a_key_file_that_does_not_fit_itself_is_refused() {
    let (_root, dir) = dir();
    let keys = dir.load(NOW).unwrap();
    let id = keys.current().id();
    let path = file_of(&dir, keys.current());
    let whole = fs::read_to_string(&path).unwrap();
    let damage = |member: &str, value: Value| {
        let mut members: Value = serde_json::from_str(&whole).unwrap();
        assert_ne!(members[member], value);
        members[member] = value;
        write(&path, &members.to_string());
        match dir.load(NOW).unwrap_err() {
            Error::Damaged { path: named, damage } if named == path => damage,
            other => panic!("{other}"),
        }
    };
    let other = key(5);

    let claimed = damage("id", other.id().to_string().into());
    assert_eq!(claimed, Damage::OtherId { stated: other.id(), derived: id });
    let exchanged = damage("signingSecret", "05".repeat(32).into());
    assert_eq!(exchanged, Damage::OtherId { stated: id, derived: other.id() });
    assert_eq!(damage("generation", 2.into()), Damage::Checksum);
    assert_eq!(damage("created", 1.into()), Damage::Checksum);
    for name in ["public", "sealingSecret", "checksum"] {
        assert_eq!(damage(name, "05".repeat(32).into()), Damage::Checksum, "{name}");
        assert!(
            matches!(damage(name, "05".repeat(31).into()), Damage::Unreadable { .. }),
            "{name}"
        );
        assert!(
            matches!(damage(name, "AB".repeat(32).into()), Damage::Unreadable { .. }),
            "{name}"
        );
    }
    assert_eq!(damage("v", 2.into()), Damage::Version { found: 2 });
    let kind = Damage::Kind { expected: "ed25519+hmac-sha256" };
    assert_eq!(damage("kind", "revocation".into()), kind);
    assert!(matches!(damage("note", "more".into()), Damage::Unreadable { .. }));

    // Sound in itself, under the name of another key.
    fs::rename(&path, file_of(&dir, &other)).unwrap();
    write(&file_of(&dir, &other), &whole);
    assert!(matches!(
        dir.load(NOW).unwrap_err(),
        Error::Damaged { damage: Damage::OtherName { id: found }, .. } if found == id
    ));
}

#[test]
fn no_error_tells_a_secret() {
    let (_root, dir) = dir();
    let keys = dir.load(NOW).unwrap();
    let path = file_of(&dir, keys.current());
    let secret = "5ec1e7".repeat(11);
    for text in [
        format!("{{\"v\": 1, \"kind\": \"ed25519+hmac-sha256\", \"signingSecret\": \"{secret}\"}}"),
        format!("{{\"v\": 1, \"kind\": \"ed25519+hmac-sha256\", \"generation\": \"{secret}\"}}"),
        format!("{{\"v\": \"{secret}\"}}"),
        format!("{{\"v\": 1, \"kind\": \"{secret}\"}}"),
        secret.clone(),
    ] {
        write(&path, &text);
        let error = dir.load(NOW).unwrap_err();
        let told = format!("{error} {error:?} {:?}", error.hint());
        assert!(!told.contains("5ec1e7"), "{told}");
    }
}

#[test]
fn what_is_not_named_for_a_key_is_left_alone() {
    let (_root, dir) = dir();
    let keys = dir.load(NOW).unwrap();
    // The rest of a writer that was killed, an editor's copy, and something else altogether.
    for name in [".unfinished", "key-1234.json~", "notes.json"] {
        write(&dir.path().join(name), "half a fi");
    }
    assert_eq!(dir.load(NOW).unwrap().current().id(), keys.current().id());
    dir.rotate(NOW).unwrap();
    assert!(!dir.path().join(".unfinished").exists());
    assert!(dir.path().join("notes.json").exists());
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let dir = KeyDir::new(file.join("keys"));
    let error = dir.load(NOW).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot list {}", dir.path().display()));
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn a_public_key_cannot_go_by_another_id() {
    let public = key(1).public(Some(Revocation { at: NOW, reason: "lost".to_owned() }));
    let text = serde_json::to_string(&public).unwrap();
    assert_eq!(serde_json::from_str::<PublicKey>(&text).unwrap(), public);
    let lying = text.replace(&key(1).id().to_string(), &key(3).id().to_string());
    assert_eq!(
        serde_json::from_str::<PublicKey>(&lying).unwrap_err().to_string(),
        format!("id {} does not fit the public key, whose id is {}", key(3).id(), key(1).id())
    );
    // The neutral point is on the curve, and everybody can sign for it.
    let mut neutral = [0; 32];
    neutral[0] = 1;
    assert_eq!(PublicKey::new(&neutral, NOW, None), Err(PublicKeyError::NotAKey));
    assert_eq!(PublicKey::new(&[2; 32], NOW, None), Err(PublicKeyError::NotAKey));
}

#[test]
fn a_ring_never_forgets_a_revocation() {
    let revoked = |at| Revocation { at: Timestamp::from_millis(at), reason: at.to_string() };
    let mut ring = KeyRing::new();
    for (with, expected) in [
        (None, None),
        (Some(revoked(5)), Some(revoked(5))),
        (None, Some(revoked(5))),
        (Some(revoked(9)), Some(revoked(5))),
        (Some(revoked(3)), Some(revoked(3))),
    ] {
        ring.insert(key(1).public(with));
        assert_eq!(ring.get(key(1).id()).unwrap().revoked(), expected.as_ref());
    }
    assert_eq!(ring.iter().len(), 1);
}

#[test]
fn ephemeral_keys_differ_and_leave_no_file() {
    let (one, two) = (Keys::ephemeral(NOW).unwrap(), Keys::ephemeral(NOW).unwrap());
    assert_ne!(one.current().id(), two.current().id());
    let unknown = OpenError::UnknownKey { key: one.current().id() };
    assert_eq!(record(&one).open(&two, NOW, None), Err(unknown));
}

#[test]
fn a_shared_key_opens_records_elsewhere_and_signs_nothing() {
    let ((_here, here), (_there, there)) = (dir(), dir());
    let (own, others) = (here.load(NOW).unwrap(), there.load(NOW).unwrap());
    let sealed = record(&own);
    let id = own.current().id();
    assert_eq!(sealed.open(&others, NOW, None), Err(OpenError::UnknownKey { key: id }));
    let shared = here.share(None).unwrap().unwrap();
    let from = Path::new("shared.json");
    assert_eq!(there.accept(&shared, from).unwrap().id(), id);
    let accepting = there.load(NOW).unwrap();
    assert_eq!(sealed.open(&accepting, NOW, None).unwrap().key, id);
    assert_eq!(accepting.current().id(), others.current().id(), "it is no key of its own");
    assert!(there.ring().unwrap().get(id).is_none(), "what it signs is not believed");
    assert_eq!(mode(&there.path().join(format!("{id}.sealing.json"))), 0o600);
    let text = String::from_utf8(shared.to_vec()).unwrap();
    assert!(!text.contains("signingSecret"), "{text}");
    // A file that was changed is refused, whatever of it was.
    let value: Value = serde_json::from_str(&text).unwrap();
    for member in ["id", "created", "public", "sealingSecret", "checksum", "kind", "v"] {
        let mut changed = value.clone();
        changed[member] = match &value[member] {
            Value::String(text) => {
                let end = text.len() - 1;
                let other = if text.ends_with('0') { "1" } else { "0" };
                Value::from(format!("{}{other}", &text[..end]))
            }
            number => Value::from(number.as_u64().unwrap() + 1),
        };
        let refused = there.accept(changed.to_string().as_bytes(), from).unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }), "{member}: {refused}");
    }
    there.revoke(&there.accepted().unwrap()[0], "stolen", NOW).unwrap();
    let refused = sealed.open(&there.load(NOW).unwrap(), NOW, None).unwrap_err();
    assert!(matches!(refused, OpenError::RevokedKey { .. }), "{refused}");
    assert!(there.accepted().unwrap()[0].revoked().is_some());
}
