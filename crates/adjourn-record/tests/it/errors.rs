//! Every error is a sentence that names its object: lower case, no full stop.

use std::path::PathBuf;
use std::time::Duration;

use adjourn_record::chain::{self, Chain};
use adjourn_record::commit::{self, Head};
use adjourn_record::keys::{Damage, Error, PublicKeyError, Revocation, SignatureError};
use adjourn_record::portable::{Limit, OpenError, Record, SealError};
use adjourn_record::{Hash, entry};
use expect_test::{Expect, expect};

use crate::fixtures::{NOW, key, session};

fn check<E: std::fmt::Display>(errors: impl IntoIterator<Item = E>, expected: Expect) {
    let lines: Vec<_> = errors.into_iter().map(|error| format!("{error}\n")).collect();
    for line in &lines {
        assert!(!line.trim_end().ends_with('.'), "{line}");
    }
    expected.assert_eq(&lines.concat());
}

#[test]
fn of_entries() {
    check(
        [
            entry::decode(&[]).unwrap_err(),
            entry::decode(&[0x21]).unwrap_err(),
            entry::decode(&[0x17]).unwrap_err(),
            entry::read::<u8>(b"\x11{").unwrap_err(),
        ],
        expect![[r#"
            entry is empty: byte 0, which says its codec, is missing
            entry has unknown codec byte 0x21
            entry has unknown codec byte 0x17: version 7 of JSON
            JSON entry cannot be read
        "#]],
    );
}

#[test]
fn of_chains() {
    use chain::Fault;
    let broken = |fault| chain::Broken { chain: Chain::journal(session(1)), revision: 7, fault };
    check(
        [
            broken(Fault::Missing { found: 9 }),
            broken(Fault::CutOff { head: 9 }),
            broken(Fault::Misplaced { expected: 9 }),
            broken(Fault::Foreign { owner: session(2) }),
            broken(Fault::Altered),
            broken(Fault::Added { head: 6 }),
            broken(Fault::OtherHead),
        ],
        expect![[r#"
            journal of session sess-019abf6b-7d51-7c1d-bb02-000000000001, entry 7: it is missing; entry 9 stands in its place
            journal of session sess-019abf6b-7d51-7c1d-bb02-000000000001, entry 7: it is missing, and so is all up to the head of the chain, which is entry 9
            journal of session sess-019abf6b-7d51-7c1d-bb02-000000000001, entry 7: it stands where entry 9 belongs
            journal of session sess-019abf6b-7d51-7c1d-bb02-000000000001, entry 7: it belongs to session sess-019abf6b-7d51-7c1d-bb02-000000000002
            journal of session sess-019abf6b-7d51-7c1d-bb02-000000000001, entry 7: its bytes and its place do not give the link stored beside it
            journal of session sess-019abf6b-7d51-7c1d-bb02-000000000001, entry 7: it was added after the head of the chain, which is entry 6
            journal of session sess-019abf6b-7d51-7c1d-bb02-000000000001, entry 7: its link is not the one that the head of the chain names
        "#]],
    );
}

#[test]
fn of_commits() {
    use commit::Fault;
    let broken = |fault| commit::Broken { number: 7, fault };
    let known = Head { number: 9, hash: Hash::ZERO };
    let key = key(1).id();
    check(
        [
            broken(Fault::Missing { found: 9 }),
            broken(Fault::Misplaced { expected: 9 }),
            broken(Fault::Signature(SignatureError::UnknownKey { key })),
            broken(Fault::Signature(SignatureError::BadSignature { key })),
            broken(Fault::Unlinked),
            broken(Fault::Count { signed: 3, found: 2 }),
            broken(Fault::Root),
            broken(Fault::NotIncluded { link: Hash::ZERO }),
            broken(Fault::Forked { known }),
            broken(Fault::RolledBack { known }),
            broken(Fault::OutOfReach { known }),
        ],
        expect![[r#"
            commit 7: it is missing; commit 9 stands in its place
            commit 7: it stands where commit 9 belongs
            commit 7: it is signed with unknown key key-1225c840863cae7c984cf6145ed0d2f6
            commit 7: its signature is not that of key key-1225c840863cae7c984cf6145ed0d2f6 over its fields
            commit 7: it does not follow the commit before it
            commit 7: it covers 3 entries, but 2 are there
            commit 7: its entries do not give its root
            commit 7: the proof does not show link 0000000000000000000000000000000000000000000000000000000000000000 among its entries
            commit 7: it is not the commit of the known head 9:0000000000000000000000000000000000000000000000000000000000000000
            commit 7: it is missing: the store ends before the known head 9:0000000000000000000000000000000000000000000000000000000000000000 and was rolled back
            commit 7: the known head 9:0000000000000000000000000000000000000000000000000000000000000000 lies before the commits that were checked
        "#]],
    );
}

#[test]
fn of_keys() {
    let path = PathBuf::from("/keys/file");
    let damaged = |damage| Error::Damaged { path: path.clone(), damage };
    let (id, other) = (key(1).id(), key(3).id());
    let errors = [
        Error::Io {
            action: "lock",
            path: path.clone(),
            source: std::io::ErrorKind::PermissionDenied.into(),
        },
        Error::Exposed { path: path.clone(), mode: 0o644, wanted: 0o600 },
        damaged(Damage::Truncated { line: 1, column: 20 }),
        damaged(Damage::Unreadable { line: 3, column: 4 }),
        damaged(Damage::Kind { expected: "revocation" }),
        damaged(Damage::Version { found: 2 }),
        damaged(Damage::OtherId { stated: id, derived: other }),
        damaged(Damage::OtherName { id }),
        damaged(Damage::Checksum),
        damaged(Damage::NotRevoked),
    ];
    let hints = errors.iter().filter_map(Error::hint).map(|hint| format!("hint: {hint}"));
    let errors = errors.iter().map(ToString::to_string).chain(hints);
    let public = PublicKeyError::NotAKey.to_string();
    check(
        errors.chain([public]),
        expect![[r#"
            cannot lock /keys/file
            /keys/file is open to others than its owner (mode 0644)
            key file /keys/file is not usable: it ends too early, at line 1, column 20
            key file /keys/file is not usable: it is not readable at line 3, column 4
            key file /keys/file is not usable: its kind is not `revocation`
            key file /keys/file is not usable: its version 2 is not known to this program
            key file /keys/file is not usable: it says that its id is key-1225c840863cae7c984cf6145ed0d2f6, but its content has id key-02b401ef25a9c644934dfb1858a6bec9
            key file /keys/file is not usable: it is named for another key than key-1225c840863cae7c984cf6145ed0d2f6, which it holds
            key file /keys/file is not usable: its fields do not fit its checksum
            key file /keys/file is not usable: it does not say when and why the key was revoked
            hint: run `chmod 600 /keys/file`; if somebody else may have read it, rotate and revoke the key
            hint: restore /keys/file from a backup, or move it away; what it sealed cannot then be opened here
            hint: restore /keys/file from a backup, or move it away; what it sealed cannot then be opened here
            hint: restore /keys/file from a backup, or move it away; what it sealed cannot then be opened here
            hint: a newer version of this program wrote it
            hint: restore /keys/file from a backup, or move it away; what it sealed cannot then be opened here
            hint: restore /keys/file from a backup, or move it away; what it sealed cannot then be opened here
            hint: restore /keys/file from a backup, or move it away; what it sealed cannot then be opened here
            hint: restore /keys/file from a backup, or move it away; what it sealed cannot then be opened here
            the bytes are not an Ed25519 public key
        "#]],
    );
}

#[test]
fn of_portable_records() {
    let id = key(1).id();
    let revocation = Revocation { at: NOW, reason: "laptop lost".to_owned() };
    let handle = "suspend-019abf6b-7d51-7c1d-bb02-0123456789ad".parse().unwrap();
    let max_age = Duration::from_secs(86_400);
    let text = include_str!("../golden/record.json");
    let malformed = |text: String| {
        let opened = text.parse::<Record>().and_then(|record| {
            let keys = adjourn_record::keys::Keys::only(key(1));
            record.open(&keys, NOW, None).map(|_| ())
        });
        opened.unwrap_err().to_string()
    };
    check(
        [
            malformed(String::new()),
            malformed(text.replace("\"tenant\"", "\"Tenant\"")),
            malformed(text.replace("key-", "kid-")),
            malformed(text.replace("6566.", "6566:")),
            malformed(text.replace("\"v\":1", "\"v\":2")),
            malformed(r#"{"v": 3, "sealed": {}}"#.to_owned()),
            OpenError::UnknownKey { key: id }.to_string(),
            OpenError::TokenMismatch { key: id }.to_string(),
            OpenError::RevokedKey { key: id, revocation }.to_string(),
            OpenError::Expired { handle, limit: Limit::ExpiresAt(NOW) }.to_string(),
            OpenError::Expired { handle, limit: Limit::MaxAge { suspended_at: NOW, max_age } }
                .to_string(),
            SealError::Unwritable { member: "tenant", problem: "it has a zero character" }
                .to_string(),
        ],
        expect![[r#"
            record is malformed: envelope: not JSON: it ends too early, in line 1
            record is malformed: envelope: another value is expected in line 1, column 168
            record is malformed: kid: expected `key-` followed by 32 lower-case hexadecimal digits
            record is malformed: token: expected 32 lower-case hexadecimal digits, a full stop and 64 more digits
            record has unknown version 2
            record has unknown version 3
            record is sealed with unknown key key-1225c840863cae7c984cf6145ed0d2f6
            token of the record does not fit its content under key key-1225c840863cae7c984cf6145ed0d2f6
            record is sealed with key key-1225c840863cae7c984cf6145ed0d2f6, which was revoked at 2025-11-15T09:46:40.000Z: laptop lost
            record of suspension suspend-019abf6b-7d51-7c1d-bb02-0123456789ad has expired: it was good until 2025-11-15T09:46:40.000Z
            record of suspension suspend-019abf6b-7d51-7c1d-bb02-0123456789ad has expired: it is from 2025-11-15T09:46:40.000Z and may be at most 86400 s old
            tenant of the record cannot be written: it has a zero character
        "#]],
    );
}
