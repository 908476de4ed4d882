//! Waits that every event has to be matched against are bounded, for each tenant.

use adjourn_core::Rejected;
use adjourn_core::limits::KEYLESS_WAITS;
use adjourn_core::session::Phase;
use adjourn_store::Store;
use serde_json::json;

use super::moves::{ann, resume, suspend_until};
use super::world::{TENANT, World};

/// A tenant has a thousand waits that no name leads to; one more is refused, wherever it is asked
/// for, until one of them is over. Other waits, and other tenants, are not concerned.
pub(super) fn a_tenant_has_a_thousand_waits_without_a_name<S: Store>(world: World<S>) {
    let keyless = json!({"trigger": {"suffix": {"name": ".passed"}}});
    let foundings: Vec<_> = (0..KEYLESS_WAITS).map(|_| world.founding(TENANT)).collect();
    let ids = world.keep({
        let keyless = keyless.clone();
        move |tx| {
            let park = |founding| {
                let id = tx.create(ann(), founding)?.session.id;
                Ok(tx.command(suspend_until(id, &keyless))?.session.id)
            };
            foundings.into_iter().map(park).collect::<Result<Vec<_>, _>>()
        }
    });
    assert_eq!(world.store.size().unwrap().suspended, KEYLESS_WAITS);

    let turns = world.turns_of(&[TENANT, "another"]);
    let (agent, stranger) = (turns[0], turns[1]);
    let client = world.create();
    for (path, request) in
        [("resumeWhen", suspend_until(client, &keyless)), ("conditions", agent.awaits(&keyless))]
    {
        match world.refused(request) {
            Rejected::Invalid { path: found, .. } => assert_eq!(found, path),
            other => panic!("{other}"),
        }
    }
    let named = json!({"onEvent": "ci.passed"});
    assert_eq!(world.done(suspend_until(client, &named)).session.phase(), Phase::Suspended);
    assert_eq!(world.done(stranger.awaits(&keyless)).session.phase(), Phase::Suspended);

    world.done(resume(ids[500]));
    assert_eq!(world.done(agent.awaits(&keyless)).session.phase(), Phase::Suspended);
    assert_eq!(world.refused(suspend_until(ids[500], &keyless)).reason(), "INVALID");
}
