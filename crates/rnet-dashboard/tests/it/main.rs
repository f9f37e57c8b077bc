//! The integration tests of this crate, one module for each subject.

#[path = "../../../rnet-net/tests/it/attack.rs"]
mod attack;
mod died;
mod flood;
mod hostile;
mod hosts;
mod over_link;
mod page;
mod pictures;
mod roles;
mod slow_page;
mod stop;
mod thread_priority;
mod util;
