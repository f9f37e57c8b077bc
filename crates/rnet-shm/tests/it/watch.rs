//! Detection of the exit of a peer in another pid namespace: by its FIFO, then its lock.

use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rnet_core::{DomainId, NodeName};
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::exit_watch::Watch;
use rnet_shm::domain::node::{OwnNode, pid_namespace};
use rnet_shm::domain::pidfd::LivenessHandle;
use rnet_shm::domain::registry::{Changes, Departure, Registry};

/// An event that does not happen within this time counts as not happening.
const LONG: Duration = Duration::from_secs(50);

struct TestDomain {
    base: PathBuf,
    dir: DomainDir,
}

impl TestDomain {
    fn new() -> TestDomain {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let base = PathBuf::from(format!("/dev/shm/rnet-watch-{}-{count}", std::process::id()));
        std::fs::create_dir(&base).unwrap();
        let id = DomainId::new("t").unwrap();
        let config = DomainConfig { id, base: Some(base.clone()), group: None };
        let dir = DomainDir::open_or_create(&config).unwrap();
        TestDomain { base, dir }
    }

    /// A node that claims to be in another pid namespace.
    fn stranger(&self) -> OwnNode {
        let name = NodeName::new("/stranger").unwrap();
        let node = OwnNode::create(&self.dir, &name, "rust", "0").unwrap();
        let path = node.folder().join("node");
        let mut file = std::fs::File::options().read(true).write(true).open(path).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let own = pid_namespace().to_string();
        let at = bytes.windows(own.len()).position(|w| w == own.as_bytes()).unwrap();
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all("7".repeat(own.len()).as_bytes()).unwrap();
        node
    }

    fn registry(&self) -> Registry {
        let mut registry = Registry::new(self.dir.clone(), None);
        assert_eq!(registry.refresh().unwrap().joined.len(), 1);
        registry
    }
}

impl Drop for TestDomain {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.base).unwrap();
    }
}

fn mkfifo(path: &Path) -> std::fs::File {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
    std::fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).unwrap()
}

/// The kernel reports the exit without polling.
#[test]
fn exit_of_peer_in_another_pid_namespace_wakes() {
    let domain = TestDomain::new();
    let node = domain.stranger();
    let id = node.incarnation();
    let mut registry = domain.registry();
    assert!(matches!(registry.peer(id).unwrap().handle, LivenessHandle::Fifo(_)));
    let mut watch = Watch::new().unwrap();
    watch.follow(&mut registry);
    drop(node);
    assert_eq!(watch.wait(Some(LONG)).unwrap().peers, [id]);
    let changes = registry.refresh_only(&[id], None).unwrap();
    assert_eq!(changes.departed.len(), 1);
    assert_eq!(changes.departed[0].2, Departure::Left);
}

/// A peer that closes its FIFO before its lock is checked again soon, not after a second.
#[test]
fn suspect_is_checked_again() {
    let domain = TestDomain::new();
    let node = domain.stranger();
    let id = node.incarnation();
    let ctl = node.folder().join("ctl");
    std::fs::remove_file(&ctl).unwrap();
    let reader = mkfifo(&ctl);
    let mut registry = domain.registry();
    let mut watch = Watch::new().unwrap();
    watch.follow(&mut registry);
    drop(reader);
    let mut asked = 0;
    for _ in 0..30 {
        // On a machine that stalls for a second, a poll happens in between.
        asked += usize::from(watch.wait(Some(LONG)).unwrap().peers == [id]);
        // The lock is authoritative: the peer lives.
        assert!(registry.refresh_only(&[id], None).unwrap().departed.is_empty());
        watch.follow(&mut registry);
        if asked == 5 {
            break;
        }
    }
    assert_eq!(asked, 5);
    // Finally it is checked only by the general poll.
    while !watch.wait(Some(LONG)).unwrap().poll {
        watch.follow(&mut registry);
    }
    drop(node);
    assert_eq!(registry.refresh().unwrap().departed.len(), 1);
    watch.follow(&mut registry);
    assert!(!watch.wait(Some(Duration::from_millis(1))).unwrap().poll, "a poll is not needed");
}

/// The peer was already exiting when the watch started.
#[test]
fn peer_without_fifo_reader_is_suspected_at_once() {
    let domain = TestDomain::new();
    let node = domain.stranger();
    let id = node.incarnation();
    let ctl = node.folder().join("ctl");
    std::fs::remove_file(&ctl).unwrap();
    drop(mkfifo(&ctl));
    let mut registry = domain.registry();
    assert!(matches!(registry.peer(id).unwrap().handle, LivenessHandle::Exiting));
    let mut watch = Watch::new().unwrap();
    watch.follow(&mut registry);
    assert_eq!(watch.wait(Some(LONG)).unwrap().peers, [id]);
}

/// A peer without a watchable descriptor is polled at first, and watched once a descriptor is available.
#[test]
fn peer_that_could_not_be_watched_is_watched_later() {
    let domain = TestDomain::new();
    let node = domain.stranger();
    let id = node.incarnation();
    let ctl = node.folder().join("ctl");
    std::fs::remove_file(&ctl).unwrap();
    std::os::unix::fs::symlink("elsewhere", &ctl).unwrap();
    let mut registry = domain.registry();
    assert!(matches!(registry.peer(id).unwrap().handle, LivenessHandle::LockOnly));
    let mut watch = Watch::new().unwrap();
    watch.follow(&mut registry);
    assert!(watch.wait(Some(LONG)).unwrap().poll, "it can only be polled");
    std::fs::remove_file(&ctl).unwrap();
    let reader = mkfifo(&ctl);
    registry.refresh().unwrap();
    assert!(matches!(registry.peer(id).unwrap().handle, LivenessHandle::Fifo(_)));
    watch.follow(&mut registry);
    drop((node, reader));
    // A few polls may happen in between, on a machine that stalls.
    let mut wakes = std::iter::repeat_with(|| watch.wait(Some(LONG)).unwrap()).take(20);
    assert_eq!(wakes.find(|woken| !woken.poll).expect("the kernel reports the exit").peers, [id]);
}

/// A peer that rings without end does not prevent the polling of locks.
#[test]
fn constant_ringing_does_not_prevent_the_poll() {
    let domain = TestDomain::new();
    let _node = domain.stranger();
    let mut registry = domain.registry();
    let noise = domain.base.join("noise");
    let reader = mkfifo(&noise);
    let mut writer = std::fs::File::options().write(true).open(&noise).unwrap();
    writer.write_all(b"!").unwrap();
    let mut watch = Watch::new().unwrap();
    watch.listen(&reader, 3, false).unwrap();
    let until = std::time::Instant::now() + LONG;
    loop {
        watch.follow(&mut registry);
        let woken = watch.wait(Some(LONG)).unwrap();
        assert_eq!(woken.listened, [3]);
        if woken.poll {
            break;
        }
        assert!(std::time::Instant::now() < until, "the poll never comes");
    }
}

/// A process may outlive its node without a goodbye, for example after `execve`.
#[test]
fn new_holder_of_a_name_replaces_the_previous_node() {
    let domain = TestDomain::new();
    let name = NodeName::new("/a").unwrap();
    let first = OwnNode::create(&domain.dir, &name, "rust", "0").unwrap();
    // The node claims to belong to process 1, which continues to live.
    let path = first.folder().join("node");
    let mut bytes = std::fs::read(&path).unwrap();
    let own = format!("\"pid\":{}", std::process::id());
    let at = bytes.windows(own.len()).position(|w| w == own.as_bytes()).unwrap();
    let other = format!("{:<len$}", "\"pid\":1", len = own.len());
    bytes[at..at + own.len()].copy_from_slice(other.as_bytes());
    std::fs::write(&path, bytes).unwrap();
    let old = first.incarnation();
    let mut registry = domain.registry();
    assert!(matches!(registry.peer(old).unwrap().handle, LivenessHandle::PidFd(_)));
    drop(first);
    let second = OwnNode::create(&domain.dir, &name, "rust", "0").unwrap();
    let changes = registry.refresh_only(&[second.incarnation()], None).unwrap();
    assert_eq!(changes.joined, [second.incarnation()]);
    assert_eq!(changes.departed.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), [old]);
    assert_eq!(registry.peers().len(), 1);
}

/// A node that joins while another leaves is notified, even if the leaving node does not know it.
#[test]
fn leaving_node_notifies_all_present_nodes() {
    let domain = TestDomain::new();
    let create =
        |name| OwnNode::create(&domain.dir, &NodeName::new(name).unwrap(), "rust", "0").unwrap();
    let leaves = create("/leaves");
    let comes = create("/comes");
    let id = leaves.incarnation();
    drop(leaves);
    assert_eq!(comes.drain_control().unwrap().nodes, [id]);
}

/// The nodes of a process detect separately that a peer has left, and only the first one sweeps. The last one
/// may see the folder until then.
#[test]
fn departed_node_with_remaining_folder_is_reported_once() {
    let domain = TestDomain::new();
    let node = domain.stranger();
    let id = node.incarnation();
    let stem = node.name().file_stem();
    let mut registry = domain.registry();
    let folder = node.folder().to_owned();
    let header = std::fs::read(folder.join("node")).unwrap();
    drop(node);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("node"), header).unwrap();
    assert_eq!(registry.refresh_only(&[id], None).unwrap().departed.len(), 1);
    // By a check of its name, by a ring with its name, by a full scan.
    let refreshes: [&dyn Fn(&mut Registry) -> Changes; 3] = [
        &|registry| registry.refresh_only(&[], Some(&|named| named == stem)).unwrap(),
        &|registry| registry.refresh_only(&[id], None).unwrap(),
        &|registry| registry.refresh().unwrap(),
    ];
    for refresh in refreshes {
        let changes = refresh(&mut registry);
        assert!(changes.joined.is_empty() && changes.departed.is_empty(), "{changes:?}");
        assert!(changes.unseen.is_empty(), "{changes:?}");
    }
}
