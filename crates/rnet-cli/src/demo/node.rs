//! A node of the demo, in a process of its own: it acts when it hears something and when it is due.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::desk::{Desk, Heard, Sent};
use super::parts::{Part, part};
use super::robot::{DemoJob, SEATS};
use crate::bench::figure::Latencies;
use crate::bench::pace::sleep_precisely;
use crate::bench::worker_link::{Event, LOOK, Link, WorkerNode};
use crate::failure::Outcome;

/// The phase in which nodes send no more, and go on receiving.
pub const QUIET: usize = 2;
/// A node that was held up for longer leaves out what it missed: a sensor does not measure the past.
const MAX_BEHIND_NS: u64 = 5_000_000;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DemoReport {
    pub sent: Vec<Sent>,
    pub heard: Vec<Heard>,
    pub changes: Vec<(u64, bool)>,
    pub round_trips: Latencies,
}

pub fn run(node: &WorkerNode, role: &DemoJob, link: &Link) -> Outcome {
    let seat = &SEATS[role.seat];
    let mut part = part(seat.name);
    let mut desk = Desk::open(node.open()?, seat)?;
    link.ready()?;
    act(&mut desk, part.as_mut(), seat.period_ns(), link)?;
    link.say(&Event::Sent)?;
    while !link.ordered() {
        desk.listen(LOOK)?;
    }
    desk.listen(Duration::ZERO)?;
    let (sent, heard) = desk.report();
    let (changes, round_trips) = (part.changes(), part.round_trips());
    link.finish(&DemoReport { sent, heard, changes, round_trips })
}

/// Until it is ordered to be quiet.
fn act(desk: &mut Desk, part: &mut dyn Part, period_ns: Option<u64>, link: &Link) -> Outcome {
    sleep_precisely();
    let mut due_ns = rnet::now_ns();
    while !link.ordered() {
        let until_due = || Duration::from_nanos(due_ns.saturating_sub(rnet::now_ns()));
        desk.listen(period_ns.map_or(LOOK, |_| until_due().min(LOOK)))?;
        let now_ns = rnet::now_ns();
        let due = period_ns.filter(|_| now_ns >= due_ns);
        if let Some(period_ns) = due {
            due_ns = (due_ns + period_ns).max(now_ns.saturating_sub(MAX_BEHIND_NS));
        }
        part.step(desk, now_ns, due.is_some())?;
    }
    Ok(())
}
