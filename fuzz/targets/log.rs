//! A reader of a log in which any word changes between any two of its steps.

#![no_main]

use std::sync::atomic::{AtomicU64, Ordering};

use rnet_fuzz::Input;
use rnet_ring::layout::LogControl;
use rnet_ring::record::{HeaderWord, RecordKind, RecordTag};
use rnet_ring::{Log, LogReader, LogWriter, NoReliableReaders, Pull};

/// Words of the ring.
const RING: usize = 64;
/// Words of the reader's copy: less than the ring, so that records are cut at its end, too.
const BATCH: usize = 24;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let control = LogControl::default();
    let words: Vec<AtomicU64> = (0..RING).map(|_| AtomicU64::new(0)).collect();
    let log = Log::new(&control, &words).unwrap();
    let mut writer = LogWriter::new(log);
    let mut reader = LogReader::new(input.byte() as u64 * 8);
    let mut batch = [0_u64; BATCH];
    let max = LogWriter::max_payload(log).min((BATCH - 2) * 8);
    while let Some(step) = input.step() {
        match step % 8 {
            // A valid message among the others, so that part of the state is valid.
            0 => {
                let payload = vec![step; input.byte() as usize % max];
                let len = payload.len() as u64;
                let _ =
                    writer.push(log, RecordKind::Inline, 1, &payload, len, &mut NoReliableReaders);
            }
            1 => {
                let word = &words[input.byte() as usize % RING];
                word.store(input.word(word.load(Ordering::Relaxed)), Ordering::Relaxed);
            }
            // A plausible header.
            2 => {
                let kind = [RecordKind::Inline, RecordKind::Chunk][input.byte() as usize % 2];
                let len = input.short() as u32;
                let tag = RecordTag { kind, extended: input.byte() % 2 == 0 };
                let head = HeaderWord { seq_lo: input.word(0) as u32, len, tag };
                words[input.byte() as usize % RING].store(head.to_word(), Ordering::Relaxed);
            }
            3 => {
                let line = &control.tail;
                let all = [&line.tail, &line.last, &line.seq, &control.head.head];
                let word = all[input.byte() as usize % all.len()];
                word.store(input.word(word.load(Ordering::Relaxed)), Ordering::Relaxed);
            }
            4 | 5 => {
                let before = reader.position();
                let pulled = reader.pull(log, &mut batch);
                assert!(pulled != Pull::Batch || reader.batch_len_bytes() <= BATCH * 8);
                assert!(pulled == Pull::Lapped || reader.position() == before);
            }
            6 => {
                let before = reader.position();
                let record = match step & 8 {
                    0 => reader.next_fast(&batch),
                    _ => reader.next(&batch).unwrap_or(None),
                };
                assert!(reader.position() >= before, "the reader went backwards");
                if let Some(record) = record {
                    assert!(record.offset + record.len <= BATCH * 8, "a record out of its batch");
                    let extension_len = reader.extension_len(&record);
                    assert!(extension_len <= record.offset && record.offset.is_multiple_of(8));
                }
            }
            _ => {
                let before = reader.position();
                reader.seek_newest(log);
                assert!(reader.position() >= before, "the reader went backwards");
                let _ = (reader.has_more(log), reader.take_lost(), reader.end_seq());
            }
        }
    }
});
