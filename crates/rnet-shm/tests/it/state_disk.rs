//! The region's side of durable writes, with a persister that does what the test wants.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rnet_core::{Error, NodeName};
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::os::random::random_u64;
use rnet_shm::state::{
    DiskValue, NextChange, PersistRequest, PersisterControl, PersisterHandle, Record, Region,
    RestoreOutcome, StoredValue, Write,
};

/// A domain of a test's own.
struct TestDomain(PathBuf);

impl TestDomain {
    fn new() -> TestDomain {
        let path = PathBuf::from(format!("/dev/shm/rnet-disk-{:x}", random_u64()));
        std::fs::create_dir(&path).unwrap();
        TestDomain(path)
    }

    fn region(&self, name: &str) -> Region {
        let config = DomainConfig { base: Some(self.0.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let name = NodeName::new(name).unwrap();
        let own = OwnNode::create(&dir, &name, "rust", "0").unwrap();
        Region::open(&Arc::new(own), Arc::new(|| 5)).unwrap()
    }
}

impl Drop for TestDomain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Says that there is a persister, until it is to say that there can be none.
#[derive(Default)]
struct FakePersister {
    broken: AtomicBool,
}

impl PersisterControl for FakePersister {
    fn check_allowed(&self) -> Result<(), Error> {
        Ok(())
    }

    fn ensure_persister(&self) -> Result<(), Error> {
        match self.broken.load(Ordering::SeqCst) {
            false => Ok(()),
            true => Err(Error::Closed { what: "the disk".to_owned() }),
        }
    }

    fn refusal_error(&self, reason: u64) -> Error {
        Error::Closed { what: format!("reason {reason}") }
    }
}

fn stored(bytes: &[u8]) -> StoredValue<'_> {
    StoredValue { kind: 4, type_id: 0, bytes, will: None, expires_boot_ns: 0 }
}

fn write(region: &Region, key: &str, bytes: &[u8], durable: bool) -> Result<u64, Error> {
    let value = Some(stored(bytes));
    let write = Write { key, value, expect: None, durable: Some(durable) };
    region.commit(&[write], &[], &mut |_, _| Ok(()))
}

fn read(region: &Region, key: &str) -> Option<Vec<u8>> {
    let mut record = Record::default();
    region.get(key, &mut record).unwrap().then(|| record.value().to_vec())
}

/// Waits for somebody who asks.
fn asked(disk: &PersisterHandle) -> Vec<PersistRequest> {
    loop {
        let bell = disk.bell();
        let requests = disk.take_requests();
        if !requests.is_empty() {
            return requests;
        }
        disk.wait_for_requests(bell, std::time::Duration::from_secs(1));
    }
}

fn restored<'a>(key: &'a str, bytes: &'a [u8]) -> DiskValue<'a> {
    DiskValue {
        key,
        kind: 4,
        type_id: 7,
        version: 41,
        written_unix_ns: 3,
        expires_boot_ns: 0,
        writer: "/before",
        bytes,
    }
}

#[test]
fn what_the_persister_decides_holds_and_nothing_before() {
    let net = TestDomain::new();
    let region = net.region("a");
    region.set_persister_control(Arc::new(FakePersister::default()));
    let disk = region.persister_handle();
    write(&region, "/k", b"0", false).unwrap();
    for (decision, expected) in [(Ok(()), &b"1"[..]), (Err(28), b"1")] {
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| write(&region, "/k", expected, true));
            let requests = asked(&disk);
            assert_eq!(requests.len(), 1);
            let [change] = &requests[0].changes[..] else { panic!("one key") };
            assert_eq!((change.record.key(), change.keep), ("/k", true));
            let before = if decision.is_ok() { &b"0"[..] } else { b"1" };
            assert_eq!(read(&region, "/k").as_deref(), Some(before), "not decided yet");
            assert!(disk.decide(&requests[0], decision));
            let done = writer.join().unwrap();
            match decision {
                Ok(()) => assert!(done.unwrap() > 0),
                Err(_) => assert!(done.unwrap_err().to_string().contains("reason 28")),
            }
        });
        assert_eq!(read(&region, "/k").as_deref(), Some(expected));
        assert!(disk.take_requests().is_empty());
    }
    let mut durable = Vec::new();
    disk.durable(&mut |record| durable.push(record.key().to_owned())).unwrap();
    assert_eq!(durable, ["/k"]);
}

#[test]
fn restoring_keeps_what_was_and_yields_to_what_is() {
    let net = TestDomain::new();
    let region = net.region("a");
    region.set_persister_control(Arc::new(FakePersister::default()));
    let disk = region.persister_handle();
    assert_eq!(disk.restore(&restored("/k", b"old")).unwrap(), RestoreOutcome::Done);
    let mut record = Record::default();
    assert!(region.get("/k", &mut record).unwrap());
    assert_eq!((record.version, record.writer(), record.durable), (41, "/before", true));
    assert_eq!((record.type_id, record.written_unix_ns, record.value()), (7, 3, &b"old"[..]));
    assert!(disk.take_requests().is_empty(), "it does not go to disk again");
    // What was written since is newer; it is not on disk, so the disk keeps what it has.
    write(&region, "/new", b"new", false).unwrap();
    assert_eq!(disk.restore(&restored("/new", b"old")).unwrap(), RestoreOutcome::Occupied);
    assert_eq!(read(&region, "/new").as_deref(), Some(&b"new"[..]));
    // A transaction that is not decided yet is in the way; refused, it leaves the way free.
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&region, "/late", b"1", true));
        let requests = asked(&disk);
        assert_eq!(disk.restore(&restored("/late", b"old")).unwrap(), RestoreOutcome::Pending);
        assert!(disk.decide(&requests[0], Err(5)));
        assert!(writer.join().unwrap().is_err());
    });
    assert_eq!(disk.restore(&restored("/late", b"old")).unwrap(), RestoreOutcome::Done);
    assert_eq!(read(&region, "/late").as_deref(), Some(&b"old"[..]));
}

/// A writer loses patience with a persister that has begun to write: he has an error, and the change comes
/// nevertheless, to followers too.
#[test]
fn a_change_that_comes_late_is_seen_and_cleaned_up_behind() {
    let net = TestDomain::new();
    let region = net.region("a");
    let promise = Arc::new(FakePersister::default());
    region.set_persister_control(promise.clone());
    let disk = region.persister_handle();
    let peer = net.region("b");
    let mut follower = peer.follow(peer.revision()).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&region, "/k", b"late", true));
        let requests = asked(&disk);
        promise.broken.store(true, Ordering::SeqCst);
        let error = writer.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("to write to disk"), "{error}");
        assert_eq!(read(&region, "/k"), None);
        assert!(disk.decide(&requests[0], Ok(())));
    });
    // Nobody has read it, and its writer has gone on.
    let mut record = Record::default();
    assert_eq!(follower.next("/", &mut record), NextChange::Change);
    assert_eq!((record.key(), record.value()), ("/k", &b"late"[..]));
    assert_eq!(read(&peer, "/k").as_deref(), Some(&b"late"[..]));
    // The next durable write ends what is left of it.
    promise.broken.store(false, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&region, "/k", b"next", true));
        let requests = asked(&disk);
        assert_eq!(requests.len(), 1, "the late one is over");
        assert!(disk.decide(&requests[0], Ok(())));
        assert!(writer.join().unwrap().is_ok());
    });
    assert_eq!(read(&peer, "/k").as_deref(), Some(&b"next"[..]));
}

#[test]
fn regions_are_told_apart() {
    let (one, two) = (TestDomain::new(), TestDomain::new());
    let (a, b, c) = (one.region("a"), one.region("b"), two.region("a"));
    assert_eq!(a.persister_handle().region(), b.persister_handle().region());
    assert_ne!(a.persister_handle().region(), c.persister_handle().region());
    assert!(a.persister_handle().region() <= rnet_shm::os::file_lock::MAX_HOLDER);
}
