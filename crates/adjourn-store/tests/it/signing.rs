//! Keys that are rotated and revoked: what they signed stays provable.

use adjourn_core::time::Timestamp;
use adjourn_record::keys::{Key, KeyRing, Keys, PublicKey, Revocation};
use adjourn_store::sqlite::Options;
use adjourn_store::{Error, Sqlite, Store as _};

use crate::fixture::{Fixture, create};

fn key(seed: u8) -> Key {
    Key::from_secrets(Timestamp::from_millis(0), &[seed; 32], &[seed + 1; 32])
}

/// Makes two commits with an old key and three with a new one.
fn rotated(fixture: &Fixture) -> Sqlite {
    let opened_with = |keys| {
        let mut options = fixture.options();
        options.keys = keys;
        Sqlite::open(options).unwrap()
    };
    let store = opened_with(Keys::only(key(1)));
    create(&store);
    create(&store);
    drop(store);
    let store = opened_with(Keys::only(key(3)).accepting(key(1), None));
    for _ in 0..3 {
        create(&store);
    }
    store
}

#[test]
fn a_rotated_key_is_verified_with_both() {
    let fixture = Fixture::new();
    let store = rotated(&fixture);
    let ring = |keys: &[Key]| keys.iter().map(|key| key.public(None)).collect::<KeyRing>();
    let verified = store.verify(&ring(&[key(1), key(3)]), None).unwrap().unwrap();
    assert_eq!((verified.audit.head.number, verified.audit.marked), (5, Vec::new()));
    for (ring, expected) in [
        (ring(&[key(1)]), format!("commit 3: it is signed with unknown key {}", key(3).id())),
        (ring(&[key(3)]), format!("commit 1: it is signed with unknown key {}", key(1).id())),
        (KeyRing::new(), format!("commit 1: it is signed with unknown key {}", key(1).id())),
    ] {
        assert_eq!(store.verify(&ring, None).unwrap().unwrap_err().to_string(), expected);
    }
}

#[test]
fn what_a_revoked_key_signed_is_verified_and_marked() {
    let fixture = Fixture::new();
    let store = rotated(&fixture);
    let revocation = Revocation { at: Timestamp::from_millis(9), reason: "lost laptop".to_owned() };
    let ring = [key(1).public(Some(revocation.clone())), key(3).public(None)];
    let ring: KeyRing = ring.into_iter().collect();
    let verified = store.verify(&ring, None).unwrap().unwrap();
    let [marked] = &verified.audit.marked[..] else { panic!("{:?}", verified.audit) };
    assert_eq!((marked.key, marked.first, marked.last, marked.commits), (key(1).id(), 1, 2, 2));
    assert_eq!(marked.revocation, revocation);
    // Nothing is stranded: sessions go on.
    let sessions = store.sessions(adjourn_store::rows::SessionNo(0), 10).unwrap();
    let first = sessions[0].1.as_ref().unwrap().id;
    crate::fixture::prompt(&store, first, "go on").unwrap();
}

#[test]
fn a_store_names_the_keys_that_wrote_to_it() {
    let fixture = Fixture::new();
    drop(rotated(&fixture));
    let connection = rusqlite::Connection::open(fixture.path()).unwrap();
    let mut statement = connection.prepare("SELECT public FROM key").unwrap();
    let public = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let ring: KeyRing =
        public.map(|public| serde_json::from_str::<PublicKey>(&public.unwrap()).unwrap()).collect();
    assert_eq!(ring, [key(1), key(3)].map(|key| key.public(None)).into_iter().collect());
}

#[test]
fn a_key_that_is_missing_is_not_replaced_in_silence() {
    let fixture = Fixture::new();
    let opened_with =
        |keys, new_signer| Sqlite::open(Options { keys, new_signer, ..fixture.options() });
    drop(opened_with(Keys::only(key(5)), false).expect("nothing was signed yet"));
    create(&opened_with(Keys::only(key(1)), false).unwrap());
    let refused = opened_with(Keys::only(key(3)), false).err().unwrap();
    assert!(matches!(&refused, Error::UnknownSigner(id) if *id == key(1).id()), "{refused}");
    assert!(refused.hint().unwrap().contains("adjourn keys rotate"));
    // One that knows it may go on, and so may one that somebody says is to.
    create(&opened_with(Keys::only(key(3)).accepting(key(1), None), false).unwrap());
    let made_at =
        |at: u8| Key::from_secrets(Timestamp::from_millis(at.into()), &[at; 32], &[1; 32]);
    let store = opened_with(Keys::only(made_at(20)), true).unwrap();
    assert_eq!(store.signer().unwrap(), Some(key(3).id()));
    drop(store);
    // The store was told of it.
    create(&opened_with(Keys::only(made_at(20)), false).unwrap());
    // One that was rotated away does not sign again, whether it has written there or not.
    for old in [1, 3, 5] {
        let refused = opened_with(Keys::only(key(old)), false).err().unwrap();
        assert!(matches!(&refused, Error::UnknownSigner(id) if *id == made_at(20).id()));
    }
    let store = opened_with(Keys::only(made_at(20)), false).unwrap();
    assert!(!store.goes_on_with(&Keys::only(key(1))).unwrap());
    let ring = store.keys().unwrap();
    let keys = [key(1), key(3), key(5), made_at(20)];
    assert!(keys.iter().all(|key| ring.get(key.id()).is_some()));
}

#[test]
fn keys_are_taken_up_while_a_store_is_open() {
    let fixture = Fixture::new();
    let store = fixture.open_as(Keys::only(key(1)));
    create(&store);
    store.use_keys(Keys::only(key(3)).accepting(key(1), None));
    assert_eq!(store.signer().unwrap(), Some(key(1).id()), "nothing was committed since");
    create(&store);
    assert_eq!(store.signer().unwrap(), Some(key(3).id()));
    assert!(store.keys().unwrap().get(key(3).id()).is_some());
    store.verify(&store.keys().unwrap(), None).unwrap().unwrap();
}
