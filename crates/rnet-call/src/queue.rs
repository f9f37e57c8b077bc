//! Work queues: each job goes to one of several workers (docs/design/calls.md, section 5).

mod pull;
mod push;

pub use pull::{Job, JobContext, PullBuilder, Puller};
pub use push::{PushBuilder, PushStats, Pusher, Undelivered};
