//! Integration tests: one binary, one module per promise.

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
