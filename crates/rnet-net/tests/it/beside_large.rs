//! A large message and a small topic share a lane, on a cable that loses frames.

use crate::common;
use crate::hosts;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::LONG;
use hosts::Hosts;
use rnet::{Node, OnFull};

/// In bytes: seven times the unacknowledged data that a stream keeps, so it takes at least as many round
/// trips.
const LARGE_LEN: usize = 30 << 20;
const PERIOD: Duration = Duration::from_millis(10);
/// One way. Frames in flight are lost when the connection ends.
const DELAY: Duration = Duration::from_millis(20);

/// Ends the talker, also if the test has failed.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends numbers at 100 Hz.
fn talk(node: &Node, sent: &AtomicU64, ends: &AtomicBool) {
    let mut publisher =
        node.publisher::<[u8]>("/small").reliable(OnFull::Wait(LONG)).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for number in 0_u64.. {
        if ends.load(Ordering::Relaxed) {
            return;
        }
        publisher.send(&number.to_le_bytes()).unwrap();
        sent.store(number + 1, Ordering::SeqCst);
        std::thread::sleep(PERIOD); // sleep: the rate at which it sends
    }
}

#[test]
fn small_messages_flow_beside_a_large_one_that_loses_fragments() {
    let hosts = Hosts::patient("beside a large one", 2);
    let (camera, viewer) = (hosts.node(0, "camera"), hosts.node(1, "viewer"));
    let mut images = camera.publisher::<[u8]>("/image").open().unwrap();
    let mut seen = viewer.subscriber::<[u8]>("/image").keep_all().open().unwrap();
    let mut subscriber = viewer.subscriber::<[u8]>("/small").reliable().open().unwrap();
    images.wait_for_subscribers_timeout(1, LONG).unwrap();
    hosts.net().set_delay(DELAY);
    let (sent, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _ends = StopOnDrop(&ends);
        scope.spawn(|| talk(&camera, &sent, &ends));
        let mut next = 0;
        let mut hear = || {
            let sample = subscriber.recv_timeout(LONG).unwrap();
            let number = u64::from_le_bytes(sample[..8].try_into().unwrap());
            assert_eq!(number, next, "in order, and none is missing");
            next += 1;
            number
        };
        hear();
        let image: Vec<u8> = (0..LARGE_LEN).map(|at| (at * 7 / 3) as u8).collect();
        images.send(&image).unwrap();
        let behind = sent.load(Ordering::SeqCst);
        // Small messages that were sent after the large one and arrived before it.
        let mut overtook = 0;
        let whole = loop {
            overtook += u64::from(hear() >= behind);
            // How far it has come depends on the network: part of it is in flight.
            if [2, 4, 6].contains(&overtook) {
                hosts.reset(0, 1);
            }
            if let Some(sample) = seen.try_recv().unwrap() {
                break *sample == image[..];
            }
            assert_eq!(seen.lost().total(), 0, "the connections end, the session does not");
        };
        assert!(whole, "the large message is corrupt");
        println!("{overtook} small ones overtook it");
        assert!(overtook >= 1, "{overtook} small ones overtook it");
        assert!(seen.try_recv().unwrap().is_none() && seen.lost().total() == 0);
        (0..3).for_each(|_| assert!(hear() > 0));
    });
    assert_eq!(subscriber.lost().total(), 0);
}
