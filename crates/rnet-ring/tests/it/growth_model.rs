//! Tests a log that grows and shrinks against a plain model: a list of all messages.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rnet_ring::layout::LogControl;
use rnet_ring::sync::{AtomicU64, Ordering};
use rnet_ring::{
    BLOCK_IDLE_NS, Gate, Log, LogReader, LogWriter, MIN_RETENTION_NS, NoReliableReaders, Pull,
    PushError, RecordKind, Retention,
};

const BLOCK_WORDS: usize = 16;
const BLOCK_LEN: u64 = BLOCK_WORDS as u64 * 8;

struct Memory {
    control: Box<LogControl>,
    words: Vec<AtomicU64>,
}

impl Memory {
    fn new(blocks: usize) -> Self {
        let words = (0..blocks * BLOCK_WORDS).map(|_| AtomicU64::new(0)).collect();
        Memory { control: Box::default(), words }
    }
    fn log(&self) -> Log<'_> {
        Log::with_blocks(&self.control, &self.words, BLOCK_WORDS).unwrap()
    }
}

/// The writer's gate; memory that is not backed is made unreadable.
struct TestGate<'a> {
    memory: &'a Memory,
    backed: BTreeSet<u32>,
    /// Whether allocations succeed.
    gives: bool,
    denied: bool,
    needed: u64,
    read: u64,
    kept: Retention,
}

impl<'a> TestGate<'a> {
    fn new(memory: &'a Memory, least: u32) -> Self {
        let gate = TestGate {
            memory,
            backed: (0..least).collect(),
            gives: true,
            denied: false,
            needed: u64::MAX,
            read: u64::MAX,
            kept: Retention::default(),
        };
        (least..memory.log().blocks() as u32).for_each(|block| gate.spoil(block));
        gate
    }

    fn spoil(&self, block: u32) {
        let first = block as usize * BLOCK_WORDS;
        let words = &self.memory.words[first..first + BLOCK_WORDS];
        words.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    }
}

impl Gate for TestGate<'_> {
    fn lowest_needed(&mut self) -> u64 {
        self.needed
    }
    fn lowest_read(&mut self) -> u64 {
        self.read
    }
    fn retention(&mut self) -> Retention {
        self.kept
    }
    fn back_with_memory(&mut self, first: u32, count: u32) -> bool {
        assert!(first + count <= self.memory.log().blocks() as u32 && count > 0);
        self.denied |= !self.gives;
        self.gives && (first..first + count).all(|block| self.backed.insert(block))
    }
    fn release_memory(&mut self, first: u32, count: u32) -> bool {
        for block in first..first + count {
            assert!(self.backed.remove(&block), "{block} had no memory");
            self.spoil(block);
        }
        true
    }
}

/// Takes up to `most` messages and compares each with what was sent.
fn drain(r: &mut LogReader, buf: &mut [u64], log: Log<'_>, sent: &[Sent], most: usize) -> u64 {
    let mut taken = 0;
    while taken < most as u64 {
        match r.next(buf).expect("a valid log") {
            Some(record) => {
                let Sent { time_ns, len, .. } = sent[record.seq as usize];
                assert_eq!((record.time_ns, record.len), (time_ns, len));
                let bytes = buf[record.offset / 8..].iter().flat_map(|w| w.to_le_bytes());
                let mine = record.seq as u8;
                assert!(bytes.take(len).all(|byte| byte == mine), "torn: {record:?}");
                taken += 1;
            }
            None => match r.pull(log, buf) {
                Pull::Empty => break,
                Pull::Batch | Pull::Lapped => {}
                Pull::Corrupt(what) => panic!("{what}"),
            },
        }
    }
    taken
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: u64,
    time_ns: u64,
    len: usize,
}

#[derive(Clone, Debug)]
enum Op {
    Send { len: usize },
    Pass { ns: u64 },
    Receive { reader: usize, most: usize },
    Memory { gives: bool },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0..100usize).prop_map(|len| Op::Send { len }),
        3 => (0..MIN_RETENTION_NS / 2).prop_map(|ns| Op::Pass { ns }),
        1 => (0..3 * BLOCK_IDLE_NS).prop_map(|ns| Op::Pass { ns }),
        4 => (0..2usize, 0..20usize).prop_map(|(reader, most)| Op::Receive { reader, most }),
        1 => any::<bool>().prop_map(|gives| Op::Memory { gives }),
    ]
}

proptest! {
    /// One reliable reader, one that is overrun, and allocations that fail at times.
    #[test]
    fn needed_messages_are_never_lost(
        ops in prop::collection::vec(op(), 1..600),
        bits in 1u32..7,
        history in 0u64..60,
        newest in 0u64..6,
    ) {
        let memory = Memory::new(1 << bits);
        let log = memory.log();
        let mut gate = TestGate::new(&memory, 2);
        gate.kept = Retention { history, newest };
        let mut writer = LogWriter::growing(log, 2);
        let mut readers: Vec<_> = (0..2).map(|_| {
            let mut reader = LogReader::new(0);
            reader.expect_from(0);
            (reader, vec![0u64; 40], 0u64)
        }).collect();
        let (mut sent, mut now): (Vec<Sent>, u64) = (Vec::new(), 1);
        for op in ops {
            match op {
                Op::Send { len } => {
                    let payload = vec![sent.len() as u8; len];
                    gate.needed = readers[0].0.position();
                    gate.read = readers[0].0.position().min(readers[1].0.position());
                    let before = writer.capacity_bytes();
                    match writer.push(log, RecordKind::Inline, now, &payload, len as u64, &mut gate) {
                        Ok(at) => sent.push(Sent { at, time_ns: now, len }),
                        Err(PushError::ReaderBehind) => prop_assert!(
                            before == log.capacity_bytes() || gate.denied,
                            "refused, though the log could have grown"
                        ),
                        Err(PushError::OutOfMemory) => prop_assert!(gate.denied && history > 0),
                    }
                    let kept = if gate.denied { 0 } else { newest };
                    let whole = writer.capacity_bytes() == log.capacity_bytes();
                    for (age, message) in sent.iter().rev().enumerate() {
                        let young = !gate.denied && now - message.time_ns < MIN_RETENTION_NS;
                        let promised = (age as u64) < kept.max(history) || young;
                        prop_assert!(whole || !promised || message.at >= writer.head(), "{message:?}");
                    }
                }
                Op::Pass { ns } => now += ns,
                Op::Receive { reader, most } => {
                    let (r, buf, got) = &mut readers[reader];
                    *got += drain(r, buf, log, &sent, most);
                }
                Op::Memory { gives } => gate.gives = gives,
            }
        }
        for (reader, buf, got) in &mut readers {
            *got += drain(reader, buf, log, &sent, usize::MAX);
        }
        // A gap shows with the next message.
        (gate.gives, gate.needed) = (true, u64::MAX);
        now += 10 * MIN_RETENTION_NS;
        let at = writer.push(log, RecordKind::Inline, now, &[], 0, &mut gate).unwrap();
        sent.push(Sent { at, time_ns: now, len: 0 });
        for (reader, buf, got) in &mut readers {
            *got += drain(reader, buf, log, &sent, usize::MAX);
        }
        prop_assert_eq!(readers[0].0.take_lost(), 0, "reliable");
        prop_assert_eq!(readers[0].2, sent.len() as u64);
        let lost = readers[1].0.take_lost();
        prop_assert_eq!(readers[1].2 + lost, sent.len() as u64, "received or counted");
    }
}

/// Sends `count` messages of 40 bytes, one per `every_ns`.
fn send(
    writer: &mut LogWriter,
    gate: &mut TestGate<'_>,
    now: &mut u64,
    every_ns: u64,
    count: usize,
) {
    for _ in 0..count {
        *now += every_ns;
        writer.push(gate.memory.log(), RecordKind::Inline, *now, &[0; 24], 24, gate).unwrap();
    }
}

#[test]
fn memory_follows_the_traffic() {
    let memory = Memory::new(64);
    let mut gate = TestGate::new(&memory, 2);
    let mut writer = LogWriter::growing(memory.log(), 2);
    let mut now = 1;
    // Slow traffic: two blocks hold more than a second of messages.
    send(&mut writer, &mut gate, &mut now, MIN_RETENTION_NS, 10_000);
    assert_eq!((writer.capacity_bytes(), gate.backed.len()), (2 * BLOCK_LEN, 2));
    // A burst takes the maximum length of the log, and keeps it while it lasts.
    send(&mut writer, &mut gate, &mut now, 1000, 10_000);
    assert_eq!((writer.capacity_bytes(), gate.backed.len()), (64 * BLOCK_LEN, 64));
    // The messages of one second, plus the reserve.
    send(&mut writer, &mut gate, &mut now, MIN_RETENTION_NS / 16, 10_000);
    let needed = 16 * 40 / BLOCK_LEN;
    assert!((needed..=5 * needed + 2).contains(&(gate.backed.len() as u64)), "{:?}", gate.backed);
    send(&mut writer, &mut gate, &mut now, MIN_RETENTION_NS, 1000);
    assert_eq!((writer.capacity_bytes(), gate.backed.len()), (2 * BLOCK_LEN, 2));
}

#[test]
fn log_grows_for_a_slow_reader() {
    let memory = Memory::new(64);
    let mut gate = TestGate::new(&memory, 2);
    let mut writer = LogWriter::growing(memory.log(), 2);
    let mut now = 1;
    // Slow traffic, and a reader that needs all messages.
    gate.needed = 0;
    gate.read = 0;
    let most = (64 * BLOCK_LEN / 40) as usize;
    send(&mut writer, &mut gate, &mut now, MIN_RETENTION_NS, most);
    assert_eq!(writer.capacity_bytes(), 64 * BLOCK_LEN);
    let refused = writer.push(memory.log(), RecordKind::Inline, now, &[0; 100], 0, &mut gate);
    assert_eq!(refused, Err(PushError::ReaderBehind));
    // The reader has advanced: its memory is released.
    (gate.needed, gate.read) = (u64::MAX, u64::MAX);
    writer.readers_changed();
    send(&mut writer, &mut gate, &mut now, MIN_RETENTION_NS, 1000);
    assert_eq!((writer.capacity_bytes(), gate.backed.len()), (2 * BLOCK_LEN, 2));
}

#[test]
fn memory_of_a_stopped_reader_is_kept() {
    let memory = Memory::new(8);
    let mut gate = TestGate::new(&memory, 2);
    let mut writer = LogWriter::growing(memory.log(), 2);
    let mut now = 1;
    send(&mut writer, &mut gate, &mut now, 1000, 100);
    assert_eq!(writer.capacity_bytes(), 8 * BLOCK_LEN);
    // It is overrun and may be copying: memory that it may access is not released.
    gate.read = 0;
    gate.needed = u64::MAX;
    struct StalledReader<'a, 'b>(&'a mut TestGate<'b>);
    impl Gate for StalledReader<'_, '_> {
        fn lowest_needed(&mut self) -> u64 {
            u64::MAX
        }
        fn lowest_read(&mut self) -> u64 {
            0
        }
        fn back_with_memory(&mut self, first: u32, count: u32) -> bool {
            self.0.back_with_memory(first, count)
        }
        fn release_memory(&mut self, _first: u32, _count: u32) -> bool {
            panic!("a reader may still look there");
        }
    }
    for _ in 0..100 {
        now += 2 * BLOCK_IDLE_NS;
        let mut gate = StalledReader(&mut gate);
        writer.push(memory.log(), RecordKind::Inline, now, &[0; 24], 24, &mut gate).unwrap();
    }
    assert_eq!(writer.capacity_bytes(), 8 * BLOCK_LEN);
}

#[test]
fn log_keeps_its_length_without_memory() {
    let memory = Memory::new(64);
    let mut gate = TestGate::new(&memory, 2);
    gate.gives = false;
    let mut writer = LogWriter::growing(memory.log(), 2);
    let mut now = 1;
    send(&mut writer, &mut gate, &mut now, 1000, 1000);
    assert_eq!(writer.capacity_bytes(), 2 * BLOCK_LEN);
    // Messages for late joiners are kept even without memory.
    gate.kept.history = 7;
    now += 2 * MIN_RETENTION_NS;
    let log = memory.log();
    let push = |writer: &mut LogWriter, gate: &mut TestGate<'_>, now| {
        writer.push(log, RecordKind::Inline, now, &[0; 24], 24, gate)
    };
    let refused = (0..10).find_map(|_| push(&mut writer, &mut gate, now).err());
    assert_eq!(refused, Some(PushError::OutOfMemory));
    // Memory is available again: the log requests it after a delay.
    gate.gives = true;
    now += 2 * MIN_RETENTION_NS;
    assert!((0..100).all(|_| push(&mut writer, &mut gate, now).is_ok()));
}

/// A log of fixed length never requests memory.
#[test]
fn a_log_of_fixed_length_is_one_ring() {
    let memory = Memory::new(64);
    let log = memory.log();
    let mut writer = LogWriter::new(log);
    for turn in 0..10_000 {
        writer.push(log, RecordKind::Inline, turn, &[0; 24], 24, &mut NoReliableReaders).unwrap();
    }
    assert_eq!(writer.capacity_bytes(), 64 * BLOCK_LEN);
}
