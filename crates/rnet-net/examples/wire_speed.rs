//! Measures the cost of a small message in the streams of a link, without a network: `push`, `poll`,
//! `accept`, `Items`.
//!
//! `cargo run --release -p rnet-net --example wire_speed`

use std::hint::black_box;
use std::time::Instant;

use rnet::{Lane, Meta};
use rnet_net::stream::{Accept, Limits, Stream};
use rnet_net::wire::{Data, Header, Item, Items};

const MESSAGES: u64 = 10_000_000;

/// Exchanges all frames; returns the bytes that crossed and the messages that were read.
fn exchange(from: &mut Stream, to: &mut Stream, clock: Instant) -> (u64, u64) {
    let now_ns = || clock.elapsed().as_nanos() as u64 + 1;
    let (mut bytes, mut messages) = (0, 0);
    while let Some(frame) = from.poll(now_ns()) {
        let (header, items) = Header::decode(&frame).expect("a frame");
        bytes += frame.len() as u64;
        if to.accept(now_ns(), &header) == Accept::New {
            for item in Items::new(items) {
                black_box(item.expect("an item"));
                messages += 1;
            }
        }
    }
    (bytes, messages)
}

fn main() {
    for (lane, len) in [(Lane::Urgent, 22), (Lane::Bulk, 22), (Lane::Bulk, 1024)] {
        let mut streams = [Stream::new(1, Limits::of(lane)), Stream::new(1, Limits::of(lane))];
        let [from, to] = &mut streams;
        let payload = vec![7; len];
        let (mut bytes, mut messages, mut seq) = (0, 0, 0);
        let clock = Instant::now();
        while messages < MESSAGES {
            let now_ns = clock.elapsed().as_nanos() as u64 + 1;
            for _ in 0..100 {
                let data = Data {
                    channel: 1,
                    seq,
                    sent_ns: now_ns + seq % 100 * 300,
                    meta: Meta::default(),
                    payload: &payload,
                    compressed: false,
                };
                if from.push(&Item::Data(black_box(data))).is_err() {
                    break;
                }
                seq += 1;
            }
            from.flush();
            let there = exchange(from, to, clock);
            exchange(to, from, clock);
            (bytes, messages) = (bytes + there.0, messages + there.1);
        }
        let ns = clock.elapsed().as_nanos() as f64 / messages as f64;
        let overhead = bytes as f64 / messages as f64 - len as f64;
        println!(
            "{lane:?}, {len} bytes: {ns:.1} ns and {overhead:.2} bytes of overhead per message"
        );
    }
}
