//! The integration tests of this crate, one module for each subject.

mod died;
mod thread_priority;
mod hostile;
mod hosts;
mod over_link;
mod page;
mod pictures;
mod slow_page;
mod stop;
mod util;
