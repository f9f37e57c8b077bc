//! What a send does while another thread of its node stands still.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rnet_core::{Durability, NodeName, OnFull, PublisherQos, Reliability, SubscriberQos, TypeDesc};
use rnet_ring::admission::RequestId;
use rnet_ring::binding::HistoryRequest;

use super::*;
use crate::channel::pool::LogView;
use crate::channel::subscription::{
    Binding, BoundPage, LinkRole, PeerSubscription, Slot, SubscriptionFile, SubscriptionMeta,
};
use crate::domain::directory::{DomainConfig, DomainDir};
use crate::os::random::random_u64;

/// How long a send may take that nothing holds up, on a machine that does much else.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

pub(super) struct TestDomain {
    base: PathBuf,
    pub(super) node: Arc<OwnNode>,
    id: u64,
}

impl TestDomain {
    pub(super) fn new() -> TestDomain {
        let base = std::env::temp_dir().join(format!("rnet-writer-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let name = NodeName::new("both").unwrap();
        let node = Arc::new(OwnNode::create(&dir, &name, "rust", "0").unwrap());
        let id = node.next_endpoint().unwrap();
        TestDomain { base, node, id }
    }

    pub(super) fn writer(&self, qos: PublisherQos) -> Writer {
        let (topic, proxy) = ("/t".to_owned(), None);
        let meta = PublisherMeta { topic, type_desc: TypeDesc::Raw, qos, proxy, will: false };
        Writer::create(&self.node, self.node.folder().join("p"), self.id, &meta).unwrap()
    }

    /// A reader that has bound a page, with what it asks of the publisher.
    fn bind(&self, reliable: bool, history: u64) -> (SubscriptionFile, Arc<Slot>, BoundPage) {
        self.bind_as(reliable, history, None)
    }

    fn bind_as(
        &self,
        reliable: bool,
        history: u64,
        link: Option<LinkRole>,
    ) -> (SubscriptionFile, Arc<Slot>, BoundPage) {
        let meta = SubscriptionMeta {
            topic: "/t".to_owned(),
            type_desc: TypeDesc::Raw,
            qos: SubscriberQos::default(),
            proxy: None,
            link,
        };
        let own = self.node.next_endpoint().unwrap();
        let path = self.node.folder().join(format!("s{own:x}"));
        let file = SubscriptionFile::create(self.node.clone(), path.clone(), own, &meta).unwrap();
        let binding = Binding { publisher: self.id, reliable, history, bell: 0 };
        let slot = file.bind("/t", binding).unwrap();
        let found = PeerSubscription::open(&path, own).unwrap().binding_to(self.id).unwrap();
        (file, slot, found.unwrap())
    }

    /// A reader that is bound and admitted, and reads nothing.
    pub(super) fn admit(
        &self,
        reader_table: &ReaderTable,
        reliable: bool,
    ) -> (SubscriptionFile, Arc<Slot>) {
        self.admit_as(reader_table, reliable, None)
    }

    /// The same, of one that does something for a link between hosts.
    pub(super) fn admit_as(
        &self,
        reader_table: &ReaderTable,
        reliable: bool,
        link: Option<LinkRole>,
    ) -> (SubscriptionFile, Arc<Slot>) {
        let (file, slot, bound) = self.bind_as(reliable, 0, link);
        reader_table.admit(file.id(), "/both", "/t", bound, self.node.bells().clone()).unwrap();
        (file, slot)
    }
}

impl Drop for TestDomain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

/// A thread that sends what it is told to, each with its outcome.
fn sender(mut writer: Writer) -> (Sender<usize>, Receiver<Result<(), Error>>, JoinHandle<Writer>) {
    let (ask, asked) = channel::<usize>();
    let (done, outcome) = channel();
    let thread = std::thread::spawn(move || {
        for len in asked {
            done.send(writer.send(&vec![7; len])).unwrap();
        }
        writer
    });
    (ask, outcome, thread)
}

/// The control thread is stopped with the list of readers in its hands, at the worst moment: it has
/// just changed the list. Small and large messages are sent all the same, in chunks that were used
/// before, and a reliable reader that stands still holds them no longer than it may.
#[test]
fn a_control_thread_that_stands_still_stops_no_send() {
    let domain = TestDomain::new();
    let wait = Duration::from_millis(20);
    let writer = domain.writer(PublisherQos {
        reliability: Reliability::Reliable,
        on_full: OnFull::Wait(wait),
        log_len_bytes: rnet_core::MIN_LOG_LEN_BYTES,
        large_depth: 2,
        ..PublisherQos::default()
    });
    let reader_table = writer.reader_table().clone();
    let (_best_effort, _) = domain.admit(&reader_table, false);
    let (reliable, _) = domain.admit(&reader_table, true);
    let (ask, outcome, thread) = sender(writer);
    let send = |len: usize| {
        ask.send(len).unwrap();
        outcome.recv_timeout(WAIT_LIMIT).expect("the send waits for a thread that stands still")
    };
    assert!(reader_table.remove(reliable.id()));
    let stopped = reader_table.list();
    for _ in 0..64 {
        send(100).unwrap();
        send(100_000).unwrap();
    }
    drop(stopped);
    let (_stands_still, _) = domain.admit(&reader_table, true);
    let stopped = reader_table.list();
    let full = (0..1000).find_map(|_| send(1000).err());
    assert!(matches!(full, Some(Error::Full { .. })), "{full:?}");
    drop(stopped);
    drop(ask);
    // Its readers first: it would wait for the reliable one.
    reader_table.remove_dead_node(domain.node.incarnation());
    let writer = thread.join().unwrap();
    assert!(writer.pool.len() <= 4, "{} chunks: none was used again", writer.pool.len());
}

/// A reader that the writer's copy of the list does not have yet pins a message of the past: its
/// chunk is not used again.
#[test]
fn a_pin_of_a_reader_just_admitted_is_seen() {
    let domain = TestDomain::new();
    let mut writer = domain.writer(PublisherQos { large_depth: 1, ..PublisherQos::default() });
    let reader_table = writer.reader_table().clone();
    writer.send(&[1; 100_000]).unwrap();
    let acquire = |writer: &mut Writer| {
        // The writer has looked at its readers; what changes from here on it has not seen.
        let mut view = LogView {
            head: writer.log.head(),
            next_seq: writer.log.seq(),
            seen_epoch: &mut writer.seen_epoch,
            readers: &mut writer.readers,
            reader_table: &writer.reader_table,
        };
        let got = writer.pool.acquire(100_000, &mut view).unwrap();
        writer.pool.give_back(got);
        got
    };
    let (_file, slot) = domain.admit(&reader_table, false);
    assert!(writer.readers.is_empty());
    let pin = &slot.page().pins[0];
    pin.store(rnet_ring::pins::pin_word(0), Ordering::SeqCst);
    assert_eq!(acquire(&mut writer), 1, "the chunk is held");
    assert_eq!(writer.readers.len(), 1);
    pin.store(0, Ordering::SeqCst);
    writer.send(&[1; 100_000]).unwrap();
    assert_eq!(acquire(&mut writer), 0, "nobody holds it any more");
}

/// A control thread that was stopped while it looked for the place of a late joiner reads on where it was:
/// the memory there does not go meanwhile, or a full file system would end the publisher.
/// Chunks, and their bytes, after messages of 5, 10, … 60 KiB.
fn pool_after_growing_messages(pool_limit_bytes: u64) -> (usize, u64) {
    let domain = TestDomain::new();
    let mut writer = domain.writer(PublisherQos { pool_limit_bytes, ..Default::default() });
    for len in (5 << 10..64 << 10).step_by(5 << 10) {
        writer.send(&vec![1; len]).unwrap();
    }
    (writer.pool.len(), writer.pool.bytes())
}

#[test]
fn messages_that_grow_to_64_kib_share_a_chunk() {
    assert_eq!(pool_after_growing_messages(1 << 30), (1, 68 << 10));
    // The limit does not allow one such chunk for each message that is kept: each takes what it needs.
    let (chunks, bytes) = pool_after_growing_messages(200 << 10);
    assert!(chunks > 1 && bytes <= 200 << 10, "{chunks} chunks, {bytes} bytes");
}

#[test]
fn no_memory_is_given_back_under_an_admission() {
    use rnet_ring::Gate;

    let domain = TestDomain::new();
    let writer = domain.writer(PublisherQos::default());
    let log_bytes = || writer.map.control().flow.log_bytes.load(Ordering::Relaxed);
    let least = log_bytes();
    let first = (least / writer.map.log().block_len_bytes()) as u32;
    let mut gate = LogGate {
        readers: &writer.readers,
        reader_table: &writer.reader_table,
        map: &writer.map,
        path: &writer.path,
        history: 0,
    };
    assert!(gate.back_with_memory(first, 2));
    let grown = log_bytes();
    let (one, two) = (writer.reader_table.scan(), writer.reader_table.scan());
    assert!(!gate.release_memory(first, 2));
    drop(one);
    assert!(!gate.release_memory(first, 2));
    assert_eq!(log_bytes(), grown);
    drop(two);
    assert!(gate.release_memory(first, 2));
    assert_eq!(log_bytes(), least);
}

/// The control thread is stopped while it admits a reader with a past, at the worst moment: it has
/// found from where on the reader reads, and has not said so. The writer, which has seen the reader,
/// gives nothing of that past up: neither of the log, also where it would get shorter, nor a chunk.
#[test]
fn the_past_is_held_while_a_reader_is_admitted() {
    const HISTORY: u64 = 4;
    let domain = TestDomain::new();
    for len in [1000, 100_000] {
        let mut writer = domain.writer(PublisherQos {
            reliability: Reliability::Reliable,
            durability: Durability::TransientLocal { depth: HISTORY as u32 },
            on_full: OnFull::Refuse,
            log_len_bytes: rnet_core::MIN_LOG_LEN_BYTES,
            large_depth: 1,
            pool_limit_bytes: 4 << 20,
            ..PublisherQos::default()
        });
        let reader_table = writer.reader_table().clone();
        let message = vec![7; len];
        let mut send = || writer.send(&message);
        for _ in 0..10 {
            send().unwrap();
        }
        let (file, _slot, bound) = domain.bind(true, HISTORY);
        let ask = RequestId { subscription: file.id(), generation: bound.binding.generation };
        let (lowest, lowest_seq) = reader_table.starting_point(0, HistoryRequest::Newest(HISTORY));
        assert_eq!(lowest_seq, 10 - HISTORY);
        // What is sent before the writer has seen it is no more of the past that it gets.
        send().unwrap();
        let bells = domain.node.bells().clone();
        let reader = reader_table.enlist("/both", "/t", bound, bells, (ask, lowest)).unwrap();
        let (start, start_seq) =
            reader_table.starting_point(lowest, HistoryRequest::Newest(HISTORY));
        assert_eq!(start_seq, 11 - HISTORY);
        let full = (0..100_000).find_map(|_| send().err());
        assert!(matches!(full, Some(Error::Full { .. })), "{len}: {full:?}");
        reader_table.answer(ask, &reader, (start, start_seq));
        assert!(writer.log.head() <= start, "{len}: the log's head is {}", writer.log.head());
        let chunk = writer.pool.oldest_position();
        assert!(chunk.is_none_or(|oldest| oldest <= start), "{len}: {chunk:?} after {start}");
        assert_eq!((reader.needed(), reader_table.len()), (start, 1));
        reader_table.remove_dead_node(domain.node.incarnation());
    }
}

/// Deadlines and leases are about what comes, whenever it was sent on its host.
#[test]
fn a_forwarded_message_is_a_sign_of_life_when_it_comes() {
    let domain = TestDomain::new();
    let mut writer = domain.writer(PublisherQos::default());
    for len in [10, 100_000] {
        let before_ns = crate::os::clock::now_ns();
        writer.send_with(&vec![7; len], &rnet_core::Meta::default(), Some(1)).unwrap();
        let newest = writer.map.newest().unwrap();
        // Two clocks of this host may differ by less than that.
        assert!(newest.sent_ns + 10_000 > before_ns, "{newest:?}, before {before_ns}");
        assert_eq!(newest.sent, writer.seq());
        assert!(writer.map.last_alive_ns(u64::MAX) >= newest.sent_ns);
    }
    writer.send(&[7]).unwrap();
    let (sent, newest) = (writer.map.log().sent_at(0, 2).unwrap(), writer.map.newest().unwrap());
    assert_eq!((newest.sent, newest.sent_ns), (3, sent));
}

/// A writer whose log is full of what two readers have not read.
fn held_back(domain: &TestDomain, on_full: OnFull) -> (Writer, [(SubscriptionFile, Arc<Slot>); 2]) {
    let mut writer = domain.writer(PublisherQos {
        reliability: Reliability::Reliable,
        on_full,
        log_len_bytes: rnet_core::MIN_LOG_LEN_BYTES,
        ..PublisherQos::default()
    });
    let readers = [(); 2].map(|()| domain.admit(writer.reader_table(), true));
    while writer.try_send(MESSAGE) {}
    writer.set_interruptible(true);
    (writer, readers)
}

fn read_to_end(readers: &[(SubscriptionFile, Arc<Slot>); 2], writer: &Writer) {
    readers.iter().for_each(|reader| read_to(reader, writer.log.tail()));
}

fn read_to(reader: &(SubscriptionFile, Arc<Slot>), position: u64) {
    reader.1.page().cursor.cursor.store(position, Ordering::Release);
}

const MESSAGE: &[u8] = b"12345678";

/// A signal may come while the writer is awake, and no sleep then ends for it: who sends has to look. The limit is
/// that of the message, however often it does.
#[test]
fn an_interruptible_wait_ends_by_itself_and_goes_on_with_the_next_attempt() {
    let domain = TestDomain::new();
    let (mut writer, readers) = held_back(&domain, OnFull::Wait(Duration::from_secs(3600)));
    let full = |writer: &Writer| writer.map.control().flow.full.load(Ordering::Relaxed);
    let was_full = full(&writer);
    assert!(writer.interrupted_wait().is_none());
    for _ in 0..2 {
        assert_eq!(writer.send(MESSAGE), Err(Error::Interrupted));
        let wait = writer.interrupted_wait();
        assert!(wait.is_some());
        writer.resume_wait(wait);
    }
    assert_eq!(full(&writer), was_full + 1, "it is one wait");
    // One that has begun long ago is over, also if another thread's message was sent meanwhile, and does not go on with
    // the next message.
    let long_ago = InterruptedWait { began_ns: 1 };
    writer.qos.on_full = OnFull::Wait(Duration::from_secs(4));
    read_to_end(&readers, &writer);
    while writer.try_send(MESSAGE) {}
    let sent = writer.seq();
    writer.resume_wait(Some(long_ago));
    let refused = writer.send(MESSAGE);
    assert!(matches!(refused, Err(Error::Full { .. })), "{refused:?}");
    assert!(writer.interrupted_wait().is_none());
    let was_full = full(&writer);
    // Nor does one go on that is not resumed.
    assert_eq!(writer.send(MESSAGE), Err(Error::Interrupted));
    assert_eq!(writer.send(MESSAGE), Err(Error::Interrupted));
    assert_eq!((writer.seq(), full(&writer)), (sent, was_full + 2));
    // Nor one after a message that was sent.
    writer.resume_wait(Some(long_ago));
    read_to_end(&readers, &writer);
    writer.send(MESSAGE).unwrap();
    assert!(writer.interrupted_wait().is_none());
    while writer.try_send(MESSAGE) {}
    assert_eq!(writer.send(MESSAGE), Err(Error::Interrupted));
    writer.reader_table().remove_dead_node(domain.node.incarnation());
}

const STALL: Duration = Duration::from_secs(60);

/// As if the attempt that was just made had lasted for so much longer, and had ended so long ago.
fn date_back(writer: &mut Writer, lasted: Duration, ended: Duration) {
    let (lasted_ns, ended_ns) = (lasted.as_nanos() as u64, ended.as_nanos() as u64);
    let tracker = writer.pending_wait.stall_tracker.as_mut().unwrap();
    tracker.since_ns -= lasted_ns + ended_ns;
    tracker.observed_ns -= ended_ns;
    for reader in &writer.readers {
        reader.progress.set_since(tracker.since_ns);
    }
}

/// Two that stand still together are let go together, though the wait is interrupted; threads that take turns with
/// the publisher give them no further time.
#[test]
fn readers_that_stand_still_are_let_go_after_one_stall_of_all_attempts() {
    let domain = TestDomain::new();
    let (mut writer, readers) = held_back(&domain, OnFull::Detach { stall: STALL });
    let reader_table = writer.reader_table().clone();
    // Each holds the writer back at a place of its own.
    let tail = writer.log.tail();
    read_to(&readers[1], tail / 2);
    // The first reads at last, and what the other stood still before that message is not counted for the next.
    assert_eq!(writer.send(MESSAGE), Err(Error::Interrupted));
    date_back(&mut writer, STALL, Duration::ZERO);
    read_to(&readers[0], tail);
    while writer.try_send(MESSAGE) {}
    assert_eq!(writer.send(MESSAGE), Err(Error::Interrupted));
    date_back(&mut writer, STALL, Duration::ZERO);
    // Of another thread, with a message of its own.
    writer.resume_wait(None);
    assert_eq!(writer.send(MESSAGE), Ok(()));
    assert_eq!(reader_table.readers().len(), 1);
    while !reader_table.readers().is_empty() {
        assert_eq!(writer.send(MESSAGE), Ok(()));
    }
    reader_table.remove_dead_node(domain.node.incarnation());
}

/// A message that was given up, and another one much later.
#[test]
fn readers_are_not_let_go_for_a_time_in_which_nobody_waited() {
    let domain = TestDomain::new();
    let (mut writer, _readers) = held_back(&domain, OnFull::Detach { stall: STALL });
    assert_eq!(writer.send(MESSAGE), Err(Error::Interrupted));
    date_back(&mut writer, Duration::ZERO, 2 * STALL);
    assert_eq!(writer.send(MESSAGE), Err(Error::Interrupted));
    // The time in which it did wait counts.
    date_back(&mut writer, STALL, Duration::ZERO);
    assert_eq!(writer.send(MESSAGE), Ok(()));
    assert!(writer.reader_table().readers().is_empty());
}
