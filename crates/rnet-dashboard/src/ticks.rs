//! What is looked at from time to time: the domain's figures, its state, recordings, launched nodes.
//!
//! One thread does so for all pages, twenty times a second, and sleeps while no page wants anything. A look at the domain
//! reads counters; it is made when it is due for somebody, and all who want looks get it.

mod abroad;
mod health;
mod history;
mod history_sink;
mod launch;
mod params;
mod record;
mod services;
mod state;
mod turn;
mod view;
mod whole;

use std::time::{Duration, Instant};

use rnet::inspect::Domain;
use rnet_monitor::DomainSnapshot;

use history::History;
use turn::{Sink, TURN, Tick};
use view::{Gone, View};

pub use health::{Ask, Asked};
pub use history_sink::HistorySink;
pub use launch::launched;
pub use params::{far_params, params};
pub use record::recordings;
pub use services::services;
pub use state::{StatePlotSink, StateSink};
pub use whole::{Read, WholeSink, figures};

use crate::desk::Desk;
use crate::world::{Additions, Served, World};

/// Two looks at rates that say something are so far apart at least.
pub const MIN_LOOK_INTERVAL: Duration = Duration::from_millis(240);
/// And so far at most: what went wrong longer ago is over.
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// What is told of turns.
pub type Ticks = Additions<Box<dyn Sink>>;

/// The thread.
pub fn run(ticks: &Ticks, desk: &Desk) {
    let world = desk.world();
    let mut sinks = Vec::new();
    let mut looks = Looks::default();
    while !world.is_stopped() {
        ticks.take(world, &mut sinks);
        sinks.retain(Served::is_wanted);
        let now = Instant::now();
        let is_due = looks.may_look(now) && sinks.iter().any(|sink| sink.what.wants_look(now));
        if is_due {
            looks.look(world, now);
        }
        let Looks { before, last, gone, history, .. } = &mut looks;
        let view = match (before.as_ref(), last.as_ref()) {
            (Some(before), Some(last)) if is_due => Some(View::new(before, last, gone, world)),
            _ => None,
        };
        if let Some(view) = &view {
            history.add(view);
        }
        for sink in &mut sinks {
            sink.what.tick(&Tick { now, desk, view: view.as_ref(), history });
        }
        ticks.pause(world, TURN);
    }
}

/// The last look at the domain, and the one before.
#[derive(Default)]
struct Looks {
    domain: Option<Domain>,
    before: Option<DomainSnapshot>,
    last: Option<DomainSnapshot>,
    at: Option<Instant>,
    gone: Gone,
    history: History,
}

impl Looks {
    fn may_look(&self, now: Instant) -> bool {
        self.at.is_none_or(|at| now.duration_since(at) >= MIN_LOOK_INTERVAL)
    }

    fn look(&mut self, world: &World, now: Instant) {
        // What was lost since nobody looked is not lost now.
        if self.at.replace(now).is_some_and(|at| now.duration_since(at) > MAX_LOOK_INTERVAL) {
            self.last = None;
        }
        if self.domain.is_none() {
            self.domain = world.options.location.domain().ok();
        }
        let Some(domain) = &mut self.domain else { return };
        match DomainSnapshot::new(domain) {
            Ok(look) => {
                self.gone.look(&look);
                self.before = self.last.replace(look);
            }
            // It is opened anew at the next look: another layout, say, or rights that somebody gives back.
            Err(_) => self.domain = None,
        }
    }
}
