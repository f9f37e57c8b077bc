//! docs/design/shm-layout.md and the code say the same, byte for byte.
//!
//! Tables of structs are compared with the compiler's own offsets; tables of files with files that
//! are made here, by looking for known values at the offsets that the page names. A table must
//! cover its struct without gaps, so that nothing stands in memory that is not drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::mem::{offset_of, size_of};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rnet_core::{DomainId, NodeName, PublisherQos, SubscriberQos, TypeDesc};
use rnet_ring::layout::{
    Admission, BindLine, ChunkHeader, CountLine, CursorLine, FlowLine, HeadLine, LogControl,
    ObserverSlot, ReaderSlot, Refusal, TailLine,
};
use rnet_shm::channel::publisher::{PublisherMeta, Writer};
use rnet_shm::channel::subscription::{SubscriptionFile, SubscriptionMeta};
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::{EndpointKind, Entry, OwnNode, PeerNode, StopRequest};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/design/shm-layout.md")).expect("the page is there")
}

/// One line of a table; offset and length are `None` where the page has no number.
#[derive(Debug, PartialEq)]
struct Row {
    offset: Option<u64>,
    len: Option<u64>,
    /// `None` for reserved bytes.
    field: Option<String>,
}

/// The tables of the page that begin with an offset, by the heading above them.
fn tables(page: &str) -> BTreeMap<String, Vec<Row>> {
    let mut tables: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    let mut heading = String::new();
    let mut inside = false;
    for line in page.lines() {
        if let Some(text) = line.strip_prefix("### ").or_else(|| line.strip_prefix("## ")) {
            heading = text.replace('`', "");
        }
        if line.starts_with("| offset | bytes | field |") {
            inside = true;
        } else if !line.starts_with('|') {
            inside = false;
        } else if inside && !line.starts_with("|---") {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let name = cells[3].trim_matches('`');
            tables.entry(heading.clone()).or_default().push(Row {
                offset: cells[1].parse().ok(),
                len: cells[2].parse().ok(),
                field: (name != "–").then(|| name.to_owned()),
            });
        }
    }
    tables
}

/// Asserts that the rows follow each other without gaps, and returns where they end.
fn tiled(name: &str, rows: &[Row]) -> u64 {
    let mut at = 0;
    for row in rows.iter().filter(|row| row.offset.is_some()) {
        assert_eq!(row.offset, Some(at), "{name}: a gap or an overlap before {:?}", row.field);
        at += row.len.unwrap_or(0);
    }
    at
}

fn size_of_field<S, F>(_: fn(&S) -> &F) -> u64 {
    size_of::<F>() as u64
}

/// The fields of a struct as the compiler lays them out. The pattern fails to compile if one is
/// forgotten.
macro_rules! fields_of {
    ($struct:ident { $($field:ident),* $(,)? }) => {{
        let _all = |s: &$struct| {
            let $struct { $($field: _),* } = s;
        };
        let fields = vec![$((
            stringify!($field),
            offset_of!($struct, $field) as u64,
            size_of_field(|s: &$struct| &s.$field),
        )),*];
        (stringify!($struct), size_of::<$struct>() as u64, fields)
    }};
}

#[test]
fn structs_are_as_drawn() {
    let tables = tables(&page());
    let structs = [
        fields_of!(TailLine { tail, last, seq, bytes }),
        fields_of!(HeadLine { head, known_lost }),
        fields_of!(FlowLine {
            asleep,
            bell,
            asymmetric,
            full,
            refused,
            detached,
            pool_bytes,
            pool_chunks,
            wake_position,
            log_bytes,
            used_admissions,
            asserted_ns,
            deadline_missed,
            forwarded_ns,
            uncertain_ns
        }),
        fields_of!(Admission { subscription, generation, start, start_seq, state }),
        fields_of!(Refusal { subscription, reason }),
        fields_of!(LogControl { tail, head, flow, admissions, refusals, blocks }),
        fields_of!(CursorLine { cursor }),
        fields_of!(BindLine {
            state,
            publisher,
            subscription,
            generation,
            reliable,
            history,
            asleep,
            bell
        }),
        fields_of!(CountLine {
            received,
            bytes,
            lost_overrun,
            lost_link,
            lost_restart,
            lost_detached,
            skipped,
            next_seq,
            newest_time_ns,
            max_latency_ns,
            sum_latency_ns,
            late_wakes,
            malformed,
            expired,
            deadline_missed
        }),
        fields_of!(ReaderSlot { cursor, bind, count, pins, latency }),
        fields_of!(ObserverSlot { publisher, asleep }),
        fields_of!(ChunkHeader { magic, publisher, capacity, generation, retired }),
    ];
    for (name, size, fields) in &structs {
        let heading = format!("Struct {name}, {size} bytes");
        let rows = tables.get(&heading).unwrap_or_else(|| panic!("no table under {heading:?}"));
        assert_eq!(tiled(name, rows), *size, "{name}");
        let drawn: Vec<(&str, u64, u64)> = rows
            .iter()
            .filter_map(|row| Some((row.field.as_deref()?, row.offset?, row.len?)))
            .collect();
        assert_eq!(&drawn, fields, "{name}");
    }
    let drawn = tables.keys().filter(|heading| heading.starts_with("Struct ")).count();
    assert_eq!(drawn, structs.len(), "a table of a struct that is not compared");
}

#[test]
fn constants_are_as_written() {
    use rnet_core::limits;
    use rnet_ring::{layout, record};
    let code: BTreeMap<&str, u64> = BTreeMap::from([
        ("LAYOUT_VERSION", u64::from(rnet_shm::LAYOUT_VERSION)),
        ("PAGE_LEN_BYTES", layout::PAGE_LEN_BYTES as u64),
        ("READERS_PER_LOG", layout::READERS_PER_LOG as u64),
        ("READERS_IN_CONTROL", layout::READERS_IN_CONTROL as u64),
        ("MORE_ADMISSIONS_LEN_BYTES", layout::MORE_ADMISSIONS_LEN_BYTES as u64),
        ("REFUSALS_PER_LOG", layout::REFUSALS_PER_LOG as u64),
        ("PINS_PER_READER", layout::PINS_PER_READER as u64),
        ("BLOCKS_PER_LOG", layout::BLOCKS_PER_LOG as u64),
        ("MIN_BLOCK_LEN_BYTES", layout::MIN_BLOCK_LEN_BYTES as u64),
        ("OBSERVER_SLOTS_PER_PAGE", layout::OBSERVER_SLOTS_PER_PAGE as u64),
        ("LATENCY_BUCKETS", layout::LATENCY_BUCKETS as u64),
        ("ADMISSION_FREE", layout::ADMISSION_FREE),
        ("ADMISSION_ACTIVE", layout::ADMISSION_ACTIVE),
        ("ADMISSION_DETACHED", layout::ADMISSION_DETACHED),
        ("REFUSED_FULL", rnet_shm::channel::reader_table::REFUSED_FULL),
        ("SLOT_FREE", layout::SLOT_FREE),
        ("SLOT_BOUND", layout::SLOT_BOUND),
        ("SLOT_TOTALS", layout::SLOT_TOTALS),
        ("HEADER_LEN_BYTES", record::HEADER_LEN_BYTES),
        ("CHUNK_REF_LEN_BYTES", record::CHUNK_REF_LEN_BYTES as u64),
        ("MAX_RECORD_LEN_BYTES", record::MAX_RECORD_LEN_BYTES as u64),
        ("MAX_EXTENSION_LEN_BYTES", record::MAX_EXTENSION_LEN_BYTES as u64),
        ("EXTENDED", record::EXTENDED),
        ("CHUNK_HEADER_LEN_BYTES", rnet_shm::channel::pool::CHUNK_HEADER_LEN_BYTES as u64),
        ("CONTROL_AT", rnet_shm::channel::publisher::CONTROL_AT as u64),
        ("MAX_BELLS_PER_NODE", limits::MAX_BELLS_PER_NODE as u64),
        ("MAX_META_LEN_BYTES", limits::MAX_META_LEN_BYTES as u64),
        ("MIN_LOG_LEN_BYTES", limits::MIN_LOG_LEN_BYTES),
        ("MAX_LOG_LEN_BYTES", limits::MAX_LOG_LEN_BYTES),
        ("MAX_CHUNKS_PER_CHANNEL", limits::MAX_CHUNKS_PER_CHANNEL as u64),
    ]);
    let page = page();
    let rows = page.lines().skip_while(|line| *line != "| constant | value |").skip(2);
    let written: BTreeMap<&str, u64> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[1].trim_matches('`'), cells[2].parse().expect("a number"))
        })
        .collect();
    assert_eq!(written, code);
}

#[test]
fn sync_points_are_named_at_both_ends() {
    fn names(text: &str) -> impl Iterator<Item = String> + '_ {
        text.split("SYNC-").skip(1).filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(rest.len());
            (end > 0).then(|| format!("SYNC-{}", &rest[..end]))
        })
    }
    let page = page();
    let rows = page.lines().filter(|line| line.starts_with("| `SYNC-"));
    let written: BTreeSet<String> = rows.flat_map(|line| names(line).next()).collect();
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for name in ["rnet-ring", "rnet-shm", "rnet"] {
        let mut folders = vec![root().join("crates").join(name).join("src")];
        while let Some(folder) = folders.pop() {
            for file in std::fs::read_dir(folder).unwrap() {
                let path = file.unwrap().path();
                // The state's have a page and a test of their own.
                if path.is_dir() && path.ends_with("rnet-ring/src/state") {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ext| ext == "rs") {
                    let text = std::fs::read_to_string(path).unwrap();
                    names(&text).for_each(|name| *ends.entry(name).or_default() += 1);
                }
            }
        }
    }
    assert_eq!(written, ends.keys().cloned().collect(), "page and code name other points");
    for (name, count) in ends {
        assert!(count >= 2, "{name} is named at one end only");
    }
}

/// A domain of this test; its directory is removed at the end.
struct TestDomain(DomainDir);

impl TestDomain {
    fn new(name: &str) -> TestDomain {
        let id = DomainId::new(&format!("{name}_{}", std::process::id())).unwrap();
        let config = DomainConfig { id, ..DomainConfig::default() };
        TestDomain(DomainDir::open_or_create(&config).unwrap())
    }

    fn node(&self) -> OwnNode {
        OwnNode::create(&self.0, &NodeName::new("/arm/controller").unwrap(), "rust", "0").unwrap()
    }
}

impl Drop for TestDomain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.path());
    }
}

/// A file and the table that draws it.
struct Drawn<'a> {
    file: File,
    rows: &'a [Row],
}

impl<'a> Drawn<'a> {
    fn open(path: &Path, tables: &'a BTreeMap<String, Vec<Row>>, heading: &str) -> Drawn<'a> {
        let rows = tables.get(heading).unwrap_or_else(|| panic!("no table under {heading:?}"));
        tiled(heading, rows);
        Drawn { file: File::open(path).unwrap(), rows }
    }

    fn offset(&self, field: &str) -> u64 {
        let row = self.rows.iter().find(|row| row.field.as_deref() == Some(field));
        row.and_then(|row| row.offset).unwrap_or_else(|| panic!("{field} is not drawn"))
    }

    fn bytes<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    fn word_at(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    fn word(&self, field: &str) -> u64 {
        self.word_at(self.offset(field))
    }

    fn json(&self) -> serde_json::Value {
        let mut bytes = vec![0; self.word("meta_len") as usize];
        self.file.read_exact_at(&mut bytes, self.offset("meta")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Magic, version, and zeros where the page has reserved bytes.
    fn check_header(&self, magic: &[u8; 8]) {
        assert_eq!(&self.bytes::<8>(self.offset("magic")), magic);
        assert_eq!(self.word("version"), u64::from(rnet_shm::LAYOUT_VERSION));
        for row in self.rows.iter().filter(|row| row.field.is_none()) {
            let (at, len) = (row.offset.unwrap(), row.len.unwrap());
            for at in (at..at + len).step_by(8) {
                assert_eq!(self.word_at(at), 0, "byte {at} is not reserved");
            }
        }
    }
}

#[test]
fn type_file_is_as_drawn() {
    let (page, domain) = (page(), TestDomain::new("layout_type"));
    let tables = tables(&page);
    let node = domain.node();
    let hash = "0123456789abcdef0123456789abcdef";
    node.write_type(hash, || Ok(b"the descriptor set".to_vec())).unwrap();
    let path = node.folder().join(format!("t{hash}"));
    let drawn = Drawn::open(&path, &tables, "File t<hash>");
    drawn.check_header(b"RNETTYP\x01");
    assert_eq!(drawn.word("set_len"), 18);
    assert_eq!(&drawn.bytes::<18>(drawn.offset("set")), b"the descriptor set");
    assert_eq!(rnet_shm::domain::types::read(node.folder(), hash).unwrap(), b"the descriptor set");
    let limit = format!("at most {}", rnet_core::MAX_SCHEMA_LEN_BYTES);
    assert!(page.contains(&format!("length of the descriptor set, {limit}")));
    assert!(
        page.contains(&format!("at most {} (`MAX_TYPES_PER_NODE`)", rnet_core::MAX_TYPES_PER_NODE))
    );
    let folder = node.folder().to_owned();
    drop(node);
    assert!(!folder.exists(), "the types go with their node");
}

#[test]
fn node_file_is_as_drawn() {
    let (page, domain) = (page(), TestDomain::new("layout_node"));
    let tables = tables(&page);
    let node = domain.node();
    let version = std::fs::read_to_string(domain.0.path().join("VERSION")).unwrap();
    assert_eq!(version, format!("{}\n", rnet_shm::LAYOUT_VERSION));
    let held = std::fs::read_to_string(domain.0.names().join("arm.controller")).unwrap();
    let (pid, namespace) = (std::process::id(), rnet_shm::domain::node::pid_namespace());
    assert_eq!(held, format!("{:010x} {pid} {namespace}\n", node.incarnation()));
    let folder = format!("arm.controller@{:010x}", node.incarnation());
    assert_eq!(node.folder(), domain.0.nodes().join(folder));
    let bells = std::fs::metadata(node.folder().join("bells")).unwrap();
    assert_eq!(bells.len(), 4 * rnet_core::MAX_BELLS_PER_NODE as u64);

    rnet_shm::domain::node::ring_control(node.folder(), 0x12_3456_789a);
    let mut ring = [0; 8];
    File::open(node.folder().join("ctl")).unwrap().read_exact(&mut ring).unwrap();
    assert_eq!(u64::from_le_bytes(ring), 0x12_3456_789a);
    node.greet(node.folder());
    let mut greeting = [0; 8 + 16];
    File::open(node.folder().join("ctl")).unwrap().read_exact(&mut greeting).unwrap();
    let head = (14 << 48 | node.incarnation()).to_le_bytes();
    assert_eq!(greeting, *[&head[..], b"arm.controller\0\0"].concat());

    let drawn = Drawn::open(&node.folder().join("node"), &tables, "File node");
    drawn.check_header(b"RNETNOD\x01");
    assert_eq!(drawn.word("incarnation"), node.incarnation());
    assert_eq!(drawn.json()["name"], "/arm/controller");
    assert_eq!([drawn.word("generation"), drawn.word("entries"), drawn.word("goodbye")], [0; 3]);
    assert_eq!(drawn.word("stop_requested"), 0);
    let stem = NodeName::new("/arm/controller").unwrap().file_stem();
    let seen = PeerNode::open(&domain.0, &stem, node.incarnation()).unwrap().unwrap();
    for (request, word) in [(StopRequest::Stop, 1), (StopRequest::Kill, 2), (StopRequest::None, 0)]
    {
        seen.set_stop_request(request).unwrap();
        assert_eq!(drawn.word("stop_requested"), word);
    }
    node.count_callback_error();
    node.count_callback_error();
    node.count_dropped_callback();
    assert_eq!([drawn.word("callback_errors"), drawn.word("dropped_callbacks")], [2, 1]);

    let first = node.next_endpoint().unwrap();
    let second = node.next_endpoint().unwrap();
    assert_eq!([first, second], [node.incarnation() << 24, node.incarnation() << 24 | 1]);
    for (id, topic_hash, kind) in
        [(first, 70, EndpointKind::Publisher), (second, 71, EndpointKind::Subscription)]
    {
        node.announce(Entry::new(id, topic_hash, kind)).unwrap();
    }
    node.withdraw(first, false);
    assert_eq!([drawn.word("generation"), drawn.word("entries")], [3, 2]);
    let entry = &tables["Entry of the list"];
    let size = tiled("Entry of the list", entry);
    let at = |index: u64, field: &str| {
        let row = entry.iter().find(|row| row.field.as_deref() == Some(field)).expect(field);
        drawn.word_at(drawn.offset("list") + index * size + row.offset.unwrap())
    };
    assert_eq!(at(0, "state"), 0);
    let read = ["id", "topic_hash", "kind", "state"].map(|field| at(1, field));
    assert_eq!(read, [second, 71, 1, 1]);
    node.withdraw(second, true);
    let read = ["id", "topic_hash", "kind", "state"].map(|field| at(1, field));
    assert_eq!(read, [second, 71, 1, 1 << 32]);
    drop(node);
    assert_eq!(drawn.word("goodbye"), 1);
}

#[test]
fn subscription_file_is_as_drawn() {
    let (page, domain) = (page(), TestDomain::new("layout_sub"));
    let tables = tables(&page);
    let node = std::sync::Arc::new(domain.node());
    let id = node.next_endpoint().unwrap();
    let path = node.folder().join("s0");
    let (topic, type_desc) = ("/t".to_owned(), TypeDesc::Raw);
    let qos = SubscriberQos::default();
    let meta = SubscriptionMeta { topic, type_desc, qos, proxy: None, link: None };
    let _file = SubscriptionFile::create(node.clone(), path.clone(), id, &meta).unwrap();
    let drawn = Drawn::open(&path, &tables, "File s<n>");
    drawn.check_header(b"RNETSUB\x01");
    assert_eq!([drawn.word("id"), drawn.word("slots_at"), drawn.word("slots")], [id, 8192, 1]);
    assert_eq!(drawn.json()["topic"], "/t");
    let state = 8192 + offset_of!(ReaderSlot, bind) + offset_of!(BindLine, state);
    assert_eq!(drawn.word_at(state as u64), rnet_ring::layout::SLOT_TOTALS);
}

#[test]
fn observer_file_is_as_drawn() {
    let (page, domain) = (page(), TestDomain::new("layout_observer"));
    let tables = tables(&page);
    let mut file = rnet_shm::domain::observers::ObserverFile::create(&domain.0).unwrap();
    let node = domain.node();
    for publisher in 70..103 {
        file.follow(publisher, node.folder()).unwrap();
    }
    let paths = std::fs::read_dir(domain.0.observers()).unwrap().map(|entry| entry.unwrap().path());
    let (bells, paths): (Vec<_>, Vec<_>) = paths.partition(|path| path.extension().is_some());
    let bells_len = std::fs::metadata(&bells[0]).unwrap().len();
    assert_eq!(bells_len, 4 * rnet_core::MAX_BELLS_PER_NODE as u64);
    let drawn = Drawn::open(&paths[0], &tables, "File observers/<id>");
    drawn.check_header(b"RNETOBS\x01");
    assert_eq!(
        paths[0].file_name().unwrap().to_str(),
        Some(&*format!("{:016x}", drawn.word("id")))
    );
    let pages = drawn.offset("pages");
    assert_eq!(drawn.file.metadata().unwrap().len(), pages + 2 * 4096);
    let words = [0, 8, 128, 32 * 128].map(|at| drawn.word_at(pages + at));
    assert_eq!(words, [70, 0, 71, 102]);
    let most = rnet_core::limits::MAX_PUBLISHERS_PER_OBSERVER / 32;
    assert!(page.contains(&format!("{most} pages at most; the length")));
}

#[test]
fn publisher_file_records_and_chunk_are_as_drawn() {
    const LOG_LEN: u64 = 16 << 10;
    const BLOCK_LEN: u64 = 8 << 10;
    let more = rnet_ring::layout::MORE_ADMISSIONS_LEN_BYTES as u64;
    let (page, domain) = (page(), TestDomain::new("layout_pub"));
    let tables = tables(&page);
    let node = domain.node();
    let id = node.next_endpoint().unwrap();
    let path = node.folder().join("p0");
    let qos = PublisherQos { log_len_bytes: LOG_LEN, ..PublisherQos::default() };
    let (topic, proxy) = ("/t".to_owned(), None);
    let meta = PublisherMeta { topic, type_desc: TypeDesc::Raw, qos, proxy, will: false };
    let mut writer = Writer::create(&node, path.clone(), id, &meta).unwrap();
    let drawn = Drawn::open(&path, &tables, "File p<n>");
    drawn.check_header(b"RNETPUB\x01");
    let log_at = drawn.word("log_at");
    assert_eq!([drawn.word("id"), drawn.word("log_len"), log_at], [id, LOG_LEN, 8192]);
    assert_eq!(drawn.file.metadata().unwrap().len(), log_at + LOG_LEN + more);
    assert_eq!(drawn.json()["topic"], "/t");

    // An inline record of 22 bytes.
    writer.send(b"twenty-two bytes, here").unwrap();
    let header = |at: u64| {
        let word = |field: &str| {
            let rows = &tables["Record header"];
            let row = rows.iter().find(|row| row.field.as_deref() == Some(field)).expect(field);
            let mut bytes = [0; 8];
            let len = row.len.unwrap() as usize;
            drawn.file.read_exact_at(&mut bytes[..len], at + row.offset.unwrap()).unwrap();
            u64::from_le_bytes(bytes)
        };
        assert_eq!(tiled("Record header", &tables["Record header"]), 16);
        [word("seq_lo"), word("len"), word("kind"), word("time_ns")]
    };
    let [seq, len, kind, time_ns] = header(log_at);
    assert_eq!([seq, len, kind], [0, 22, 1]);
    assert!(time_ns > 0 && time_ns <= rnet_shm::os::clock::now_ns());
    assert_eq!(&drawn.bytes::<24>(log_at + 16), b"twenty-two bytes, here\0\0");
    let tail = offset_of!(LogControl, tail) + offset_of!(TailLine, tail);
    assert_eq!(drawn.word_at(drawn.offset("control") + tail as u64), 40);

    // A chunk record of 40 bytes, and the chunk.
    let large = vec![7; 100_000];
    writer.send(&large).unwrap();
    assert_eq!(header(log_at + 40)[..3], [1, 24, 2]);
    let reference = &tables["Chunk reference"];
    assert_eq!(tiled("Chunk reference", reference), 24);
    let named: Vec<&str> = reference.iter().flat_map(|row| row.field.as_deref()).collect();
    assert_eq!(named, ["chunk", "generation", "len"]);
    assert_eq!([56, 64, 72].map(|at| drawn.word_at(log_at + at)), [0, 1, 100_000]);
    let chunk = Drawn::open(&node.folder().join("p0.0"), &tables, "Struct ChunkHeader, 40 bytes");
    assert_eq!(&chunk.bytes::<8>(0), b"RNETCHK\x01");
    assert_eq!([chunk.word("publisher"), chunk.word("generation")], [id, 1]);
    assert_eq!(chunk.file.metadata().unwrap().len(), 4096 + chunk.word("capacity"));
    assert_eq!(chunk.bytes::<8>(4096), [7; 8]);

    // A record that begins in one block goes on in the next: here the second is that after the first.
    let [mut end, mut seq] = [80, 2];
    while BLOCK_LEN - end >= 1016 {
        writer.send(&[0; 1000]).unwrap();
        end += 1016;
        seq += 1;
    }
    writer.send(&[1; 1000]).unwrap();
    assert_eq!(header(log_at + end)[..3], [seq, 1000, 1]);
    let table = drawn.offset("control") + offset_of!(LogControl, blocks) as u64;
    assert_eq!([0, 1].map(|block| drawn.word_at(table + 8 * block)), [0, 1]);
    assert_eq!(drawn.bytes::<8>(log_at + BLOCK_LEN), [1; 8]);
    // The third takes the place of the first.
    (0..10).for_each(|_| writer.send(&[2; 1000]).unwrap());
    let log_bytes = offset_of!(LogControl, flow) + offset_of!(FlowLine, log_bytes);
    assert_eq!(drawn.word_at(drawn.offset("control") + log_bytes as u64), LOG_LEN);
    assert_eq!([0, 1].map(|block| drawn.word_at(table + 8 * block)), [0, 1]);
    assert_eq!(drawn.bytes::<8>(log_at), [2; 8]);
}
