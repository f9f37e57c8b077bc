//! Observers: what they read, what they miss, how they are woken, and the limits of a hostile one.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet_core::{DomainId, NodeName, PublisherQos, TypeDesc};
use rnet_shm::channel::observe::{MissedCause, MissedMessages, Observation, Observer};
use rnet_shm::channel::publisher::{PublisherMeta, Writer};
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::domain::observers::{MAX_STATUS_LEN_BYTES, ObserverFile, Observers, read_statuses};
use rnet_shm::os::bell::WakeReason;

/// Time limit of events that must happen.
const LONG: Duration = Duration::from_secs(30);

/// A domain with one publisher; removed on drop.
struct TestDomain {
    dir: DomainDir,
    node: OwnNode,
    path: PathBuf,
    id: u64,
}

impl TestDomain {
    fn new(name: &str, qos: PublisherQos) -> (TestDomain, Writer) {
        let id = DomainId::new(&format!("observers_{name}_{}", std::process::id())).unwrap();
        let dir = DomainDir::open_or_create(&DomainConfig { id, ..DomainConfig::default() });
        let dir = dir.unwrap();
        let node = OwnNode::create(&dir, &NodeName::new("/p").unwrap(), "rust", "0").unwrap();
        let id = node.next_endpoint().unwrap();
        let path = node.folder().join("p0");
        let (topic, proxy) = ("/t".to_owned(), None);
        let meta = PublisherMeta { topic, type_desc: TypeDesc::Raw, qos, proxy, will: false };
        let writer = Writer::create(&node, path.clone(), id, &meta).unwrap();
        (TestDomain { dir, node, path, id }, writer)
    }

    fn observer(&self) -> Observer {
        Observer::open(self.path.clone(), self.id, false).unwrap()
    }

    /// What the control thread does after an observer has rung.
    fn refresh(&self, observers: &mut Observers, writer: &Writer) {
        observers.refresh();
        let mut found = observers.of_node(self.node.incarnation());
        writer.reader_table().set_observers(found.remove(&self.id).unwrap_or_default());
    }

    fn left(&self) -> usize {
        std::fs::read_dir(self.dir.observers()).unwrap().count()
    }

    /// The only observer's file.
    fn only_file(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.dir.observers()).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        paths.find(|path| path.extension().is_none()).unwrap()
    }
}

impl Drop for TestDomain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.dir.path());
    }
}

fn small() -> PublisherQos {
    PublisherQos { log_len_bytes: 16 << 10, pool_limit_bytes: 1 << 20, ..PublisherQos::default() }
}

#[test]
fn sleeping_observer_is_woken_and_receives_everything() {
    let (stage, mut writer) = TestDomain::new("woken", PublisherQos::default());
    let mut file = ObserverFile::create(&stage.dir).unwrap();
    let mut observers = Observers::new(&stage.dir);
    let mut observer = stage.observer();
    file.follow(stage.id, stage.node.folder()).unwrap();
    stage.refresh(&mut observers, &writer);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0u64;
            while !done.load(Ordering::Relaxed) {
                writer.send(&sent.to_le_bytes()).unwrap();
                sent += 1;
                // Alternately slow and fast: slow messages need a ring each, fast ones few.
                if sent % 64 < 8 {
                    std::thread::sleep(Duration::from_millis(3)); // sleep: the observer must fall asleep
                }
            }
        });
        let (mut bytes, mut received, mut woken) = (Vec::new(), 0u64, 0);
        while woken < 30 {
            match observer.poll(&mut bytes) {
                Observation::Message(stamp) => {
                    assert_eq!((stamp.seq, &bytes[..]), (received, &received.to_le_bytes()[..]));
                    received += 1;
                }
                Observation::Nothing => {
                    let slept =
                        file.sleep(LONG, || observer.needs_barrier(), || observer.is_ready());
                    assert_eq!(slept, WakeReason::Ready, "after {received} messages");
                    woken += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    drop(file);
    assert_eq!(stage.left(), 0);
}

#[test]
fn missed_messages_are_reported_by_number_and_cause() {
    let (stage, mut writer) = TestDomain::new("missed", small());
    let mut observer = stage.observer();
    let (mut bytes, mut next) = (Vec::new(), 0u64);
    let mut large_missed = 0;
    for round in 0..200u64 {
        // Bursts longer than the log, and large messages whose memory is reused.
        for turn in 0..round % 40 * 8 {
            let len = if turn % 37 == 5 { 300_000 } else { 100 };
            writer.send(&vec![turn as u8; len]).unwrap();
        }
        loop {
            match observer.poll(&mut bytes) {
                Observation::Nothing => break,
                Observation::Message(stamp) => {
                    assert_eq!(stamp.seq, next);
                    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
                    next += 1;
                }
                Observation::Missed(MissedMessages { publisher, first_seq, count, cause }) => {
                    assert_eq!((publisher, first_seq), (stage.id, next));
                    next += count;
                    if cause == MissedCause::Reused {
                        assert_eq!(count, 1);
                        large_missed += 1;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(next, writer.seq(), "every message was seen or missed");
    }
    let missed = observer.missed();
    assert_eq!(missed.reused, large_missed);
    assert!(missed.overrun > 0 && missed.total() == missed.overrun + missed.reused);
}

#[test]
fn late_observer_counts_messages_from_the_first_as_missed() {
    let (stage, mut writer) = TestDomain::new("late", small());
    // The log holds at least one second, so it must grow to its maximum.
    (0..10_000).for_each(|_| writer.send(&[1; 100]).unwrap());
    let mut observer = Observer::open(stage.path.clone(), stage.id, true).unwrap();
    observer.expect_from(0);
    let mut bytes = Vec::new();
    let Observation::Missed(missed) = observer.poll(&mut bytes) else {
        panic!("the observer was not late")
    };
    assert_eq!((missed.first_seq, missed.cause), (0, MissedCause::Overrun));
    let Observation::Message(stamp) = observer.poll(&mut bytes) else {
        panic!("a message is available")
    };
    assert_eq!(stamp.seq, missed.count);
}

#[test]
fn rings_of_a_hostile_observer_are_limited() {
    let (stage, mut writer) = TestDomain::new("hostile", PublisherQos::default());
    let mut files = Vec::new();
    let mut observers = Observers::new(&stage.dir);
    let mut file = ObserverFile::create(&stage.dir).unwrap();
    let slot = file.follow(stage.id, stage.node.folder()).unwrap();
    let page = File::options().write(true).open(stage.only_file()).unwrap();
    let bells = File::open(stage.only_file().with_extension("bells")).unwrap();
    while files.len() < rnet_core::limits::MAX_OBSERVERS_PER_DOMAIN - 1 {
        files.push(ObserverFile::create(&stage.dir).unwrap());
    }
    let full = ObserverFile::create(&stage.dir).unwrap_err();
    assert!(full.to_string().contains("64"), "{full}");
    stage.refresh(&mut observers, &writer);
    let rings = || {
        let mut word = [0; 4];
        bells.read_exact_at(&mut word, 0).unwrap();
        u32::from_le_bytes(word)
    };
    let (before, begun) = (rings(), Instant::now());
    for ticket in 1..20_000u64 {
        page.write_all_at(&ticket.to_le_bytes(), 4096 + slot as u64 * 128 + 8).unwrap();
        writer.send(&[0; 8]).unwrap();
    }
    // The publisher's stamps may differ slightly from this clock.
    let most = begun.elapsed().as_micros() / 500 + 10;
    let rung = rings() - before;
    assert!(rung > 0 && u128::from(rung) <= most, "{rung} rings, {most} at most");
    // Truncated under the publisher: it continues to send, and drops the observer at the next check.
    page.set_len(0).unwrap();
    writer.send(&[0; 8]).unwrap();
    stage.refresh(&mut observers, &writer);
    writer.send(&[0; 8]).unwrap();
    drop((file, files));
    assert_eq!(stage.left(), 0);
}

#[test]
fn files_of_dead_observers_are_swept_and_invalid_files_skipped() {
    let (stage, writer) = TestDomain::new("dead", PublisherQos::default());
    let file = ObserverFile::create(&stage.dir).unwrap();
    let (alive, folder) = (stage.only_file(), stage.dir.observers());
    // Copies have no lock, so they count as files of dead observers.
    for id in ["0123456789abcdef", "1123456789abcdef"] {
        let dead = folder.join(id);
        std::fs::copy(&alive, &dead).unwrap();
        let header = File::options().write(true).open(&dead).unwrap();
        header.write_all_at(&u64::from_str_radix(id, 16).unwrap().to_le_bytes(), 16).unwrap();
    }
    std::fs::copy(alive.with_extension("bells"), folder.join("0123456789abcdef.bells")).unwrap();
    let orphan = folder.join("2123456789abcdef.bells");
    std::fs::write(&orphan, "").unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
    File::options().write(true).open(&orphan).unwrap().set_modified(long_ago).unwrap();
    std::fs::write(folder.join("3123456789abcdef"), "no header").unwrap();
    std::fs::create_dir(folder.join("4123456789abcdef")).unwrap();
    std::fs::write(folder.join("unknown file"), "").unwrap();
    let mut observers = Observers::new(&stage.dir);
    stage.refresh(&mut observers, &writer);
    // The living observer with its bells, and three unrelated files.
    assert_eq!(stage.left(), 5);
    drop(file);
    stage.refresh(&mut observers, &writer);
    assert_eq!(stage.left(), 3);
    // Also without any observer.
    std::fs::remove_file(folder.join("3123456789abcdef")).unwrap();
    std::fs::remove_dir(folder.join("4123456789abcdef")).unwrap();
    std::fs::write(&orphan, "").unwrap();
    File::options().write(true).open(&orphan).unwrap().set_modified(long_ago).unwrap();
    stage.refresh(&mut observers, &writer);
    assert_eq!(stage.left(), 1);
}

#[test]
fn status_is_read_atomically_and_removed_with_its_observer() {
    let (stage, writer) = TestDomain::new("status", PublisherQos::default());
    let domain = stage.dir.path();
    assert_eq!(read_statuses(domain), []);
    let (file, silent) =
        (ObserverFile::create(&stage.dir).unwrap(), ObserverFile::create(&stage.dir).unwrap());
    let texts = || read_statuses(domain).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(texts(), [""; 0], "no status was published");
    file.publish_status("first").unwrap();
    file.publish_status("second").unwrap();
    assert_eq!((texts(), stage.left()), (vec!["second".to_owned()], 5));
    let long = "x".repeat(MAX_STATUS_LEN_BYTES);
    file.publish_status(&long).unwrap();
    assert_eq!(file.publish_status(&(long.clone() + "x")).unwrap_err().code(), "io");
    assert_eq!(texts(), [long]);
    // Other processes may write there, in any format.
    let place =
        listed(&stage.dir).into_iter().find(|path| path.extension().is_some_and(|of| of == "told"));
    let place = place.unwrap();
    for hostile in [vec![0xff; 10], vec![b'x'; MAX_STATUS_LEN_BYTES + 1]] {
        std::fs::write(&place, hostile).unwrap();
        assert_eq!(texts(), [""; 0]);
    }
    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    assert_eq!(texts(), [""; 0]);
    assert!(file.publish_status("third").is_err());
    std::fs::remove_dir(&place).unwrap();
    file.publish_status("third").unwrap();
    drop((file, silent));
    assert_eq!(stage.left(), 0);
    // A killed observer has published a status and is dead.
    let file = ObserverFile::create(&stage.dir).unwrap();
    file.publish_status("I live").unwrap();
    let kept: Vec<_> =
        listed(&stage.dir).into_iter().map(|path| (std::fs::read(&path).unwrap(), path)).collect();
    drop(file);
    kept.iter().for_each(|(bytes, path)| std::fs::write(path, bytes).unwrap());
    assert_eq!((texts(), stage.left()), (vec![], 3));
    stage.refresh(&mut Observers::new(&stage.dir), &writer);
    assert_eq!(stage.left(), 0);
}

#[test]
fn one_observer_follows_many_publishers() {
    let (stage, writer) = TestDomain::new("many", PublisherQos::default());
    let mut file = ObserverFile::create(&stage.dir).unwrap();
    let mut observers = Observers::new(&stage.dir);
    let first = stage.id;
    let slots: Vec<usize> =
        (0..100).map(|number| file.follow(first + number, stage.node.folder()).unwrap()).collect();
    stage.refresh(&mut observers, &writer);
    assert_eq!(observers.of_node(stage.node.incarnation()).len(), 100);
    slots[50..].iter().for_each(|slot| file.leave(*slot));
    assert_eq!(observers.of_node(stage.node.incarnation()).len(), 50);
    assert_eq!(file.follow(first + 200, stage.node.folder()).unwrap(), slots[50]);
    assert!(!file.endpoints_changed());
    observers.ring_endpoints();
    assert!(file.endpoints_changed() && !file.endpoints_changed());
    let rung = file.sleep(Duration::ZERO, || false, || false);
    assert_eq!(rung, WakeReason::TimedOut);
}

/// Leaves the files of a killed observer, without locks.
fn leave_a_dead_one(dir: &DomainDir) {
    let before = listed(dir);
    let file = ObserverFile::create(dir).unwrap();
    let new: Vec<PathBuf> = listed(dir).into_iter().filter(|path| !before.contains(path)).collect();
    let kept: Vec<_> = new.iter().map(|path| std::fs::read(path).unwrap()).collect();
    drop(file);
    new.iter().zip(kept).for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
}

fn listed(dir: &DomainDir) -> Vec<PathBuf> {
    std::fs::read_dir(dir.observers()).into_iter().flatten().map(|e| e.unwrap().path()).collect()
}

#[test]
fn dead_observers_use_no_slot_without_a_sweeping_node() {
    let (stage, writer) = TestDomain::new("dead64", small());
    (0..64).for_each(|_| leave_a_dead_one(&stage.dir));
    assert_eq!(stage.left(), 128);
    let living: Vec<_> = (0..64).map(|_| ObserverFile::create(&stage.dir).unwrap()).collect();
    assert_eq!(stage.left(), 128);
    let error = ObserverFile::create(&stage.dir).unwrap_err();
    assert_eq!(error.code(), "limit_reached", "{error}");
    drop((living, writer));
}
