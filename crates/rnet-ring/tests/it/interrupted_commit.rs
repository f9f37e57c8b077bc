//! Writers that died between two stores of one message.

use std::sync::atomic::{AtomicU64, Ordering};

use rnet_ring::layout::LogControl;
use rnet_ring::{Log, LogReader, LogWriter, NoReliableReaders, Pull, RecordKind};

/// The newest message is the newest committed one, although the writer has already announced the next.
#[test]
fn newest_is_found_after_a_writer_died_before_its_commit() {
    let control = LogControl::default();
    let words: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
    let log = Log::new(&control, &words).expect("a power of two");
    let mut writer = LogWriter::new(log);
    for round in 0..20_u64 {
        let mut reader = LogReader::new(writer.tail());
        for time in 0..3 {
            let pushed = writer.push(
                log,
                RecordKind::Inline,
                round * 3 + time,
                &[7; 12],
                12,
                &mut NoReliableReaders,
            );
            pushed.expect("no reader blocks the writer");
        }
        // The first store of a push, without the following ones.
        control.tail.last.store(writer.tail(), Ordering::Relaxed);
        reader.seek_newest(log);
        let mut buf = [0; 64];
        assert_eq!(reader.pull(log, &mut buf), Pull::Batch);
        let record = reader.next(&buf).expect("a valid log").expect("a record");
        assert_eq!((record.time_ns, record.seq), (round * 3 + 2, round * 3 + 2));
        assert_eq!(reader.next(&buf), Ok(None));
    }
}

/// A walk to the newest message does not follow a false tail; found by the fuzzer.
#[test]
fn walk_does_not_follow_a_false_tail() {
    let control = LogControl::default();
    let words: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
    let log = Log::new(&control, &words).expect("a power of two");
    let mut writer = LogWriter::new(log);
    for _ in 0..16 {
        let pushed = writer.push(log, RecordKind::Inline, 0, &[7; 16], 16, &mut NoReliableReaders);
        pushed.expect("no reader blocks the writer");
    }
    for tail in [u64::MAX, !7, writer.tail() + 4] {
        control.tail.last.store(tail, Ordering::Relaxed);
        control.tail.tail.store(tail, Ordering::Relaxed);
        let mut reader = LogReader::new(0);
        reader.seek_newest(log);
        let found = reader.pull(log, &mut [0; 64]);
        assert!(matches!(found, Pull::Corrupt(_) | Pull::Lapped), "{tail}: {found:?}");
    }
}

/// After a lap, a reader with `resync_to_oldest` continues at the oldest record, any other half a log ahead.
#[test]
fn resync_to_oldest_loses_only_overwritten_records() {
    let control = LogControl::default();
    let words: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
    let log = Log::new(&control, &words).expect("a power of two");
    let mut writer = LogWriter::new(log);
    for time in 0..100 {
        let pushed =
            writer.push(log, RecordKind::Inline, time, &[7; 16], 16, &mut NoReliableReaders);
        pushed.expect("no reader blocks the writer");
    }
    let first = |mut reader: LogReader| {
        let mut buf = [0; 64];
        assert_eq!(reader.pull(log, &mut buf), Pull::Lapped);
        assert_eq!(reader.pull(log, &mut buf), Pull::Batch);
        reader.next(&buf).expect("a valid log").expect("a record").seq
    };
    let mut stays = LogReader::new(0);
    stays.resync_to_oldest();
    // Records of 32 bytes.
    assert_eq!(first(stays), writer.head() / 32);
    assert!(first(LogReader::new(0)) > writer.head() / 32);
}
