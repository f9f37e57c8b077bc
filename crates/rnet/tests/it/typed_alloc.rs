//! In the steady state, a typed send and receive allocate no memory.

use crate::common;

use crate::common::allocator::ALLOCATIONS;
use common::{LONG, Net};
use rnet::Message;
use rnet::msgs::{Imu, JointState, LaserScan, timestamp_from_ns};

/// Allocations of a thousand messages, after warm-up messages that may allocate.
fn allocations<T: Message + PartialEq>(name: &str, message: &T) -> u64 {
    let net = Net::new(name);
    let node = net.node("a");
    let mut publisher = node.publisher::<T>("/typed").open().unwrap();
    let mut subscriber = node.subscriber::<T>("/typed").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    let mut exchange = || {
        publisher.send(message).unwrap();
        assert!(*subscriber.recv_timeout(LONG).unwrap() == *message);
    };
    (0..100).for_each(|_| exchange());
    let before = ALLOCATIONS.get();
    (0..1000).for_each(|_| exchange());
    ALLOCATIONS.get() - before
}

#[test]
fn allocation_counter_works() {
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
