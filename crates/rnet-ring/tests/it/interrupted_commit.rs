//! Writers that ended between two stores of one message.

use std::sync::atomic::{AtomicU64, Ordering};

use rnet_ring::layout::LogControl;
use rnet_ring::{Log, LogReader, LogWriter, NoReliableReaders, Pull, RecordKind};

/// The newest message is the newest that was committed, though the writer had already named the next.
#[test]
fn the_newest_is_found_behind_a_writer_that_ended_before_its_commit() {
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
            pushed.expect("nobody holds it back");
        }
        // What a push stores first, and then no more.
        control.tail.last.store(writer.tail(), Ordering::Relaxed);
        reader.seek_newest(log);
        let mut buf = [0; 64];
        assert_eq!(reader.pull(log, &mut buf), Pull::Batch);
        let record = reader.next(&buf).expect("sound").expect("there is one");
        assert_eq!((record.time_ns, record.seq), (round * 3 + 2, round * 3 + 2));
        assert_eq!(reader.next(&buf), Ok(None));
    }
}

/// A walk to the newest message does not follow a tail that lies: found by the fuzzer.
#[test]
fn a_tail_without_end_is_not_walked_to() {
    let control = LogControl::default();
    let words: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
    let log = Log::new(&control, &words).expect("a power of two");
    let mut writer = LogWriter::new(log);
    for _ in 0..16 {
        let pushed = writer.push(log, RecordKind::Inline, 0, &[7; 16], 16, &mut NoReliableReaders);
        pushed.expect("nobody holds it back");
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

/// A reader that stays goes on with the oldest record after a lap, any other half a log ahead.
#[test]
fn a_reader_that_stays_misses_no_more_than_what_is_gone() {
    let control = LogControl::default();
    let words: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
    let log = Log::new(&control, &words).expect("a power of two");
    let mut writer = LogWriter::new(log);
    for time in 0..100 {
        let pushed =
            writer.push(log, RecordKind::Inline, time, &[7; 16], 16, &mut NoReliableReaders);
        pushed.expect("nobody holds it back");
    }
    let first = |mut reader: LogReader| {
        let mut buf = [0; 64];
        assert_eq!(reader.pull(log, &mut buf), Pull::Lapped);
        assert_eq!(reader.pull(log, &mut buf), Pull::Batch);
        reader.next(&buf).expect("sound").expect("there is one").seq
    };
    let mut stays = LogReader::new(0);
    stays.resync_to_oldest();
    // Records of 32 bytes.
    assert_eq!(first(stays), writer.head() / 32);
    assert!(first(LogReader::new(0)) > writer.head() / 32);
}
