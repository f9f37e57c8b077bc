//! Truncated, damaged and hostile files.

use crate::files;

use files::{Dir, START_NS, STEP_NS, chunked, records, times, write};
use mcap::records::op;
use mcap::{Compression, WriteOptions};
use rnet_record::mcap;
use rnet_record::read::{Recording, Select, check};
use rnet_record::tools::recover;

const MESSAGES: u32 = 40;

/// The readable content of these bytes: the times of all messages, and the problems.
fn read(dir: &Dir, bytes: &[u8]) -> (Vec<u64>, Vec<String>) {
    let path = dir.write("damaged", bytes);
    let recording = match Recording::open(&path) {
        Ok(recording) => recording,
        Err(error) => return (Vec::new(), vec![error.to_string()]),
    };
    let mut problems: Vec<String> =
        recording.info().problems.iter().map(ToString::to_string).collect();
    let mut times = Vec::new();
    for message in recording.messages(Select::default()) {
        match message {
            Ok(message) => times.push(message.log_ns()),
            Err(problem) => problems.push(problem.to_string()),
        }
    }
    (times, problems)
}

/// Messages of the chunks, or of the records outside of chunks, that end before this byte.
fn whole_before(bytes: &[u8], cut: usize) -> usize {
    let mut whole = 0;
    for (opcode, offset, len) in records(bytes) {
        if offset + len > cut || opcode == op::DATA_END {
            break;
        }
        match opcode {
            op::MESSAGE => whole += 1,
            op::CHUNK => {
                // The messages that the crate `mcap` alone finds in it.
                let body = &bytes[offset + 9..offset + len];
                let Ok(mcap::records::Record::Chunk { header, data }) =
                    mcap::parse_record(opcode, body)
                else {
                    panic!("a chunk");
                };
                let inside = mcap::read::ChunkReader::new(header, &data).unwrap();
                whole += inside
                    .filter(|r| matches!(r, Ok(mcap::records::Record::Message { .. })))
                    .count();
            }
            _ => {}
        }
    }
    whole
}

#[test]
fn reads_and_recovers_complete_messages_of_truncated_file() {
    for (name, options) in [
        ("zstd", chunked(Some(Compression::Zstd))),
        ("loose", WriteOptions::new().use_chunks(false)),
    ] {
        let dir = Dir::new();
        let bytes = write(options, MESSAGES);
        let expected: Vec<u64> = (0..u64::from(MESSAGES)).map(|n| START_NS + n * STEP_NS).collect();
        for cut in 0..bytes.len() {
            let (found, problems) = read(&dir, &bytes[..cut]);
            let whole = whole_before(&bytes, cut);
            assert_eq!(found, expected[..whole], "{name}: cut at {cut}: {problems:?}");
            assert!(!problems.is_empty(), "{name}: cut at {cut}");
            // Recovers only some of them, because syncing a new file takes time.
            if cut % 7 != 0 {
                continue;
            }
            let (from, to) = (dir.path("damaged"), dir.path("whole"));
            let opened = Recording::open_without_index(&from).map_err(|error| error.to_string());
            let recovered = opened.and_then(|recording| {
                let recovered = recover(&recording, &to, || false);
                recovered.map(|of| (of, recording)).map_err(|error| error.to_string())
            });
            match recovered {
                Ok((recovered, recording)) => {
                    assert_eq!(recovered.messages, whole as u64, "{name}: cut at {cut}");
                    assert!(!recording.info().problems.is_empty(), "{name}: cut at {cut}");
                    assert_eq!(check(&to, &mut |p| panic!("{p}")).unwrap().messages, whole as u64);
                    assert!(Recording::open(&to).unwrap().info().scan_reason.is_none());
                    std::fs::remove_file(&to).unwrap();
                }
                Err(error) => {
                    assert_eq!(whole, 0, "{name}: cut at {cut}: {error}");
                    assert!(!to.exists(), "{name}: cut at {cut}: {error}");
                }
            }
        }
    }
}

#[test]
fn flipped_bit_in_chunk_loses_that_chunk_and_is_reported_with_offset() {
    let dir = Dir::new();
    let mut bytes = write(chunked(Some(Compression::Lz4)), MESSAGES);
    let chunks: Vec<_> = records(&bytes).into_iter().filter(|r| r.0 == op::CHUNK).collect();
    assert!(chunks.len() > 3);
    let (_, offset, len) = chunks[1];
    bytes[offset + len / 2] ^= 0x10;
    let whole = read(&dir, &write(chunked(Some(Compression::Lz4)), MESSAGES)).0;
    let (found, problems) = read(&dir, &bytes);
    assert!(found.len() < whole.len() && found.len() > whole.len() / 2, "{}", found.len());
    assert!(found.iter().all(|time| whole.contains(time)));
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with(&format!("at byte {offset}: ")), "{problems:?}");
    let mut reported = Vec::new();
    check(&dir.path("damaged"), &mut |problem| reported.push(problem.to_string())).unwrap();
    assert!(reported.iter().any(|t| t.starts_with(&format!("at byte {offset}: "))), "{reported:?}");
    assert!(reported.iter().any(|t| t.contains("the CRC of the data")), "{reported:?}");
}

/// The head of a record contains its kind and length. For chunks, the index contains them too.
#[test]
fn flipped_bit_in_record_head_loses_nothing_with_index() {
    let dir = Dir::new();
    let whole = write(chunked(None), MESSAGES);
    let all = records(&whole);
    let data = all.iter().position(|record| record.0 == op::DATA_END).unwrap();
    for (opcode, offset, _) in &all[1..data] {
        for (byte, bit) in [(0, 1), (1, 1), (1, 64), (2, 1), (4, 8), (8, 128)] {
            let mut bytes = whole.clone();
            bytes[offset + byte] ^= bit;
            let (found, problems) = read(&dir, &bytes);
            let what = format!("bit {bit} of byte {byte} of a record {opcode} at {offset}");
            assert_eq!(found.len(), MESSAGES as usize, "{what}: {problems:?}");
            let opened = Recording::open_without_index(&dir.path("damaged")).unwrap();
            let to = dir.path("recovered.mcap");
            let recovered = recover(&opened, &to, || false).unwrap();
            assert_eq!(recovered.messages, u64::from(MESSAGES), "{what}");
            std::fs::remove_file(to).unwrap();
        }
    }
}

#[test]
fn damaged_chunk_with_channels_loses_only_its_own_messages() {
    let dir = Dir::new();
    let mut bytes = write(chunked(Some(Compression::Zstd)), MESSAGES);
    let (_, offset, len) = *records(&bytes).iter().find(|record| record.0 == op::CHUNK).unwrap();
    bytes[offset + len - 3] ^= 1;
    let opened = Recording::open_without_index(&dir.write("damaged", &bytes)).unwrap();
    let (by_index, _) = read(&dir, &bytes);
    let recovered = recover(&opened, &dir.path("recovered.mcap"), || false).unwrap();
    assert!(by_index.len() > MESSAGES as usize / 2);
    assert_eq!(recovered.messages, by_index.len() as u64);
}

#[test]
fn reports_wrong_checksums_and_unknown_compression() {
    let dir = Dir::new();
    let whole = write(chunked(Some(Compression::Zstd)), MESSAGES);
    let first = records(&whole).into_iter().find(|r| r.0 == op::CHUNK).unwrap().1;
    // After opcode, length, two times and a size follow the CRC, and the name of the compression after its
    // length.
    let (crc, name) = (first + 9 + 24, first + 9 + 32);
    let mut bytes = whole.clone();
    bytes[crc] ^= 1;
    let (_, problems) = read(&dir, &bytes);
    assert!(problems[0].contains("the CRC of a chunk is"), "{problems:?}");
    let mut bytes = whole.clone();
    bytes[name..name + 4].copy_from_slice(b"lzma");
    let (found, problems) = read(&dir, &bytes);
    assert!(problems[0].contains("compressed with \"lzma\""), "{problems:?}");
    assert!(!found.is_empty());
    // A byte of the summary, which its own CRC covers: the index is not used, and no message is missing.
    let mut bytes = whole.clone();
    let statistics = records(&whole).into_iter().find(|r| r.0 == op::STATISTICS).unwrap().1;
    bytes[statistics + 9] ^= 1;
    let (found, problems) = read(&dir, &bytes);
    assert_eq!(found.len(), MESSAGES as usize);
    assert!(problems[0].contains("the CRC of the summary is"), "{problems:?}");
}

/// The file with a changed summary and a matching CRC.
fn lying(whole: &[u8], opcode: u8, at: usize, number: u64) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let all = records(whole);
    let end = all.iter().position(|r| r.0 == op::DATA_END).unwrap();
    let (_, offset, _) = *all[end..].iter().find(|r| r.0 == opcode).unwrap();
    bytes[offset + 9 + at..][..8].copy_from_slice(&number.to_le_bytes());
    correct_summary_crc(&mut bytes);
    bytes
}

fn correct_summary_crc(bytes: &mut [u8]) {
    let (_, footer, len) = *records(bytes).last().unwrap();
    let start = u64::from_le_bytes(bytes[footer + 9..footer + 17].try_into().unwrap());
    let crc_at = footer + len - 4;
    let crc = crc32fast::hash(&bytes[start as usize..crc_at]);
    bytes[crc_at..][..4].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn detects_false_index() {
    let dir = Dir::new();
    let whole = write(chunked(None), MESSAGES);
    let (start, end, offset, length) = (0, 8, 16, 24);
    for (what, at, number) in [
        ("offset", offset, 8),
        ("offset", offset, u64::MAX - 3),
        ("offset", offset, whole.len() as u64 - 20),
        ("length", length, 3),
        ("length", length, u64::MAX - 3),
    ] {
        let bytes = lying(&whole, op::CHUNK_INDEX, at, number);
        let (found, problems) = read(&dir, &bytes);
        assert_eq!(found.len(), MESSAGES as usize, "{what} {number}: {problems:?}");
        assert!(!problems.is_empty(), "{what} {number}");
    }
    // Wrong times cannot be detected without reading the chunk, which `check` does.
    for (at, number) in [(start, 7), (end, 7), (start, u64::MAX)] {
        let path = dir.write("times", &lying(&whole, op::CHUNK_INDEX, at, number));
        let mut reported = Vec::new();
        check(&path, &mut |problem| reported.push(problem.to_string())).unwrap();
        assert!(reported.iter().any(|t| t.contains("this chunk incorrectly")), "{reported:?}");
        assert_eq!(times(&path).len(), MESSAGES as usize);
    }
    // Times that end before they begin can: such an index is not used.
    let (first, last) = (26, 34);
    for (opcode, at, number) in [
        (op::CHUNK_INDEX, start, u64::MAX),
        (op::CHUNK_INDEX, end, 7),
        (op::STATISTICS, first, u64::MAX),
        (op::STATISTICS, last, 7),
    ] {
        let path = dir.write("reversed", &lying(&whole, opcode, at, number));
        let recording = Recording::open(&path).unwrap();
        let found = recording.info();
        let end_ns = START_NS + u64::from(MESSAGES - 1) * STEP_NS;
        assert_eq!(found.times, Some((START_NS, end_ns)), "{opcode} {at}");
        assert!(!found.problems.is_empty(), "{opcode} {at}");
        let select = Select { start_ns: Some(START_NS), ..Select::default() };
        assert_eq!(recording.messages(select).count(), MESSAGES as usize, "{opcode} {at}");
    }
    let bytes = lying(&whole, op::STATISTICS, 0, 1_000_000);
    let (found, problems) = read(&dir, &bytes);
    assert_eq!(found.len(), MESSAGES as usize);
    assert!(problems[0].contains("counts 1000000 messages"), "{problems:?}");
}

/// Messages are selected by the known channels, so messages of others are reported and not yielded.
#[test]
fn reports_or_scans_messages_of_channels_missing_in_index() {
    let dir = Dir::new();
    let mut bytes = write(chunked(None), MESSAGES);
    let all = records(&bytes);
    let end = all.iter().position(|r| r.0 == op::DATA_END).unwrap();
    let places = |opcode: u8| all[end..].iter().filter(move |r| r.0 == opcode).map(|r| r.1 + 9);
    // The summary has another id for it, also in the message counts.
    let of_pose = |at: &usize| bytes[*at..*at + 20].windows(5).any(|topic| topic == b"/pose");
    let channel = places(op::CHANNEL).find(of_pose).unwrap();
    let id: [u8; 2] = bytes[channel..][..2].try_into().unwrap();
    let mut rename = |at: usize| {
        let is_there = bytes[at..][..2] == id;
        if is_there {
            bytes[at..][..2].copy_from_slice(&7u16.to_le_bytes());
        }
        is_there
    };
    let counts = places(op::STATISTICS).next().unwrap() + 46;
    assert!(rename(channel));
    assert!(rename(counts) || rename(counts + 10));
    correct_summary_crc(&mut bytes);
    let id = u16::from_le_bytes(id);

    // The index of its chunks contradicts that, so it is not used.
    let (found, problems) = read(&dir, &bytes);
    assert_eq!(found.len(), MESSAGES as usize);
    let said = format!(
        "it lists messages of channel {id} in the chunk here, but does not describe the channel"
    );
    assert!(problems.len() == 1 && problems[0].contains(&said), "{problems:?}");

    // Only the chunks themselves contradict it, once they are read.
    for entries in places(op::CHUNK_INDEX).map(|at| at + 36) {
        let len = u32::from_le_bytes(bytes[entries - 4..entries].try_into().unwrap());
        for at in (entries..entries + len as usize).step_by(10) {
            if bytes[at..][..2] == id.to_le_bytes() {
                bytes[at..][..2].copy_from_slice(&7u16.to_le_bytes());
            }
        }
    }
    correct_summary_crc(&mut bytes);
    let (found, problems) = read(&dir, &bytes);
    let chunks = all.iter().filter(|r| r.0 == op::CHUNK).count();
    assert_eq!(found.len(), MESSAGES as usize / 2);
    let said = format!(
        "messages of channel {id} in the chunk here are skipped because the index does not describe it"
    );
    assert_eq!(problems.len(), chunks, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.contains(&said)), "{problems:?}");

    let recording = Recording::open(&dir.path("damaged")).unwrap();
    assert!(recording.info().scan_reason.is_none());
    for message in recording.messages(Select::default()).filter_map(Result::ok) {
        assert!(recording.channels().any(|channel| channel.id == message.channel.id));
    }
    let series = recording.series("/pose", &["x"], Select::default()).unwrap();
    assert!(series.log_ns.is_empty());
    assert_eq!(series.problems.len(), chunks, "{series:?}");
    assert!(series.problems.iter().all(|problem| problem.contains(&said)), "{series:?}");

    // A selection without these messages reports nothing.
    let later = Select { start_ns: Some(u64::MAX - 1), ..Select::default() };
    assert_eq!(recording.messages(later).count(), 0);

    let whole = Recording::open_without_index(&dir.path("damaged")).unwrap();
    assert_eq!(whole.messages(Select::default()).count(), MESSAGES as usize);
}

#[test]
fn false_size_allocates_no_memory() {
    let dir = Dir::new();
    let whole = write(chunked(Some(Compression::Zstd)), MESSAGES);
    let first = records(&whole).into_iter().find(|r| r.0 == op::CHUNK).unwrap().1;
    for size in [1 << 29, 1 << 40, u64::MAX] {
        let mut bytes = whole.clone();
        bytes[first + 9 + 16..][..8].copy_from_slice(&size.to_le_bytes());
        let (found, problems) = read(&dir, &bytes);
        assert!(!found.is_empty() && found.len() < MESSAGES as usize);
        assert!(problems[0].starts_with(&format!("at byte {first}: ")), "{problems:?}");
    }
    assert!(most_memory_bytes() < 400 << 20, "{}", most_memory_bytes());
}

/// Peak memory of this process.
fn most_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn thousand_random_mutations_end_in_errors() {
    let dir = Dir::new();
    let mut random = Random(0x5eed_1234_abcd_0001);
    let originals: Vec<Vec<u8>> = [Some(Compression::Zstd), Some(Compression::Lz4), None]
        .map(|compression| write(chunked(compression), MESSAGES))
        .into_iter()
        .chain([write(WriteOptions::new().use_chunks(false), MESSAGES)])
        .collect();
    let mut damaged = 0;
    for round in 0..1000 {
        let mut bytes = originals[round % originals.len()].clone();
        for _ in 0..=random.below(8) {
            mutate(&mut bytes, &mut random);
        }
        let (found, problems) = read(&dir, &bytes);
        assert!(found.len() <= 3 * MESSAGES as usize, "round {round}: {}", found.len());
        damaged += u32::from(!problems.is_empty());
        let path = dir.path("damaged");
        let mut reported = 0;
        if check(&path, &mut |_| reported += 1).is_ok() && found.len() < MESSAGES as usize {
            assert!(reported > 0, "round {round}: messages are missing, but check reports nothing");
        }
        let to = dir.path("whole");
        if let Ok(recording) = Recording::open_without_index(&path)
            && let Ok(recovered) = recover(&recording, &to, || false)
        {
            assert_eq!(times(&to).len() as u64, recovered.messages, "round {round}");
            std::fs::remove_file(&to).unwrap();
        }
    }
    assert!(damaged > 500, "{damaged}");
    assert!(most_memory_bytes() < 400 << 20, "{}", most_memory_bytes());
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.below(256) as u8,
        2 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0xff),
        3 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0),
        4 => bytes.truncate(at.max(1)),
        _ => {
            let end = (at + random.below(64)).min(bytes.len());
            let piece = bytes[at..end].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, piece);
        }
    }
}

/// xorshift64: the same mutations in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[test]
fn reports_false_statistics() {
    let dir = Dir::new();
    let whole = write(chunked(None), MESSAGES);
    let (messages, first) = (0, 26);
    let bytes = lying(&lying(&whole, op::STATISTICS, messages, 7), op::STATISTICS, first, 5);
    let mut reported = Vec::new();
    let path = dir.write("a.mcap", &bytes);
    check(&path, &mut |problem| reported.push(problem.to_string())).unwrap();
    let start = START_NS;
    let said = format!(
        "the index is wrong: the statistics are wrong: 7 messages instead of {MESSAGES}; the first message \
         at 5 ns instead of {start} ns"
    );
    assert!(reported.len() == 1 && reported[0].ends_with(&said), "{reported:?}");
}
