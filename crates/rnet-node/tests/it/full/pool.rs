//! The pool of large messages at its limit, fully used: by loans, by kept samples, by unread messages.

use std::time::Duration;

use rnet::limits::MAX_CHUNKS_PER_CHANNEL;
use rnet::{Error, Node, OnFull, Subscriber};

use super::{is_limit, is_out_of_memory, refused};
use crate::common::{LONG, Net};

/// Fills a chunk except its header.
const LEN: usize = 65_536;
/// Number of chunks that the pool holds.
const ROOM: usize = 4;
const POOL_LEN: u64 = ROOM as u64 * (LEN as u64 + 4096);

const CHOICES: [OnFull; 3] = [
    OnFull::Refuse,
    OnFull::Wait(Duration::from_millis(50)),
    OnFull::Detach { stall: Duration::from_millis(50) },
];

fn reader(node: &Node) -> Subscriber<[u8]> {
    node.subscriber("/t").reliable().open().unwrap()
}

/// Kept samples stay in use: no wait helps, so none of the policies waits.
#[test]
fn pool_full_of_kept_samples() {
    for choice in CHOICES {
        let net = Net::new("kept samples");
        let (a, b) = (net.node("a"), net.node("b"));
        let mut publisher =
            a.publisher::<[u8]>("/t").reliable(choice).pool_limit_bytes(POOL_LEN).open().unwrap();
        let (mut one, mut two) = (reader(&b), reader(&b));
        publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
        let mut kept = Vec::new();
        for i in 0..ROOM as u8 {
            publisher.send(&[i; LEN]).unwrap();
            // Each reader holds half of them.
            let (keeps, reads) =
                if i % 2 == 0 { (&mut one, &mut two) } else { (&mut two, &mut one) };
            kept.push(keeps.recv_timeout(LONG).unwrap().into_owned());
            assert_eq!(reads.recv_timeout(LONG).unwrap()[0], i);
            assert!(reads.try_recv().unwrap().is_none(), "it releases the sample that it read");
        }
        for sub in [&mut one, &mut two] {
            assert!(sub.try_recv().unwrap().is_none());
        }
        let error = refused(publisher.send(&[9; LEN]));
        is_out_of_memory(&error, "/t", &["pool_limit_bytes", "0 of its chunks are on loan and 4"]);
        assert!(matches!(error, Error::OutOfMemory { limit_bytes: POOL_LEN, .. }), "{error}");
        // Small messages need no chunk.
        publisher.send(b"small").unwrap();
        assert_eq!(&*one.recv_timeout(LONG).unwrap(), b"small");
        assert_eq!(&*two.recv_timeout(LONG).unwrap(), b"small");
        for (i, sample) in (0..).zip(&kept) {
            assert!(sample.iter().all(|byte| *byte == i), "the kept sample is unchanged");
        }
        kept.remove(2);
        publisher.send(&[9; LEN]).unwrap();
        assert_eq!(*one.recv_timeout(LONG).unwrap(), [9; LEN]);
        assert_eq!(*two.recv_timeout(LONG).unwrap(), [9; LEN]);
        assert_eq!(one.lost().total() + two.lost().total(), 0);
    }
}

/// Unread messages may still be read: here the policies differ.
#[test]
fn pool_full_of_unread_messages() {
    for choice in CHOICES {
        let net = Net::new("unread messages");
        let (a, b) = (net.node("a"), net.node("b"));
        let mut publisher =
            a.publisher::<[u8]>("/t").reliable(choice).pool_limit_bytes(POOL_LEN).open().unwrap();
        let mut subscriber = reader(&b);
        subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
        for i in 0..ROOM as u8 {
            publisher.send(&[i; LEN]).unwrap();
        }
        let fifth = publisher.send(&[4; LEN]);
        if let OnFull::Detach { .. } = choice {
            fifth.unwrap();
            let mut got = 0;
            let error = loop {
                match subscriber.recv_timeout(LONG) {
                    Ok(_) => got += 1,
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, Error::Detached { .. }), "{error}");
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            publisher.send(b"end").unwrap();
            assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"end");
            let lost = subscriber.lost();
            assert_eq!((got + lost.detached, lost.total()), (5, lost.detached));
            continue;
        }
        let error = refused(fifth);
        let named = matches!(&error, Error::Full { topic, reader_node } if &**topic == "/t" && &**reader_node == "/b");
        assert!(named, "{error}");
        for i in 0..ROOM as u8 {
            assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [i; LEN]);
        }
        // The last one is in use until the next receive.
        for i in 4..7 {
            publisher.send(&[i; LEN]).unwrap();
        }
        for i in 4..7 {
            assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [i; LEN]);
        }
        assert_eq!(subscriber.lost().total(), 0);
    }
}

/// A send that fails anyway evicts no earlier message.
#[test]
fn failed_send_evicts_no_message() {
    let net = Net::new("forgets nothing");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Refuse)
        .pool_limit_bytes(POOL_LEN)
        .transient_local(2)
        .large_depth(4)
        .open()
        .unwrap();
    let mut late = b.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let loans = [0, 1].map(|_| publisher.loan_owned(LEN).unwrap());
    publisher.send(&[1; LEN]).unwrap();
    publisher.send(&[2; LEN]).unwrap();
    // It needs three chunks, and the loans keep two of four: evicting both messages would not suffice.
    let error = refused(publisher.send(&[3; 3 * LEN]));
    is_out_of_memory(&error, "/t", &["2 of its chunks are on loan and 2"]);
    is_out_of_memory(&refused(publisher.send(&[3; 5 * LEN])), "/t", &["alone is larger"]);
    let mut later = b.subscriber::<[u8]>("/t").transient_local().open().unwrap();
    for subscriber in [&mut late, &mut later] {
        assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [1; LEN]);
        assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [2; LEN]);
        assert_eq!(subscriber.lost().total(), 0);
    }
    loans.into_iter().for_each(|loan| publisher.drop_loan(loan));
    drop((late, later));
    // Both messages are kept for late joiners, and there is capacity for only one of them beside it.
    let error = refused(publisher.send(&[3; 3 * LEN]));
    is_out_of_memory(&error, "/t", &["transient_local keeps the last 2 messages"]);
    publisher.send(b"small").unwrap();
    publisher.send(&[3; 3 * LEN]).unwrap();
}

/// Length of a chunk with its header.
const CHUNK_LEN: u64 = LEN as u64 + 4096;

fn joins_late(node: &Node) -> Subscriber<[u8]> {
    node.subscriber("/t").transient_local().keep_all().open().unwrap()
}

/// Messages promised to late joiners are not evicted for a message that does not fit beside them. No reader
/// can change that, so none of the policies waits.
#[test]
fn pool_full_of_messages_for_late_joiners() {
    for choice in CHOICES {
        let net = Net::new("promised messages");
        let (a, b) = (net.node("a"), net.node("b"));
        let mut publisher = a
            .publisher::<[u8]>("/t")
            .reliable(choice)
            .pool_limit_bytes(POOL_LEN)
            .transient_local(ROOM as u32)
            .open()
            .unwrap();
        let mut subscriber = reader(&b);
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        for i in 0..ROOM as u8 {
            publisher.send(&[i; LEN]).unwrap();
        }
        // The reader still needs them in the first round, and no longer in the second.
        for read in [false, true] {
            if read {
                (0..ROOM)
                    .for_each(|_| assert_eq!(subscriber.recv_timeout(LONG).unwrap().len(), LEN));
                assert!(subscriber.try_recv().unwrap().is_none());
            }
            for error in
                [refused(publisher.send(&[9; LEN])), refused(publisher.loan(LEN).map(drop))]
            {
                let words =
                    ["transient_local keeps the last 4 messages", "raise", "pool_limit_bytes"];
                is_out_of_memory(&error, "/t", &words);
                let named = matches!(error, Error::OutOfMemory { needed_bytes, limit_bytes: POOL_LEN, .. }
                    if needed_bytes == (ROOM as u64 + 1) * CHUNK_LEN);
                assert!(named, "{error}");
            }
        }
        let mut late = joins_late(&b);
        for i in 0..ROOM as u8 {
            assert_eq!(*late.recv_timeout(LONG).unwrap(), [i; LEN]);
        }
        assert!(late.try_recv().unwrap().is_none());
        // The promise covers the newest messages of any length: a small one releases the oldest.
        publisher.send(b"small").unwrap();
        publisher.send(&[9; LEN]).unwrap();
        let mut later = joins_late(&b);
        for i in [2, 3] {
            assert_eq!(*later.recv_timeout(LONG).unwrap(), [i; LEN]);
        }
        assert_eq!(&*later.recv_timeout(LONG).unwrap(), b"small");
        assert_eq!(*later.recv_timeout(LONG).unwrap(), [9; LEN]);
        let lost = [subscriber, late, later].map(|subscriber| subscriber.lost().total());
        assert_eq!(lost, [0; 3]);
    }
}

/// The length that the error names is always enough, including what readers and loans hold.
#[test]
fn pool_length_named_by_the_error_is_enough() {
    let net = Net::new("named bytes");
    let (a, b) = (net.node("a"), net.node("b"));
    let needed = |result: rnet::Result<()>| match result {
        Err(Error::OutOfMemory { needed_bytes, .. }) => needed_bytes,
        other => panic!("{other:?}"),
    };
    let open = |pool_len| {
        let publisher = a.publisher::<[u8]>("/t").transient_local(ROOM as u32);
        publisher.pool_limit_bytes(pool_len).open().unwrap()
    };
    let mut publisher = open(POOL_LEN);
    let failed = (0..=ROOM).map(|_| publisher.send(&[1; LEN])).find(Result::is_err);
    let enough = needed(failed.unwrap());
    drop(publisher);
    let mut publisher = open(enough);
    (0..10 * ROOM as u8).for_each(|i| publisher.send(&[i; LEN]).unwrap());
    let mut late = joins_late(&b);
    for i in 9 * ROOM as u8..10 * ROOM as u8 {
        assert_eq!(*late.recv_timeout(LONG).unwrap(), [i; LEN]);
    }
    let loan = publisher.loan_owned(LEN).unwrap();
    assert_eq!(needed(publisher.send(&[9; LEN])), enough + CHUNK_LEN);
    publisher.drop_loan(loan);
    publisher.send(&[9; LEN]).unwrap();
}

#[test]
fn history_that_exceeds_the_maximum_number_of_chunks() {
    let net = Net::new("many promised");
    let (a, b) = (net.node("a"), net.node("b"));
    let depth = MAX_CHUNKS_PER_CHANNEL as u32;
    let mut publisher = a.publisher::<[u8]>("/t").transient_local(depth).open().unwrap();
    (0..depth).for_each(|i| publisher.send(&[i as u8; 5000]).unwrap());
    let words = ["large messages of /t", "transient_local keeps the last 1024", "keep fewer"];
    is_limit(&refused(publisher.send(&[1; 5000])), &words);
    let mut late = joins_late(&b);
    for i in 0..depth {
        assert_eq!(*late.recv_timeout(LONG).unwrap(), [i as u8; 5000]);
    }
}

/// The length of plain messages is fixed by their type: a promise that exceeds the pool is refused before the
/// first message.
#[test]
fn history_of_plain_messages_that_exceeds_the_pool_is_refused() {
    #[derive(Clone, Copy, rnet::Plain)]
    #[repr(C)]
    struct Grid {
        cells: [u8; LEN],
    }
    let net = Net::new("plain promise");
    let node = net.node("a");
    let open = |depth, len| {
        node.publisher::<Grid>("/grid").transient_local(depth).pool_limit_bytes(len).open()
    };
    let is_bad = |error: Error, words: &[&str]| {
        let text = error.to_string();
        assert!(matches!(error, Error::BadQos { .. }), "{text}");
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let needed = CHUNK_LEN * (ROOM as u64 + 1);
    let error = refused(open(ROOM as u32, needed - 1));
    is_bad(
        error,
        &["/grid", "keeps 4 messages", &needed.to_string(), "pool_limit_bytes", "raise it"],
    );
    let mut publisher = open(ROOM as u32, needed).unwrap();
    (0..10).for_each(|i| publisher.send(&Grid { cells: [i; LEN] }).unwrap());
    let most = MAX_CHUNKS_PER_CHANNEL as u32 - 1;
    let error = refused(open(most + 1, u64::MAX));
    is_bad(error, &["/grid", "keeps 1024 messages", "1023", "keep fewer"]);
    drop(open(most, u64::MAX).unwrap());
}

/// The chunk is allocated, but the log has no space for its reference: the chunk is released.
#[test]
fn large_message_without_log_space_releases_its_chunk() {
    let net = Net::new("no room in the log");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Refuse)
        .pool_limit_bytes(POOL_LEN)
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .open()
        .unwrap();
    let mut subscriber = reader(&b);
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut small = 0;
    let full = |error: &Error| assert!(matches!(error, Error::Full { .. }), "{error}");
    // The shortest last, so that not even a chunk's reference fits any more.
    for len in [1000, 1] {
        loop {
            match publisher.send(&vec![1; len]) {
                Ok(()) => small += 1,
                Err(error) => break full(&error),
            }
        }
    }
    // More often than the pool has chunks.
    for _ in 0..3 * ROOM {
        full(&refused(publisher.send(&[2; LEN])));
    }
    let loans: Vec<_> = (0..ROOM).map(|_| publisher.loan_owned(LEN).unwrap()).collect();
    loans.into_iter().for_each(|loan| publisher.drop_loan(loan));
    for _ in 0..small {
        assert_eq!(subscriber.recv_timeout(LONG).unwrap()[0], 1);
    }
    assert!(subscriber.try_recv().unwrap().is_none());
    for i in 0..ROOM as u8 {
        publisher.send(&[i; LEN]).unwrap();
    }
    for i in 0..ROOM as u8 {
        assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [i; LEN]);
    }
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn maximum_number_of_chunks() {
    let net = Net::new("chunks");
    let node = net.node("a");
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut loans: Vec<_> =
        (0..MAX_CHUNKS_PER_CHANNEL).map(|_| publisher.loan_owned(5000).unwrap()).collect();
    let words = ["large messages of /t in use", "return loans"];
    is_limit(&refused(publisher.loan_owned(5000)), &words);
    is_limit(&refused(publisher.send(&[1; 5000])), &words);
    publisher.send(b"small").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"small");
    // A sent chunk also counts as in use until it is read.
    let loan = loans.pop().unwrap();
    publisher.send_loan(loan).map_err(|(_, error)| error).unwrap();
    assert_eq!(subscriber.recv_timeout(LONG).unwrap().len(), 5000);
    assert!(subscriber.try_recv().unwrap().is_none());
    publisher.send(&[1; 5000]).unwrap();
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [1; 5000]);
    loans.into_iter().for_each(|loan| publisher.drop_loan(loan));
}
