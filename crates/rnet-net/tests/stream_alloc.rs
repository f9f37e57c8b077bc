//! A frame allocates once, for its count of holders, and a message not at all.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use rnet::{Lane, Meta};
use rnet_net::stream::{Accept, Limits, Stream};
use rnet_net::wire::{Data, Header, Item, Items};

thread_local! {
    /// Allocations of this thread.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it is; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of `dealloc`; the memory is of `System`.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the promises of `realloc`; the memory is of `System`.
        unsafe { System.realloc(at, layout, len) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Hands over what there is; returns frames and messages.
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
fn a_message_allocates_nothing() {
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
        // That of an acknowledgement has its bytes as well.
        assert!(allocations <= 2 * frames && frames <= 5000, "{allocations} in {frames} frames");
        assert!(allocations > 0, "the count does not count");
    }
}
