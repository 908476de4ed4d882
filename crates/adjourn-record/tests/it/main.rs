//! Integration tests: one binary, one module per promise.

#![expect(clippy::disallowed_methods, reason = "a test reads what it has written itself")]

#[cfg(test)]
mod chain;
#[cfg(test)]
mod commit;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod inclusion;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod portable;
#[cfg(test)]
mod race;
