//! The integration tests of this crate, one module for each subject.

mod died;
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
