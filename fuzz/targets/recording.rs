//! Reading of a recording with any content: to its end, with each fault and its offset.

#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use rnet_fuzz::domain;
use rnet_record::read::{ReadError, Recording, Select};

/// A file of at most 1 KiB has fewer records than this.
const MAX_RECORDS: usize = 1 << 10;

fn read(recording: Result<Recording, ReadError>) {
    let recording = match recording {
        Ok(recording) => recording,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let found = recording.info();
    // A wrong index entry is reported with its offset.
    assert!(found.problems.iter().all(|problem| !problem.to_string().is_empty()));
    let all = Select { with_reserved: true, ..Select::default() };
    for (count, message) in recording.messages(all).enumerate() {
        match message {
            Ok(message) => assert!(recording.channels().any(|c| c.id == message.channel.id)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        // Chunks of zeros compress well, so a small file may have many messages.
        if count >= 64 * MAX_RECORDS {
            break;
        }
    }
    for place in &found.attachments {
        let _ = recording.attachment(*place);
    }
    for channel in recording.channels() {
        for field in channel.number_fields().unwrap_or_default().iter().take(8) {
            let series = recording.series(&channel.topic, &[field], Select::default());
            if let Ok(series) = series {
                assert!(
                    series
                        .columns
                        .iter()
                        .all(|c| c.to_f64().len() % series.log_ns.len().max(1) == 0)
                );
            }
        }
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let path = PATH.get_or_init(|| domain().path().join("recording"));
    std::fs::write(path, bytes).unwrap();
    read(Recording::open(path));
    read(Recording::open_without_index(path));
});
