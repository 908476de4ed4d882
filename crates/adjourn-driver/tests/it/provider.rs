//! What every provider wants of a conversation. Tests of other crates check their views with it,
//! too.

use adjourn_conformance::given::providers_take;
use adjourn_driver::ModelMessage;

/// Checks that a view is one that every provider takes.
pub fn takes(view: &[ModelMessage]) {
    assert_eq!(providers_take(view), Ok(()), "{view:#?}");
}
