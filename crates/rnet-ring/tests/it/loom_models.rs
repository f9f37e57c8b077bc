//! loom models of the ring: every interleaving of small programs.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p rnet-ring --release --test it`.

use loom::sync::{Arc, Mutex, Notify};
use loom::thread;
use rnet_ring::admission::{AdmissionState, Grant, RequestId};
use rnet_ring::binding::BindRequest;
use rnet_ring::epoch::Epoch;
use rnet_ring::layout::{Admission, BindLine, ChunkHeader, FlowLine, LogControl};
use rnet_ring::record::ChunkRef;
use rnet_ring::sync::{AtomicU32, AtomicU64, Barrier, FullFences, Ordering};
use rnet_ring::wake::Tickets;
use rnet_ring::{
    BLOCK_IDLE_NS, Gate, Log, LogReader, LogWriter, NoReliableReaders, Pull, RecordKind, admission,
    backpressure, binding, pins, wake,
};

struct Memory {
    control: LogControl,
    words: Vec<AtomicU64>,
}

impl Memory {
    fn new() -> Arc<Self> {
        Arc::new(Memory {
            control: LogControl::default(),
            words: (0..8).map(|_| AtomicU64::new(0)).collect(),
        })
    }
    fn log(&self) -> Log<'_> {
        Log::new(&self.control, &self.words).unwrap()
    }
}

/// `preemptions` bounds the search if a full one takes too long.
fn model(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(f);
}

/// One message of 8 bytes: 24 bytes of a 64-byte ring, so that the third one laps.
fn push(writer: &mut LogWriter, log: Log<'_>, value: u64, gate: &mut impl Gate) -> bool {
    writer.push(log, RecordKind::Inline, value, &value.to_le_bytes(), 8, gate).is_ok()
}

/// Takes all available records; each record's content must be its sequence number.
fn take(reader: &mut LogReader, log: Log<'_>) -> u64 {
    let mut buf = [0u64; 8];
    let mut got = 0;
    loop {
        match reader.pull(log, &mut buf) {
            Pull::Empty | Pull::Lapped => return got,
            Pull::Corrupt(what) => panic!("{what}"),
            Pull::Batch => {
                while let Some(record) = reader.next(&buf).unwrap() {
                    assert_eq!(record.time_ns, record.seq, "torn header");
                    assert_eq!(buf[record.offset / 8], record.seq, "torn payload");
                    got += 1;
                }
            }
        }
    }
}

struct Readers {
    epoch: Epoch,
    starts: Mutex<Vec<Arc<AtomicU64>>>,
}
struct Cursors(Vec<Arc<AtomicU64>>);
impl Gate for Cursors {
    fn lowest_needed(&mut self) -> u64 {
        self.0.iter().map(|c| c.load(Ordering::Acquire)).min().unwrap_or(u64::MAX)
    }
}

#[test]
fn a_read_message_is_whole() {
    model(4, || {
        let memory = Memory::new();
        let theirs = memory.clone();
        let reader = thread::spawn(move || {
            let mut reader = LogReader::new(0);
            reader.expect_from(0);
            let got = take(&mut reader, theirs.log());
            (reader, got)
        });
        let mut writer = LogWriter::new(memory.log());
        for value in 0..2 {
            assert!(push(&mut writer, memory.log(), value, &mut NoReliableReaders));
        }
        let (mut reader, got) = reader.join().unwrap();
        assert_eq!(got + take(&mut reader, memory.log()), 2);
    });
}

#[test]
fn overrun_is_detected_and_counted() {
    model(3, || {
        let memory = Memory::new();
        let theirs = memory.clone();
        let reader = thread::spawn(move || {
            let mut reader = LogReader::new(0);
            reader.expect_from(0);
            let got = take(&mut reader, theirs.log());
            (reader, got)
        });
        let mut writer = LogWriter::new(memory.log());
        for value in 0..4 {
            assert!(push(&mut writer, memory.log(), value, &mut NoReliableReaders));
        }
        let (mut reader, mut got) = reader.join().unwrap();
        // A lap ends one `take`; the writer has finished, so a second one reaches the end.
        got += take(&mut reader, memory.log());
        got += take(&mut reader, memory.log());
        assert_eq!(got + reader.take_lost(), 4, "received or counted");
    });
}

/// The gate of a growing log: unlimited memory.
struct TestGate;
impl Gate for TestGate {
    fn lowest_needed(&mut self) -> u64 {
        u64::MAX
    }
    fn back_with_memory(&mut self, _first: u32, _count: u32) -> bool {
        true
    }
    fn release_memory(&mut self, _first: u32, _count: u32) -> bool {
        true
    }
}

/// A log of two blocks grows to three and four while it is read, and shrinks to two again.
#[test]
fn a_read_message_is_whole_while_the_log_grows_and_shrinks() {
    fn log_of(memory: &Memory) -> Log<'_> {
        Log::with_blocks(&memory.control, &memory.words, 8).unwrap()
    }
    // One message of 8 bytes takes 24 of the 64 bytes of a block; the last messages come seconds later.
    fn push(writer: &mut LogWriter, log: Log<'_>, value: u64) {
        let time_ns = if value < 8 { value } else { value * 10 * BLOCK_IDLE_NS };
        let sent =
            writer.push(log, RecordKind::Inline, time_ns, &value.to_le_bytes(), 8, &mut TestGate);
        assert!(sent.is_ok());
    }
    fn take(reader: &mut LogReader, log: Log<'_>) -> u64 {
        let mut buf = [0u64; 12];
        let mut got = 0;
        while reader.pull(log, &mut buf) == Pull::Batch {
            while let Some(record) = reader.next(&buf).unwrap() {
                assert_eq!(buf[record.offset / 8], record.seq, "torn payload");
                got += 1;
            }
        }
        got
    }
    for first in [4, 8] {
        model(1, move || {
            let memory = Arc::new(Memory {
                control: LogControl::default(),
                words: (0..32).map(|_| AtomicU64::new(0)).collect(),
            });
            let mut writer = LogWriter::growing(log_of(&memory), 1);
            (0..first).for_each(|value| push(&mut writer, log_of(&memory), value));
            let theirs = memory.clone();
            let reader = thread::spawn(move || {
                let mut reader = LogReader::new(0);
                reader.expect_from(0);
                let got = take(&mut reader, log_of(&theirs));
                (reader, got)
            });
            (first..first + 3).for_each(|value| push(&mut writer, log_of(&memory), value));
            let (mut reader, mut got) = reader.join().unwrap();
            (0..3).for_each(|_| got += take(&mut reader, log_of(&memory)));
            assert_eq!(got + reader.take_lost(), first + 3, "received or counted");
        });
    }
}

#[test]
fn a_reliable_reader_is_not_overrun() {
    struct Cursor(Arc<AtomicU64>);
    impl Gate for Cursor {
        fn lowest_needed(&mut self) -> u64 {
            self.0.load(Ordering::Acquire)
        }
    }
    model(3, || {
        let memory = Memory::new();
        let cursor = Arc::new(AtomicU64::new(0));
        let (theirs, shown) = (memory.clone(), cursor.clone());
        let reader = thread::spawn(move || {
            let mut reader = LogReader::new(0);
            reader.expect_from(0);
            let got = take(&mut reader, theirs.log());
            shown.store(reader.position(), Ordering::Release);
            (reader, got)
        });
        let mut writer = LogWriter::new(memory.log());
        let mut gate = Cursor(cursor.clone());
        let mut sent = 0;
        for _ in 0..4 {
            sent += u64::from(push(&mut writer, memory.log(), sent, &mut gate));
        }
        assert!(sent >= 2);
        let (mut reader, got) = reader.join().unwrap();
        assert_eq!(got + take(&mut reader, memory.log()), sent);
        assert_eq!(reader.take_lost(), 0);
    });
}

/// A reader at `place` is listed with the position found there, and then reads the position again.
fn joins_at(place: fn(Log<'_>) -> u64) {
    model(3, move || {
        let memory = Memory::new();
        let readers = Arc::new(Readers { epoch: Epoch::default(), starts: Mutex::new(Vec::new()) });
        let (theirs, list) = (memory.clone(), readers.clone());
        let join = thread::spawn(move || {
            let log = theirs.log();
            let start = Arc::new(AtomicU64::new(place(log)));
            list.starts.lock().unwrap().push(start.clone());
            list.epoch.admit(log, &FullFences);
            let from = place(log);
            start.store(from, Ordering::Release);
            from
        });
        let log = memory.log();
        let mut writer = LogWriter::new(log);
        let mut gate = Cursors(Vec::new());
        let mut seen = 0;
        let mut sent = 0;
        for _ in 0..4 {
            if readers.epoch.changed(&mut seen) {
                gate = Cursors(readers.starts.lock().unwrap().clone());
                writer.readers_changed();
            }
            sent += u64::from(push(&mut writer, log, sent, &mut gate));
            FullFences.light();
        }
        let start = join.join().unwrap();
        let head = log.control.head.head.load(Ordering::Acquire);
        assert!(head <= start, "the reader was promised {start}, the log begins at {head}");
    });
}

#[test]
fn a_joining_reader_misses_nothing_after_its_start() {
    joins_at(|log| log.control.tail.tail.load(Ordering::Acquire));
    joins_at(|log| log.control.tail.last.load(Ordering::Acquire));
}

#[test]
fn removed_reader_no_longer_blocks_the_writer() {
    model(3, || {
        let memory = Memory::new();
        let stays_at_zero = Arc::new(AtomicU64::new(0));
        let readers = Arc::new(Readers {
            epoch: Epoch::default(),
            starts: Mutex::new(vec![stays_at_zero.clone()]),
        });
        let log = memory.log();
        let mut writer = LogWriter::new(log);
        let list = readers.clone();
        let leave = thread::spawn(move || {
            list.starts.lock().unwrap().clear();
            list.epoch.advance();
        });
        let mut gate = Cursors(vec![stays_at_zero]);
        let mut seen = 0;
        let mut sent = 0;
        for _ in 0..3 {
            if readers.epoch.changed(&mut seen) {
                gate = Cursors(readers.starts.lock().unwrap().clone());
                writer.readers_changed();
            }
            sent += u64::from(push(&mut writer, log, sent, &mut gate));
            // Until the writer has seen the removal, everything that the reader needs stays.
            let head = log.control.head.head.load(Ordering::Acquire);
            assert!(head == 0 || gate.0.is_empty(), "overwritten although a reader needs it");
        }
        leave.join().unwrap();
        assert!(readers.epoch.changed(&mut seen) || gate.0.is_empty());
        writer.readers_changed();
        assert!(push(&mut writer, log, sent, &mut Cursors(Vec::new())), "no reader blocks it now");
        assert!(sent >= 2);
    });
}

#[test]
fn no_wakeup_is_lost() {
    model(4, || {
        struct Sleeper {
            asleep: AtomicU64,
            bell: AtomicU32,
            kernel: Notify,
        }
        let memory = Memory::new();
        let sleeper = Arc::new(Sleeper {
            asleep: AtomicU64::new(0),
            bell: AtomicU32::new(0),
            kernel: Notify::new(),
        });
        let (theirs, us) = (memory.clone(), sleeper.clone());
        let reader = thread::spawn(move || {
            let mut reader = LogReader::new(0);
            reader.expect_from(0);
            let tickets = Tickets::default();
            let mut got = 0;
            while got < 2 {
                got += take(&mut reader, theirs.log());
                if got == 2 {
                    break;
                }
                let before = us.bell.load(Ordering::Acquire);
                wake::announce(|at| at(&us.asleep), tickets.next_ticket(), &FullFences);
                if !reader.has_more(theirs.log()) {
                    // As the kernel's futex: sleeps only while the bell is unchanged.
                    while us.bell.load(Ordering::Acquire) == before {
                        us.kernel.wait();
                    }
                }
                wake::withdraw(|at| at(&us.asleep));
            }
        });
        let mut writer = LogWriter::new(memory.log());
        let mut last_rung = 0;
        for value in 0..2 {
            assert!(push(&mut writer, memory.log(), value, &mut NoReliableReaders));
            FullFences.light();
            if wake::must_ring(&sleeper.asleep, &mut last_rung) {
                wake::ring(&sleeper.bell);
                sleeper.kernel.notify();
            }
        }
        reader.join().unwrap();
    });
}

/// Two waiters take turns at one subscriber. The second must not reuse the first one's ticket.
#[test]
fn second_waiter_is_woken_too() {
    struct Sleeper {
        asleep: AtomicU64,
        bell: AtomicU32,
        kernel: Notify,
        tickets: Tickets,
    }
    model(3, || {
        let memory = Memory::new();
        let sleeper = Arc::new(Sleeper {
            asleep: AtomicU64::new(0),
            bell: AtomicU32::new(0),
            kernel: Notify::new(),
            tickets: Tickets::default(),
        });
        let (theirs, us) = (memory.clone(), sleeper.clone());
        let reader = thread::spawn(move || {
            let mut reader = LogReader::new(0);
            reader.expect_from(0);
            // Each round is a new waiter: they share only the sleeper's ticket word.
            for wanted in 1..=2 {
                let mut got = reader.next_seq().unwrap();
                while got < wanted {
                    let before = us.bell.load(Ordering::Acquire);
                    wake::announce(|at| at(&us.asleep), us.tickets.next_ticket(), &FullFences);
                    if !reader.has_more(theirs.log()) {
                        while us.bell.load(Ordering::Acquire) == before {
                            us.kernel.wait();
                        }
                    }
                    wake::withdraw(|at| at(&us.asleep));
                    got += take(&mut reader, theirs.log());
                }
            }
        });
        let mut writer = LogWriter::new(memory.log());
        let mut last_rung = 0;
        for value in 0..2 {
            assert!(push(&mut writer, memory.log(), value, &mut NoReliableReaders));
            FullFences.light();
            if wake::must_ring(&sleeper.asleep, &mut last_rung) {
                wake::ring(&sleeper.bell);
                sleeper.kernel.notify();
            }
        }
        reader.join().unwrap();
    });
}

/// With swapped roles: a writer sleeps until a reader has freed capacity, first little, then more.
#[test]
fn writer_waiting_for_capacity_is_woken() {
    #[derive(Default)]
    struct Shared {
        flow: FlowLine,
        cursor: AtomicU64,
    }
    model(4, || {
        let shared = Arc::new(Shared::default());
        let bell = Arc::new((AtomicU32::new(0), Notify::new()));
        let (theirs, rings) = (shared.clone(), bell.clone());
        let reader = thread::spawn(move || {
            let mut rung = 0;
            for position in [8, 16] {
                if backpressure::publish_cursor(&theirs.cursor, position, &theirs.flow, &mut rung) {
                    wake::ring(&rings.0);
                    rings.1.notify();
                }
            }
        });
        let tickets = Tickets::default();
        for wanted in [8, 16] {
            while shared.cursor.load(Ordering::Acquire) < wanted {
                let before = bell.0.load(Ordering::Acquire);
                backpressure::set_wake_position(&shared.flow, wanted);
                wake::announce(|at| at(&shared.flow.asleep), tickets.next_ticket(), &FullFences);
                if shared.cursor.load(Ordering::Acquire) < wanted {
                    while bell.0.load(Ordering::Acquire) == before {
                        bell.1.wait();
                    }
                }
                wake::withdraw(|at| at(&shared.flow.asleep));
            }
        }
        reader.join().unwrap();
    });
}

#[test]
fn a_pinned_chunk_is_not_reused() {
    model(4, || {
        let header = Arc::new(ChunkHeader::default());
        let pin = Arc::new(AtomicU64::new(0));
        let content = Arc::new(AtomicU64::new(1));
        let message = ChunkRef { chunk: 0, generation: 0, len: 8 };
        let (h, p, c) = (header.clone(), pin.clone(), content.clone());
        let reader = thread::spawn(move || {
            if pins::try_pin(&p, &h, message) {
                assert_eq!(c.load(Ordering::Relaxed), 1, "the chunk changed under its reader");
                assert_eq!(c.load(Ordering::Relaxed), 1, "the chunk changed under its reader");
                pins::unpin(&p);
            }
        });
        pins::invalidate(&header, 1);
        if !pins::is_pinned(0, [&*pin]) {
            content.store(2, Ordering::Relaxed);
        }
        reader.join().unwrap();
    });
}

/// A new reader pins a past message while the writer, whose list lacks it yet, is about to reuse the chunk.
#[test]
fn pin_of_a_new_reader_is_seen() {
    #[derive(Default)]
    struct World {
        header: ChunkHeader,
        content: AtomicU64,
        admitted: AtomicU64,
        epoch: Epoch,
        /// Represents handing the list to the writer.
        list: Mutex<Vec<Arc<AtomicU64>>>,
    }
    model(3, || {
        let world = Arc::new(World::default());
        let (control, read) = (world.clone(), world.clone());
        let pin = Arc::new(AtomicU64::new(0));
        let listed = pin.clone();
        let control = thread::spawn(move || {
            control.list.lock().unwrap().push(listed);
            control.epoch.advance();
            control.admitted.store(1, Ordering::Release);
        });
        let reader = thread::spawn(move || {
            let message = ChunkRef { chunk: 0, generation: 0, len: 8 };
            if read.admitted.load(Ordering::Acquire) == 1
                && pins::try_pin(&pin, &read.header, message)
            {
                assert_eq!(read.content.load(Ordering::Relaxed), 0, "changed under its reader");
                assert_eq!(read.content.load(Ordering::Relaxed), 0, "changed under its reader");
            }
        });
        let (mut seen, mut copy) = (0, Vec::new());
        pins::invalidate(&world.header, 1);
        if world.epoch.changed(&mut seen) {
            copy.clone_from(&world.list.lock().unwrap());
        }
        if !pins::is_pinned(0, copy.iter().map(|pin| &**pin)) {
            world.content.store(1, Ordering::Relaxed);
        }
        control.join().unwrap();
        reader.join().unwrap();
    });
}

/// An entry changes between readers and requests. Each finds the complete answer to its request, or none.
#[test]
fn an_answer_is_read_whole() {
    let grant = |subscription, generation| Grant {
        request: RequestId { subscription, generation },
        start: subscription * 80 + generation * 8,
        start_seq: subscription * 10 + generation,
    };
    // The entry of a reader that left; the own entry after a detachment.
    for (before, after) in [(grant(1, 1), grant(2, 1)), (grant(2, 1), grant(2, 2))] {
        for wanted in [before, after] {
            model(3, move || {
                let entry = Arc::new(Admission::default());
                admission::answer(&entry, before, AdmissionState::Detached);
                let written = entry.clone();
                let publisher = thread::spawn(move || {
                    admission::answer(&written, after, AdmissionState::Active);
                    admission::detach(&written);
                });
                if let Some((found, _)) = admission::read(&entry, wanted.request) {
                    assert_eq!(found, wanted);
                }
                publisher.join().unwrap();
                assert_eq!(
                    admission::read(&entry, after.request),
                    Some((after, AdmissionState::Detached))
                );
                assert_eq!(admission::read(&entry, before.request), None);
            });
        }
    }
}

/// The writer detaches a reader before it overwrites what that one needs: a lap is not an overrun.
#[test]
fn lapped_reader_sees_its_detachment() {
    struct Cursor(u64);
    impl Gate for Cursor {
        fn lowest_needed(&mut self) -> u64 {
            self.0
        }
    }
    model(3, || {
        let ask = RequestId { subscription: 1, generation: 1 };
        let memory = Memory::new();
        let entry = Arc::new(Admission::default());
        admission::answer(
            &entry,
            Grant { request: ask, start: 0, start_seq: 0 },
            AdmissionState::Active,
        );
        let (theirs, answer) = (memory.clone(), entry.clone());
        let reader = thread::spawn(move || {
            let mut reader = LogReader::new(0);
            reader.expect_from(0);
            let mut buf = [0u64; 8];
            if reader.pull(theirs.log(), &mut buf) == Pull::Lapped {
                assert!(!admission::is_active(&answer, ask), "lapped while it was served");
            }
        });
        let mut writer = LogWriter::new(memory.log());
        let mut sent = 0;
        while push(&mut writer, memory.log(), sent, &mut Cursor(0)) {
            sent += 1;
        }
        admission::detach(&entry);
        writer.readers_changed();
        assert!(push(&mut writer, memory.log(), sent, &mut NoReliableReaders));
        reader.join().unwrap();
    });
}

/// A page is bound to one publisher, to another, and back: each finds a complete binding to itself, or none.
#[test]
fn a_binding_is_read_whole() {
    let request = |publisher, turn| BindRequest {
        publisher,
        subscription: 7,
        reliable: publisher == 1,
        history: turn,
    };
    model(3, move || {
        let line = Arc::new(BindLine::default());
        let bound = line.clone();
        let reader = thread::spawn(move || {
            for (turn, publisher) in [(1, 1), (2, 2), (3, 1)] {
                if turn > 1 {
                    binding::free(&bound);
                }
                binding::bind(&bound, request(publisher, turn), turn);
            }
        });
        for publisher in [2, 1] {
            if let Some((found, generation)) = binding::read(&line, publisher) {
                assert_eq!(found.reliable, publisher == 1);
                assert_eq!((found.publisher, found.subscription), (publisher, 7));
                assert_eq!(found.history, generation);
            }
        }
        reader.join().unwrap();
        assert_eq!(binding::read(&line, 1), Some((request(1, 3), 3)));
    });
}
