//! The main function of a worker process.

use crate::clock::now_ns;
use crate::control::{Inbox, Note, tell};
use crate::message::{self, HEADER_LEN, Header, Kind};
use crate::result::{Calls, PhaseResult, Recorder};
use crate::spec::{Call, Event, KeyValueLoad, Order, Role, Spec};
use crate::{Error, KeyValue, KeyValueClient, Result, System, peer, round_trip};
use std::process::ExitCode;

/// Does what the specification on standard input says, with these systems to choose from.
pub fn main(systems: &[Box<dyn System>], stores: &[Box<dyn KeyValue>]) -> ExitCode {
    match work(systems, stores) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // When this fails too, the exit code is left to tell.
            let _ = tell(&Event::Failed { why: error.to_string() });
            ExitCode::FAILURE
        }
    }
}

fn work(systems: &[Box<dyn System>], stores: &[Box<dyn KeyValue>]) -> Result<()> {
    let (spec, inbox) = Inbox::begin()?;
    let Spec { system: id, net, role, .. } = spec;
    if let Role::KeyValue { client, loads } = role {
        let store = stores
            .iter()
            .find(|s| s.id() == id)
            .ok_or_else(|| Error::new(format!("this program has no store {id:?}")))?;
        return key_value(store.open(&net)?, client, &loads, &inbox);
    }
    let system = systems
        .iter()
        .find(|s| s.id() == id)
        .ok_or_else(|| Error::new(format!("this program has no system {id:?}")))?;
    match &role {
        Role::Peer { publishes, subscribes } => {
            peer::run(&**system, &net, publishes, subscribes, &inbox)
        }
        Role::Pinger { there, back, loads } => {
            round_trip::ping(&**system, &net, there, back, loads, &inbox)
        }
        Role::Echo { there, back } => round_trip::echo(&**system, &net, there, back, &inbox),
        Role::KeyValue { .. } => Err(Error::new("a store is no system")),
    }
}

fn key_value(
    mut client: Box<dyn KeyValueClient>,
    number: usize,
    loads: &[KeyValueLoad],
    inbox: &Inbox,
) -> Result<()> {
    // Each key is there before anybody gets it.
    for load in loads.iter().filter(|l| l.call != Call::Rest) {
        client.set(&load.key, &value(load.len, 0, number))?;
    }
    client.finish()?;
    tell(&Event::Ready)?;
    loop {
        match inbox.next(None)? {
            None | Some(Note::Report(..)) => {}
            Some(Note::Order(Order::Stop { .. })) => return Ok(()),
            Some(Note::Order(Order::Go { go, .. })) => {
                let load = loads.get(go).ok_or_else(|| Error::new("no such phase"))?;
                let calls = match load.call {
                    Call::Rest => None,
                    Call::Set => Some(sets(&mut *client, number, load)?),
                    Call::Get => Some(gets(&mut *client, load)?),
                };
                let result = Box::new(PhaseResult { calls, ..PhaseResult::default() });
                tell(&Event::Done { phase: go, result })?;
            }
        }
    }
}

fn value(len: usize, number: u64, client: usize) -> Vec<u8> {
    let mut value = message::patterned(len.max(HEADER_LEN));
    stamp(&mut value, number, client);
    value
}

fn stamp(value: &mut [u8], number: u64, client: usize) {
    Header { stamp_ns: now_ns(), kind: Kind::Data, phase: 0, publisher: client as u16, number }
        .write(value);
}

fn sets(client: &mut dyn KeyValueClient, number: usize, load: &KeyValueLoad) -> Result<Calls> {
    let mut value = value(load.len, 0, number);
    let mut latency = Recorder::default();
    let timed = client.in_flight() == 1;
    let (start_ns, mut count) = (now_ns(), 0);
    let end_ns = start_ns + (load.seconds * 1e9) as u64;
    loop {
        let before_ns = now_ns();
        if before_ns >= end_ns {
            break;
        }
        stamp(&mut value, count, number);
        client.set(&load.key, &value)?;
        if timed {
            latency.record(now_ns() - before_ns);
        }
        count += 1;
    }
    client.finish()?;
    let elapsed_ns = now_ns() - start_ns;
    let call = "set".into();
    Ok(Calls { call, count, elapsed_ns, latency: latency.take(), ..Calls::default() })
}

fn gets(client: &mut dyn KeyValueClient, load: &KeyValueLoad) -> Result<Calls> {
    let template = message::patterned(load.len.max(HEADER_LEN));
    let (mut latency, mut age) = (Recorder::default(), Recorder::default());
    let (mut count, mut distinct, mut wrong, mut before) = (0, 0, 0, None);
    let timed = client.in_flight() == 1;
    let start_ns = now_ns();
    let end_ns = start_ns + (load.seconds * 1e9) as u64;
    loop {
        let before_ns = now_ns();
        if before_ns >= end_ns {
            break;
        }
        let mut at_ns = 0;
        client.get(&load.key, &mut |bytes| {
            at_ns = now_ns();
            count += 1;
            let header = bytes.and_then(Header::read);
            let right = |h: &Header| {
                bytes.is_some_and(|b| message::content_is_right(b, h.number, &template))
            };
            match header.filter(right) {
                None => wrong += 1,
                Some(header) => {
                    // What was set before the phase is old for no fault of the store.
                    let of_phase = header.stamp_ns >= start_ns;
                    if of_phase && before != Some((header.publisher, header.number)) {
                        before = Some((header.publisher, header.number));
                        distinct += 1;
                        age.record(at_ns.saturating_sub(header.stamp_ns));
                    }
                }
            }
        })?;
        if timed {
            latency.record(at_ns.saturating_sub(before_ns));
        }
    }
    let elapsed_ns = now_ns() - start_ns;
    client.finish()?;
    let call = "get".into();
    let (latency, age) = (latency.take(), age.take());
    Ok(Calls { call, count, distinct, wrong, elapsed_ns, latency, age })
}
