//! In the steady state a typed send and receive allocate nothing.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{LONG, Net};
use rnet::Message;
use rnet::msgs::{Imu, JointState, LaserScan, timestamp_from_ns};

thread_local! {
    /// Allocations of this thread: the node's own threads, and other tests, are not asked.
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

/// Allocations of a thousand messages, after some that may allocate.
fn allocations<T: Message + PartialEq>(name: &str, message: &T) -> u64 {
    let net = Net::new(name);
    let node = net.node("a");
    let mut publisher = node.publisher::<T>("/typed").unwrap();
    let mut subscriber = node.subscriber::<T>("/typed").unwrap();
    publisher.wait_for_subscribers(1, LONG).unwrap();
    subscriber.wait_for_publishers(1, LONG).unwrap();
    let mut exchange = || {
        publisher.send(message).unwrap();
        assert!(*subscriber.recv(LONG).unwrap() == *message);
    };
    (0..100).for_each(|_| exchange());
    let before = ALLOCATIONS.get();
    (0..1000).for_each(|_| exchange());
    ALLOCATIONS.get() - before
}

#[test]
fn the_count_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ALLOCATIONS.get() - before, 1);
}

#[test]
fn joint_states_with_names() {
    let message = JointState {
        timestamp: Some(timestamp_from_ns(1)),
        names: (0..7).map(|i| format!("a_joint_{i}")).collect(),
        position: vec![0.5; 7],
        velocity: vec![0.5; 7],
        ..Default::default()
    };
    assert_eq!(allocations("alloc_joints", &message), 0);
}

#[test]
fn lists_of_numbers() {
    let message = LaserScan { ranges: vec![0.5; 300], ..Default::default() };
    assert_eq!(allocations("alloc_scan", &message), 0);
}

#[test]
fn messages_in_a_message() {
    let message = Imu {
        timestamp: Some(timestamp_from_ns(1)),
        frame_id: "imu_link".into(),
        orientation: Some(Default::default()),
        angular_velocity: Some(Default::default()),
        ..Default::default()
    };
    assert_eq!(allocations("alloc_imu", &message), 0);
}
