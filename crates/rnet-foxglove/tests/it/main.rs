//! The integration tests of this crate, one module for each subject.

mod hostile;
mod independent;
mod live;
mod played;
mod roles;
mod util;
