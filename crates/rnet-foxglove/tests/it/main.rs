//! The integration tests of this crate, one module for each subject.

#[path = "../../../rnet-net/tests/it/attack.rs"]
mod attack;
mod flood;
mod hostile;
mod independent;
mod live;
mod played;
mod roles;
mod util;
