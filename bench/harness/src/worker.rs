//! The main function of a worker process.

use crate::control::Inbox;
use crate::spec::{Event, Role, Spec};
use crate::{Error, KeyValue, Result, System, client, peer, round_trip};
use std::process::ExitCode;

/// Runs the specification on standard input with one of these systems.
pub fn main(systems: &[&dyn System], stores: &[Box<dyn KeyValue>]) -> ExitCode {
    match work(systems, stores) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If this fails too, only the exit code shows it.
            let _ = rnet_bench::worker::send_event(&Event::Failed {
                why: error.to_string(),
                timed_out: false,
            });
            ExitCode::FAILURE
        }
    }
}

fn work(systems: &[&dyn System], stores: &[Box<dyn KeyValue>]) -> Result<()> {
    let (spec, inbox) = Inbox::begin()?;
    let Spec { system: id, net, role, .. } = spec;
    if let Role::KeyValue { client: number, loads } = role {
        let store = stores
            .iter()
            .find(|s| s.id() == id)
            .ok_or_else(|| Error::new(format!("this program has no store {id:?}")))?;
        return client::run(store.open(&net)?, number, &loads, &inbox);
    }
    let system = systems
        .iter()
        .find(|s| s.id() == id)
        .ok_or_else(|| Error::new(format!("this program has no system {id:?}")))?;
    match &role {
        Role::Peer { publishes, subscribes } => {
            peer::run(*system, &net, publishes, subscribes, &inbox)
        }
        Role::Pinger { there, back, loads } => {
            round_trip::ping(*system, &net, there, back, loads, &inbox)
        }
        Role::Echo { there, back } => round_trip::echo(*system, &net, there, back, &inbox),
        Role::KeyValue { .. } => Err(Error::new("a store is no system")),
    }
}
