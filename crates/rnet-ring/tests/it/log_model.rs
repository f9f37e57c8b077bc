//! Tests the ring against a plain model: a list of all messages.

use proptest::prelude::*;
use rnet_ring::layout::LogControl;
use rnet_ring::sync::AtomicU64;
use rnet_ring::{Gate, Log, LogReader, LogWriter, NoReliableReaders, Pull, RecordKind};

struct Memory {
    control: Box<LogControl>,
    words: Vec<AtomicU64>,
}

impl Memory {
    fn new(words: usize) -> Self {
        Memory { control: Box::default(), words: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }
    fn log(&self) -> Log<'_> {
        Log::new(&self.control, &self.words).unwrap()
    }
}

/// Takes up to `most` messages and compares each with what was sent.
fn drain(
    reader: &mut LogReader,
    buf: &mut [u64],
    log: Log<'_>,
    sent: &[Vec<u8>],
    most: usize,
) -> usize {
    let mut taken = 0;
    while taken < most {
        match reader.next(buf).expect("a valid log") {
            Some(record) => {
                let bytes: Vec<u8> = buf.iter().flat_map(|w| w.to_le_bytes()).collect();
                assert_eq!(
                    &bytes[record.offset..record.offset + record.len],
                    sent[record.seq as usize]
                );
                assert_eq!(record.time_ns, record.seq * 3);
                taken += 1;
            }
            None => match reader.pull(log, buf) {
                Pull::Empty => break,
                Pull::Batch | Pull::Lapped => {}
                Pull::Corrupt(what) => panic!("{what}"),
            },
        }
    }
    taken
}

#[derive(Clone, Debug)]
enum Op {
    Send(Vec<u8>),
    Receive { reader: usize, most: usize },
    Newest { reader: usize },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..100).prop_map(Op::Send),
        2 => (0..3usize, 0..20usize).prop_map(|(reader, most)| Op::Receive { reader, most }),
        1 => (0..3usize).prop_map(|reader| Op::Newest { reader }),
    ]
}

proptest! {
    #[test]
    fn best_effort_readers_get_what_was_sent_and_count_the_rest(
        ops in prop::collection::vec(op(), 1..400),
        ring_bits in 6u32..9,
    ) {
        let memory = Memory::new(1 << ring_bits);
        let log = memory.log();
        let mut writer = LogWriter::new(log);
        let mut readers: Vec<_> = (0..3).map(|_| {
            let mut r = LogReader::new(0);
            r.expect_from(0);
            (r, vec![0u64; 32], 0u64, 0u64)
        }).collect();
        let mut sent: Vec<Vec<u8>> = Vec::new();
        for op in ops {
            match op {
                Op::Send(bytes) => {
                    let seq = sent.len() as u64;
                    writer.push(log, RecordKind::Inline, seq * 3, &bytes, bytes.len() as u64, &mut NoReliableReaders).unwrap();
                    sent.push(bytes);
                }
                Op::Receive { reader, most } => {
                    let (r, buf, got, lost) = &mut readers[reader];
                    *got += drain(r, buf, log, &sent, most) as u64;
                    *lost += r.take_lost();
                }
                Op::Newest { reader } => {
                    let (r, buf, got, lost) = &mut readers[reader];
                    r.seek_newest(log);
                    let n = drain(r, buf, log, &sent, 1);
                    *got += n as u64;
                    *lost += r.take_lost();
                    if n == 1 {
                        prop_assert_eq!(r.next_seq(), Some(sent.len() as u64));
                    }
                }
            }
        }
        for (r, buf, got, lost) in &mut readers {
            *got += drain(r, buf, log, &sent, usize::MAX) as u64;
            *lost += r.take_lost();
            prop_assert_eq!(*got + *lost, sent.len() as u64, "every message is received or counted");
        }
    }

    #[test]
    fn reliable_readers_lose_nothing(
        lens in prop::collection::vec(0usize..100, 1..300),
        batch in 1usize..20,
    ) {
        struct Cursor(u64);
        impl Gate for Cursor {
            fn lowest_needed(&mut self) -> u64 { self.0 }
        }
        let memory = Memory::new(64);
        let log = memory.log();
        let mut writer = LogWriter::new(log);
        let mut reader = LogReader::new(0);
        reader.expect_from(0);
        let mut buf = vec![0u64; 32];
        let mut sent: Vec<Vec<u8>> = Vec::new();
        for (i, len) in lens.iter().enumerate() {
            let bytes = vec![i as u8; *len];
            sent.push(bytes.clone());
            let mut gate = Cursor(reader.position());
            while writer.push(log, RecordKind::Inline, i as u64 * 3, &bytes, 0, &mut gate).is_err() {
                prop_assert!(drain(&mut reader, &mut buf, log, &sent, batch) > 0, "full but nothing to read");
                gate = Cursor(reader.position());
            }
        }
        drain(&mut reader, &mut buf, log, &sent, usize::MAX);
        prop_assert_eq!(reader.take_lost(), 0);
        prop_assert_eq!(reader.next_seq(), Some(sent.len() as u64));
    }

    /// A reader returns for any content of the log, without a panic or an endless loop.
    #[test]
    fn hostile_memory_causes_no_panic_or_endless_loop(
        words in prop::collection::vec(any::<u64>(), 64),
        tail in any::<u64>(), head in any::<u64>(), last in any::<u64>(), seq in any::<u64>(),
        start in 0u64..1024,
        tame in any::<bool>(),
    ) {
        let memory = Memory::new(64);
        let log = memory.log();
        for (to, from) in memory.words.iter().zip(&words) {
            // Half of the cases get plausible record headers, to reach the code after the first check.
            let word = if tame { from & 0x0300_003f_ffff_ffff } else { *from };
            to.store(word, rnet_ring::sync::Ordering::Relaxed);
        }
        let squeeze = |v: u64| if tame { v % 2048 } else { v };
        memory.control.tail.tail.store(squeeze(tail), rnet_ring::sync::Ordering::Relaxed);
        memory.control.head.head.store(squeeze(head), rnet_ring::sync::Ordering::Relaxed);
        memory.control.tail.last.store(squeeze(last), rnet_ring::sync::Ordering::Relaxed);
        memory.control.tail.seq.store(squeeze(seq), rnet_ring::sync::Ordering::Relaxed);
        let mut reader = LogReader::new(start & !7);
        let mut buf = vec![0u64; 32];
        for turn in 0..200 {
            if turn % 7 == 3 {
                reader.seek_newest(log);
            }
            match reader.pull(log, &mut buf) {
                Pull::Batch => {
                    while let Ok(Some(record)) = reader.next(&buf) {
                        prop_assert!(record.offset + record.len <= buf.len() * 8);
                    }
                }
                Pull::Corrupt(_) => break,
                Pull::Empty | Pull::Lapped => {}
            }
        }
    }
}
