//! Work queues: each job goes to one of several workers (docs/design/calls.md, section 5).

mod pull;
mod push;

use crate::{Message, Node};

pub use pull::{Job, JobContext, PullBuilder, Puller};
pub use push::{PushBuilder, PushStats, Pusher, Undelivered};

impl Node {
    /// A builder for the pushing end of a work queue, opened by [`PushBuilder::open`]. Each job goes to one free worker
    /// among the nodes that [`Node::pull`] from that name.
    ///
    /// ```
    /// # fn main() -> rnet::Result<()> {
    /// # let dir = std::env::temp_dir();
    /// # let domain = format!("queue{}", std::process::id());
    /// # let node = rnet::Node::builder("planner").dir(dir).domain(&domain).open()?;
    /// let mut worker = node.pull::<[u8]>("/jobs").open()?;
    /// let jobs = node.push::<[u8]>("/jobs").open()?;
    /// jobs.push(b"sweep the hall")?;
    /// let job = worker.recv(None)?.expect("there is no limit to the wait");
    /// assert_eq!(&*job, b"sweep the hall");
    /// job.ack();
    /// jobs.wait_until_done(None)?;
    /// # drop((jobs, worker));
    /// # let path = node.domain_path().to_owned();
    /// # drop(node);
    /// # std::fs::remove_dir_all(path).unwrap();
    /// # Ok(()) }
    /// ```
    pub fn push<J: Message + ?Sized>(&self, name: &str) -> PushBuilder<J> {
        PushBuilder::new(self, name)
    }

    /// A worker of a work queue, which has one job at a time. It is opened by [`PullBuilder::open`], to receive jobs,
    /// or by [`PullBuilder::on`], with a handler.
    pub fn pull<J: Message + ?Sized>(&self, name: &str) -> PullBuilder<J> {
        PullBuilder::new(self, name)
    }
}
