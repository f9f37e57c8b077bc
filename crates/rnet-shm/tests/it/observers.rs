//! Observers: what they read, what they miss, how they are woken, and what a hostile one can do.

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

/// Long enough for anything that is going to happen at all.
const LONG: Duration = Duration::from_secs(30);

/// A domain with one publisher; removed at the end.
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

    /// What the control thread does when an observer has rung.
    fn look(&self, observers: &mut Observers, writer: &Writer) {
        observers.refresh();
        let mut found = observers.of_node(self.node.incarnation());
        writer.reader_table().set_observers(found.remove(&self.id).unwrap_or_default());
    }

    fn left(&self) -> usize {
        std::fs::read_dir(self.dir.observers()).unwrap().count()
    }

    /// The only file of an observer that there is.
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
fn an_observer_that_sleeps_is_woken_and_hears_everything() {
    let (stage, mut writer) = TestDomain::new("woken", PublisherQos::default());
    let mut file = ObserverFile::create(&stage.dir).unwrap();
    let mut observers = Observers::new(&stage.dir);
    let mut observer = stage.observer();
    file.follow(stage.id, stage.node.folder()).unwrap();
    stage.look(&mut observers, &writer);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0u64;
            while !done.load(Ordering::Relaxed) {
                writer.send(&sent.to_le_bytes()).unwrap();
                sent += 1;
                // Slow and fast by turns: the one needs a ring for each, the other few.
                if sent % 64 < 8 {
                    std::thread::sleep(Duration::from_millis(3)); // sleep: the observer is to fall asleep between two messages
                }
            }
        });
        let (mut bytes, mut heard, mut woken) = (Vec::new(), 0u64, 0);
        while woken < 30 {
            match observer.poll(&mut bytes) {
                Observation::Message(stamp) => {
                    assert_eq!((stamp.seq, &bytes[..]), (heard, &heard.to_le_bytes()[..]));
                    heard += 1;
                }
                Observation::Nothing => {
                    let slept =
                        file.sleep(LONG, || observer.needs_barrier(), || observer.is_ready());
                    assert_eq!(slept, WakeReason::Ready, "after {heard} messages");
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
fn what_is_missed_is_known_by_number_and_cause() {
    let (stage, mut writer) = TestDomain::new("missed", small());
    let mut observer = stage.observer();
    let (mut bytes, mut next) = (Vec::new(), 0u64);
    let mut large_missed = 0;
    for round in 0..200u64 {
        // Bursts longer than the log, and large messages whose memory is used anew.
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
fn one_that_expects_the_first_message_counts_those_that_it_came_too_late_for() {
    let (stage, mut writer) = TestDomain::new("late", small());
    // The log holds a second at least, so it has to grow to its end.
    (0..10_000).for_each(|_| writer.send(&[1; 100]).unwrap());
    let mut observer = Observer::open(stage.path.clone(), stage.id, true).unwrap();
    observer.expect_from(0);
    let mut bytes = Vec::new();
    let Observation::Missed(missed) = observer.poll(&mut bytes) else {
        panic!("it was there too early")
    };
    assert_eq!((missed.first_seq, missed.cause), (0, MissedCause::Overrun));
    let Observation::Message(stamp) = observer.poll(&mut bytes) else {
        panic!("a message is there")
    };
    assert_eq!(stamp.seq, missed.count);
}

#[test]
fn a_hostile_observer_is_rung_so_often_and_no_more() {
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
    stage.look(&mut observers, &writer);
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
    // The stamps by which the publisher counts may be a little off this clock.
    let most = begun.elapsed().as_micros() / 500 + 10;
    let rung = rings() - before;
    assert!(rung > 0 && u128::from(rung) <= most, "{rung} rings, {most} at most");
    // Cut off under the publisher: it sends on, and lets go of the observer with the next look.
    page.set_len(0).unwrap();
    writer.send(&[0; 8]).unwrap();
    stage.look(&mut observers, &writer);
    writer.send(&[0; 8]).unwrap();
    drop((file, files));
    assert_eq!(stage.left(), 0);
}

#[test]
fn what_the_dead_and_the_mad_have_left_is_swept_or_passed_over() {
    let (stage, writer) = TestDomain::new("dead", PublisherQos::default());
    let file = ObserverFile::create(&stage.dir).unwrap();
    let (alive, folder) = (stage.only_file(), stage.dir.observers());
    // Copies have no lock, so they are of the dead.
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
    std::fs::write(folder.join("what is this"), "").unwrap();
    let mut observers = Observers::new(&stage.dir);
    stage.look(&mut observers, &writer);
    // The living one with its bells, and three that are none of ours.
    assert_eq!(stage.left(), 5);
    drop(file);
    stage.look(&mut observers, &writer);
    assert_eq!(stage.left(), 3);
    // Where there is no observer at all, too.
    std::fs::remove_file(folder.join("3123456789abcdef")).unwrap();
    std::fs::remove_dir(folder.join("4123456789abcdef")).unwrap();
    std::fs::write(&orphan, "").unwrap();
    File::options().write(true).open(&orphan).unwrap().set_modified(long_ago).unwrap();
    stage.look(&mut observers, &writer);
    assert_eq!(stage.left(), 1);
}

#[test]
fn what_an_observer_tells_is_read_whole_and_goes_with_it() {
    let (stage, writer) = TestDomain::new("told", PublisherQos::default());
    let domain = stage.dir.path();
    assert_eq!(read_statuses(domain), []);
    let (file, silent) =
        (ObserverFile::create(&stage.dir).unwrap(), ObserverFile::create(&stage.dir).unwrap());
    let texts = || read_statuses(domain).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(texts(), [""; 0], "nobody has told anything");
    file.publish_status("first").unwrap();
    file.publish_status("second").unwrap();
    assert_eq!((texts(), stage.left()), (vec!["second".to_owned()], 5));
    let long = "x".repeat(MAX_STATUS_LEN_BYTES);
    file.publish_status(&long).unwrap();
    assert_eq!(file.publish_status(&(long.clone() + "x")).unwrap_err().code(), "io");
    assert_eq!(texts(), [long]);
    // Others write there too, who keep to nothing.
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
    // One that was killed has told something and lives no more.
    let file = ObserverFile::create(&stage.dir).unwrap();
    file.publish_status("I live").unwrap();
    let kept: Vec<_> =
        listed(&stage.dir).into_iter().map(|path| (std::fs::read(&path).unwrap(), path)).collect();
    drop(file);
    kept.iter().for_each(|(bytes, path)| std::fs::write(path, bytes).unwrap());
    assert_eq!((texts(), stage.left()), (vec![], 3));
    stage.look(&mut Observers::new(&stage.dir), &writer);
    assert_eq!(stage.left(), 0);
}

#[test]
fn one_observer_follows_many() {
    let (stage, writer) = TestDomain::new("many", PublisherQos::default());
    let mut file = ObserverFile::create(&stage.dir).unwrap();
    let mut observers = Observers::new(&stage.dir);
    let first = stage.id;
    let slots: Vec<usize> =
        (0..100).map(|number| file.follow(first + number, stage.node.folder()).unwrap()).collect();
    stage.look(&mut observers, &writer);
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

/// What an observer that was killed has left: its files, and nobody who holds them.
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
fn dead_ones_take_no_place_where_no_node_sweeps() {
    let (stage, writer) = TestDomain::new("dead64", small());
    (0..64).for_each(|_| leave_a_dead_one(&stage.dir));
    assert_eq!(stage.left(), 128);
    let living: Vec<_> = (0..64).map(|_| ObserverFile::create(&stage.dir).unwrap()).collect();
    assert_eq!(stage.left(), 128);
    let error = ObserverFile::create(&stage.dir).unwrap_err();
    assert_eq!(error.code(), "limit_reached", "{error}");
    drop((living, writer));
}
