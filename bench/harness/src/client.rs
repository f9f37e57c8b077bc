//! A process that calls a key-value store. A clock reading takes some 25 ns, and a call of a store in shared
//! memory not much more. So after a call that took less than [`QUICK_NS`] the next [`UNTIMED`] are made
//! without one; a slower call is always followed by one that is timed. The rule is the same for all stores. A
//! rate counts every call; a latency is one of those that were timed.

use crate::clock::now_ns;
use crate::control::{Inbox, Note};
use crate::message::{self, HEADER_LEN, Header, Kind};
use crate::result::{Calls, PhaseResult, Recorder};
use crate::spec::{Call, Event, KeyValueLoad, Order};
use crate::{Error, KeyValueClient, Result};

/// A call that took less is quick.
const QUICK_NS: u64 = 2_000;
/// So many calls are made after a quick one before the next is timed.
const UNTIMED: usize = 15;

/// Makes the calls of each phase until a stop order.
///
/// # Errors
/// The library's own, or a conversation that broke off.
pub fn run(
    mut client: Box<dyn KeyValueClient>,
    number: usize,
    loads: &[KeyValueLoad],
    inbox: &Inbox,
) -> Result<()> {
    // Each key is there before anybody gets it.
    for load in loads.iter().filter(|l| matches!(l.call, Call::Set | Call::Get)) {
        client.set(&load.key, &value(load.len, number))?;
    }
    client.finish()?;
    rnet_bench::worker::send_event(&Event::Ready)?;
    loop {
        match inbox.next(None)? {
            None | Some(Note::Report(..)) => {}
            Some(Note::Order(Order::Stop { .. })) => return Ok(()),
            Some(Note::Order(Order::Go { go, .. })) => {
                let load = loads.get(go).ok_or_else(|| Error::new("no such phase"))?;
                let calls = calls(&mut *client, number, load)?;
                let result = Box::new(PhaseResult { calls, ..PhaseResult::default() });
                rnet_bench::worker::send_event(&Event::Done { phase: go, result })?;
            }
        }
    }
}

fn calls(
    client: &mut dyn KeyValueClient,
    number: usize,
    load: &KeyValueLoad,
) -> Result<Option<Calls>> {
    let mut calls = match load.call {
        Call::Rest => return Ok(None),
        Call::Set => sets(client, number, load)?,
        Call::Get => gets(client, load)?,
        Call::Add => additions(client, load, |client, key| client.add_one(key).map(|()| 1))?,
        Call::CompareAndSet => {
            additions(client, load, |client, key| client.compare_and_add_one(key))?
        }
        Call::Total => Calls { total: Some(client.number(&load.key)?), ..Calls::default() },
    };
    calls.call = load.call.name().into();
    Ok(Some(calls))
}

fn value(len: usize, client: usize) -> Vec<u8> {
    let mut value = message::patterned(len.max(HEADER_LEN));
    stamp(&mut value, now_ns(), 0, client);
    value
}

fn stamp(value: &mut [u8], stamp_ns: u64, number: u64, client: usize) {
    message::number_pages(value, number);
    Header { stamp_ns, kind: Kind::Data, phase: 0, publisher: client as u16, number }.write(value);
}

/// Calls `once` with the time of the last clock reading until the load's time is over. Returns how long that
/// took and what the timed ones took, which is nothing where many are in flight.
fn repeat(
    client: &mut dyn KeyValueClient,
    load: &KeyValueLoad,
    mut once: impl FnMut(&mut dyn KeyValueClient, u64) -> Result<()>,
) -> Result<Calls> {
    let mut latency = Recorder::default();
    let timed = client.in_flight() == 1;
    let start_ns = now_ns();
    let end_ns = start_ns + (load.seconds * 1e9) as u64;
    loop {
        let before_ns = now_ns();
        if before_ns >= end_ns {
            break;
        }
        once(client, before_ns)?;
        let after_ns = now_ns();
        if timed {
            latency.record(after_ns - before_ns);
        }
        if after_ns - before_ns < QUICK_NS {
            for _ in 0..UNTIMED {
                once(client, after_ns)?;
            }
        }
    }
    client.finish()?;
    let elapsed_ns = now_ns() - start_ns;
    Ok(Calls { elapsed_ns, latency: latency.take(), ..Calls::default() })
}

fn sets(client: &mut dyn KeyValueClient, number: usize, load: &KeyValueLoad) -> Result<Calls> {
    let mut value = value(load.len, number);
    let mut count = 0;
    let calls = repeat(client, load, |client, looked_ns| {
        let stamp_ns = if load.aged { now_ns() } else { looked_ns };
        stamp(&mut value, stamp_ns, count, number);
        count += 1;
        client.set(&load.key, &value)
    })?;
    Ok(Calls { count, ..calls })
}

fn gets(client: &mut dyn KeyValueClient, load: &KeyValueLoad) -> Result<Calls> {
    let template = message::patterned(load.len.max(HEADER_LEN));
    let mut age = Recorder::default();
    let (mut count, mut distinct, mut wrong, mut before) = (0, 0, 0, None);
    let start_ns = now_ns();
    let calls = repeat(client, load, |client, _| {
        client.get(&load.key, &mut |bytes| {
            count += 1;
            let Some(header) = bytes.and_then(|b| right(b, &template)) else {
                wrong += 1;
                return;
            };
            // The store does not cause the age of values set before the phase.
            let which = Some((header.publisher, header.number));
            if load.aged && header.stamp_ns >= start_ns && before != which {
                before = which;
                distinct += 1;
                age.record(now_ns().saturating_sub(header.stamp_ns));
            }
        })
    })?;
    Ok(Calls { count, distinct, wrong, age: age.take(), ..calls })
}

/// The header of a value, if its content is correct.
fn right(bytes: &[u8], template: &[u8]) -> Option<Header> {
    let header = Header::read(bytes)?;
    let whole = bytes.len() == template.len();
    (whole && message::content_is_right(bytes, header.number, template)).then_some(header)
}

fn additions(
    client: &mut dyn KeyValueClient,
    load: &KeyValueLoad,
    mut add: impl FnMut(&mut dyn KeyValueClient, &str) -> Result<u64>,
) -> Result<Calls> {
    let (mut count, mut tries) = (0, 0);
    let calls = repeat(client, load, |client, _| {
        tries += add(client, &load.key)?;
        count += 1;
        Ok(())
    })?;
    Ok(Calls { count, tries, ..calls })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store of one key with a given time per call.
    #[derive(Default)]
    struct Store {
        value: Vec<u8>,
        number: u64,
        slow_ns: u64,
        spoilt: bool,
    }

    impl Store {
        fn take_time(&self) {
            let start_ns = now_ns();
            while now_ns() - start_ns < self.slow_ns {}
        }
    }

    impl KeyValueClient for Store {
        fn set(&mut self, _key: &str, value: &[u8]) -> Result<()> {
            self.take_time();
            self.value.clear();
            self.value.extend_from_slice(value);
            Ok(())
        }

        fn get(&mut self, _key: &str, seen: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
            let mut value = self.value.clone();
            if self.spoilt {
                *value.last_mut().expect("not empty") ^= 1;
            }
            seen(Some(&value));
            Ok(())
        }

        fn compare_and_add_one(&mut self, _key: &str) -> Result<u64> {
            self.number += 1;
            Ok(2)
        }

        fn number(&mut self, _key: &str) -> Result<u64> {
            Ok(self.number)
        }
    }

    fn load(call: Call) -> KeyValueLoad {
        KeyValueLoad { call, key: "k".into(), len: 5000, seconds: 0.01, aged: true }
    }

    #[test]
    fn each_slow_call_is_timed_and_of_quick_ones_every_sixteenth() {
        let mut store = Store { slow_ns: 3 * QUICK_NS, ..Store::default() };
        let slow = calls(&mut store, 1, &load(Call::Set)).expect("set").expect("calls");
        assert_eq!(slow.latency.count, slow.count);
        assert!(slow.latency.min >= 3 * QUICK_NS);
        let quick =
            calls(&mut store, 1, &load(Call::CompareAndSet)).expect("added").expect("calls");
        // A call that was interrupted, and so was slow, is followed by no untimed ones.
        let timed = quick.latency.count;
        assert!(quick.count > timed && quick.count <= timed * (1 + UNTIMED as u64), "{quick:?}");
    }

    #[test]
    fn additions_and_their_tries_are_counted_and_the_total_is_read() {
        let mut store = Store::default();
        let made = calls(&mut store, 0, &load(Call::CompareAndSet)).expect("added").expect("calls");
        assert_eq!((made.call.as_str(), made.tries), ("compare_and_set", 2 * made.count));
        let read = calls(&mut store, 0, &load(Call::Total)).expect("read").expect("calls");
        assert_eq!(read.total, Some(made.count));
    }

    #[test]
    fn a_value_that_is_not_what_was_set_is_wrong() {
        let mut store = Store::default();
        calls(&mut store, 3, &load(Call::Set)).expect("set");
        let got = calls(&mut store, 0, &load(Call::Get)).expect("got").expect("calls");
        assert!(got.count > 0 && got.wrong == 0, "{got:?}");
        store.spoilt = true;
        // In a long value the bytes between its numbers are checked in each 1024th.
        calls(&mut store, 3, &KeyValueLoad { len: 100, ..load(Call::Set) }).expect("set");
        let short = KeyValueLoad { len: 100, ..load(Call::Get) };
        let got = calls(&mut store, 0, &short).expect("got").expect("calls");
        assert_eq!(got.wrong, got.count);
        store.value.pop();
        let got = calls(&mut store, 0, &short).expect("got").expect("calls");
        assert_eq!(got.wrong, got.count, "one byte is missing");
    }
}
