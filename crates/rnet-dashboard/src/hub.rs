//! State shared by all pages: the threads for snapshots and topics, and the operations.

use std::sync::Arc;

use rnet::inspect::{PriorityChange, lower_priority};
use tokio::sync::Semaphore;

use crate::app_state::AppState;
use crate::operations::Operations;
use crate::options::Options;
use crate::ticks::{self, Ticks};
use crate::topic::{self, TopicReader};

/// Maximum number of concurrent changes and calls of all pages.
pub const MAX_JOBS: usize = 32;
/// Maximum number of concurrent stops and releases of all pages, which have their own threads.
pub const MAX_STOPS: usize = 64;

pub struct Hub {
    pub app: Arc<AppState>,
    pub ticks: Ticks,
    pub reader: TopicReader,
    pub operations: Arc<Operations>,
    pub jobs: Arc<Semaphore>,
    pub stops: Arc<Semaphore>,
}

impl Hub {
    /// Starts the threads for snapshots and topics.
    pub fn start(options: Options) -> crate::Result<Arc<Hub>> {
        let app = Arc::new(AppState::new(options));
        let operations = Arc::new(Operations::new(app.clone())?);
        let (ticks, reader) = (Ticks::default(), TopicReader::default());
        let [jobs, stops] = [MAX_JOBS, MAX_STOPS].map(|places| Arc::new(Semaphore::new(places)));
        let hub = Arc::new(Hub { app, ticks, reader, operations, jobs, stops });
        let spawn = |name: &str, way: PriorityChange, run: fn(&Hub)| {
            let hub = hub.clone();
            let work = move || {
                // Other threads operate the robot, including Stop.
                lower_priority(way);
                run(&hub);
            };
            std::thread::Builder::new().name(name.to_owned()).spawn(work)
        };
        spawn("rnet-dash-tick", PriorityChange::Lowest, |hub| {
            ticks::run(&hub.ticks, &hub.operations)
        })?;
        // Pages lose messages that this thread does not read in time.
        let read = |hub: &Hub| topic::run(&hub.reader, &hub.operations);
        if let Err(error) = spawn("rnet-dash-read", PriorityChange::Batch, read) {
            hub.stop();
            return Err(error.into());
        }
        Ok(hub)
    }

    pub fn stop(&self) {
        self.app.stop();
        self.ticks.wake();
        self.reader.wake();
    }
}
