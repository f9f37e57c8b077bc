//! A frame allocates once, for its reference count, and a message does not allocate.

use crate::common::allocator::ALLOCATIONS;
use rnet::{Lane, Meta};
use rnet_net::stream::{Accept, Limits, Stream};
use rnet_net::wire::{Data, Header, Item, Items};

/// Exchanges all frames; returns frames and messages.
fn exchange(from: &mut Stream, to: &mut Stream, now_ns: u64) -> (u64, u64) {
    let (mut frames, mut messages) = (0, 0);
    while let Some(frame) = from.poll(now_ns) {
        frames += 1;
        let (header, items) = Header::decode(&frame).unwrap();
        if to.accept(now_ns, &header) == Accept::New {
            messages += Items::new(items).map(Result::unwrap).count() as u64;
        }
    }
    (frames, messages)
}

#[test]
fn message_does_not_allocate() {
    for lane in [Lane::Urgent, Lane::Bulk] {
        let mut streams = [Stream::new(1, Limits::of(lane)), Stream::new(1, Limits::of(lane))];
        let [from, to] = &mut streams;
        let (mut now_ns, mut seq) = (1, 0);
        let mut run = |rounds: u64| {
            let (mut frames, mut messages) = (0, 0);
            for _ in 0..rounds {
                for _ in 0..50 {
                    let item = Item::Data(Data {
                        channel: 1,
                        seq,
                        sent_ns: now_ns,
                        meta: Meta::default(),
                        payload: &[7; 22],
                        compressed: false,
                    });
                    seq += u64::from(from.push(&item).is_ok());
                }
                from.flush();
                now_ns += 1_000_000;
                let there = exchange(from, to, now_ns);
                let back = exchange(to, from, now_ns + 1000);
                (frames, messages) = (frames + there.0 + back.0, messages + there.1);
            }
            (frames, messages)
        };
        run(1000);
        let before = ALLOCATIONS.get();
        let (frames, messages) = run(1000);
        let allocations = ALLOCATIONS.get() - before;
        assert!(messages >= 45_000, "{messages} messages");
        // The one of an acknowledgement includes its bytes.
        assert!(allocations <= 2 * frames && frames <= 5000, "{allocations} in {frames} frames");
        assert!(allocations > 0, "the allocation counter does not count");
    }
}
