//! Periodically polled data: the domain's figures, its state, recordings, launched nodes.
//!
//! One thread polls for all pages, twenty times a second, and sleeps without subscriptions. A snapshot of the
//! domain reads counters. It is taken when one subscription is due, and shared by all subscriptions that need
//! snapshots.

mod full_update;
mod health;
mod history;
mod history_sink;
mod launch;
mod params;
mod record;
mod remote_hosts;
mod services;
mod state;
mod tick;
mod view;

use std::time::{Duration, Instant};

use rnet::inspect::Domain;
use rnet_monitor::DomainSnapshot;

use history::History;
use tick::{Sink, TICK_INTERVAL, Tick};
use view::{GoneNodes, View};

pub use full_update::{FullUpdateSink, Read, figures};
pub use health::{MonitorQuery, MonitorRequest};
pub use history_sink::HistorySink;
pub use launch::launched;
pub use params::{params, remote_params};
pub use record::recordings;
pub use services::services;
pub use state::{StatePlotSink, StateSink};

use crate::app_state::{AppState, Registration, Registrations};
use crate::operations::Operations;

/// Minimum interval between two snapshots for meaningful rates.
pub const MIN_SNAPSHOT_INTERVAL: Duration = Duration::from_millis(240);
/// Maximum interval between two snapshots: earlier problems are over.
const MAX_SNAPSHOT_INTERVAL: Duration = Duration::from_secs(60);

/// Registered sinks of the tick thread.
pub type Ticks = Registrations<Box<dyn Sink>>;

/// The tick thread.
pub fn run(ticks: &Ticks, operations: &Operations) {
    let app = operations.app();
    let mut sinks = Vec::new();
    let mut snapshots = Snapshots::default();
    while !app.is_stopped() {
        ticks.take(app, &mut sinks);
        sinks.retain(Registration::is_active);
        let now = Instant::now();
        let takes_snapshot =
            snapshots.is_due(now) && sinks.iter().any(|sink| sink.item.needs_snapshot(now));
        if takes_snapshot {
            snapshots.take(app, now);
        }
        let Snapshots { before, last, gone, history, .. } = &mut snapshots;
        let view = match (before.as_ref(), last.as_ref()) {
            (Some(before), Some(last)) if takes_snapshot => {
                Some(View::new(before, last, gone, app))
            }
            _ => None,
        };
        if let Some(view) = &view {
            history.add(view);
        }
        for sink in &mut sinks {
            sink.item.tick(&Tick { now, operations, view: view.as_ref(), history });
        }
        ticks.pause(app, TICK_INTERVAL);
    }
}

/// The last two snapshots of the domain.
#[derive(Default)]
struct Snapshots {
    domain: Option<Domain>,
    before: Option<DomainSnapshot>,
    last: Option<DomainSnapshot>,
    at: Option<Instant>,
    gone: GoneNodes,
    history: History,
}

impl Snapshots {
    fn is_due(&self, now: Instant) -> bool {
        self.at.is_none_or(|at| now.duration_since(at) >= MIN_SNAPSHOT_INTERVAL)
    }

    fn take(&mut self, app: &AppState, now: Instant) {
        // Losses from the time without subscriptions are not current.
        if self.at.replace(now).is_some_and(|at| now.duration_since(at) > MAX_SNAPSHOT_INTERVAL) {
            self.last = None;
        }
        if self.domain.is_none() {
            self.domain = app.options.location.domain().ok();
        }
        let Some(domain) = &mut self.domain else { return };
        match DomainSnapshot::new(domain) {
            Ok(snapshot) => {
                self.gone.update(&snapshot);
                self.before = self.last.replace(snapshot);
            }
            // The next snapshot opens it again, for example after a layout change or with restored
            // permissions.
            Err(_) => self.domain = None,
        }
    }
}
