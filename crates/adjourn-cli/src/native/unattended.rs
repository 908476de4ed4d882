//! A host that has no person to ask: calls that would have to be allowed do not run, and it says
//! what lets them run.

use adjourn_driver::{BoxFuture, Client, PermissionAnswer, PermissionRequest};

/// What is said of a call that a person would have to allow. A terminal shows all of it in a line.
const WHY: &str = "not run: nobody can be asked here; --allow-all or alwaysAllow of its server lets \
                   it run, or a person at a terminal or in an editor";

/// The client of a session that no person sees.
pub struct Unattended;

impl Client for Unattended {
    fn permission(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        Box::pin(async move {
            let PermissionRequest { session, call, .. } = request;
            tracing::warn!(%session, tool = call.tool, "{WHY}");
            PermissionAnswer::Refused(WHY.to_owned())
        })
    }
}
