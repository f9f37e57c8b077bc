//! Logs that no correct publisher writes.

use std::sync::atomic::{AtomicU64, Ordering};

use rnet_ring::layout::LogControl;
use rnet_ring::record::{HeaderWord, RecordKind, RecordTag};
use rnet_ring::{Log, LogReader, Pull};

/// Puts a record of 8 bytes at the start of the ring, as the last record of the log.
fn place(control: &LogControl, words: &[AtomicU64], at: u64, extended: bool) {
    let tag = RecordTag { kind: RecordKind::Inline, extended };
    let head = HeaderWord { seq_lo: u32::MAX, len: 8, tag };
    let bytes = [head.to_word(), 1, 8];
    words.iter().zip(bytes).for_each(|(word, bits)| word.store(bits, Ordering::Relaxed));
    control.tail.seq.store(u64::MAX, Ordering::Relaxed);
    control.head.head.store(at, Ordering::Release);
    control.tail.tail.store(at + 24, Ordering::Release);
}

#[test]
fn repeated_number_does_not_inherit_extension_words() {
    let control = LogControl::default();
    let words: Vec<AtomicU64> = (0..256).map(|_| AtomicU64::new(0)).collect();
    let log = Log::new(&control, &words).unwrap();
    let (mut reader, mut batch) = (LogReader::new(0), [0; 64]);
    place(&control, &words, 0, true);
    assert_eq!(reader.pull(log, &mut batch), Pull::Batch);
    let first = reader.next(&batch).unwrap().unwrap();
    assert_eq!((first.seq, reader.extension_len(&first)), (u64::MAX, 8));
    // The number after the last one is 0, so every number is a possible next one. After a move of the log,
    // the same number is accepted once more, now for a record without extension words.
    let on = 1 << 20;
    control.head.head.store(on, Ordering::Release);
    control.tail.tail.store(on, Ordering::Release);
    assert_eq!(reader.pull(log, &mut batch), Pull::Lapped);
    place(&control, &words, on, false);
    assert_eq!(reader.pull(log, &mut batch), Pull::Batch);
    let second = reader.next(&batch).unwrap().unwrap();
    assert_eq!((second.seq, second.offset), (u64::MAX, 16));
    assert_eq!(reader.extension_len(&second), 0);
}
