//! A file system without free space: a tmpfs of a few megabytes, in the child's own mount namespace.

use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use rnet::{Dynamic, Error, Node, OnFull, Subscriber};

use super::{is_limit, is_out_of_memory, level, play, refused};
use crate::common::{Child, LONG, Net, eventually, tell};

/// Length of the file of a publisher with the smallest log: header, description, log.
const PUBLISHER_LEN: u64 = 4096 + 4096 + rnet::limits::MIN_LOG_LEN_BYTES;

/// Mounts a tmpfs over the test's directory, visible only to this process; reports if it cannot.
fn mount(net: &Net, options: &str) -> bool {
    let base = CString::new(net.base().to_str().unwrap()).unwrap();
    let options = CString::new(options).unwrap();
    let (root, tmpfs) = (c"/".as_ptr(), c"tmpfs".as_ptr());
    let none = std::ptr::null();
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: creates a mount namespace for this thread and the threads that it starts.
    let mut done = unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0;
    // SAFETY: the strings are NUL-terminated and outlive the call.
    done = done && unsafe { libc::mount(none, root, none, private, none.cast()) } == 0;
    // SAFETY: as above.
    done = done
        && unsafe { libc::mount(tmpfs, base.as_ptr(), tmpfs, 0, options.as_ptr().cast()) } == 0;
    if !done {
        let why = std::io::Error::last_os_error();
        tell(&format!("NOT RUN: no file system may be mounted here: {why}"));
    }
    done
}

/// A file that takes all free space.
struct Filler {
    path: PathBuf,
    len: u64,
}

impl Filler {
    fn fill(base: &Path) -> Filler {
        let path = base.join("filler");
        let mut file = File::create(&path).unwrap();
        let mut len = 0;
        while let Ok(written) = file.write(&[7; 4096]) {
            len += written as u64;
        }
        assert!(len > 0);
        Filler { path, len }
    }

    /// Takes `bytes` again.
    fn take(&mut self, bytes: u64) {
        let mut file = File::options().append(true).open(&self.path).unwrap();
        file.write_all(&vec![7; bytes as usize]).unwrap();
        self.len += bytes;
    }

    /// Frees `bytes`.
    fn give(&mut self, bytes: u64) {
        self.len -= bytes;
        File::options().write(true).open(&self.path).unwrap().set_len(self.len).unwrap();
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).unwrap();
    }
}

fn files_below(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path()));
        }
        found.push(entry.path());
    }
    found.sort();
    found
}

fn reader(node: &Node, topic: &str) -> Subscriber<[u8]> {
    node.subscriber(topic).reliable().open().unwrap()
}

pub(crate) fn full(net: &Net) {
    if !mount(net, "size=4m") {
        return;
    }
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Refuse)
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .open()
        .unwrap();
    let mut subscriber = reader(&b, "/t");
    let mut lonely = reader(&b, "/lonely");
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&[1; 50_000]).unwrap();
    publisher.send(b"before").unwrap();
    let mut filler = Filler::fill(net.base());
    let before = files_below(net.base());

    // Each operation that needs space returns an error and leaves nothing behind.
    let full = ["its file system is full", "RNET_DIR"];
    is_out_of_memory(&refused(net.builder("c").open()), "/names/c", &full);
    is_out_of_memory(
        &refused(
            a.publisher::<[u8]>("/new")
                .reliable(OnFull::Refuse)
                .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
                .open(),
        ),
        "/new",
        &full,
    );
    is_out_of_memory(&refused(a.subscriber::<[u8]>("/new").open()), "/new", &full);
    let typed = |node: &Node| {
        node.publisher::<Dynamic>("/new")
            .reliable(OnFull::Refuse)
            .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
            .schema(&level())
            .open()
    };
    is_out_of_memory(&refused(typed(&a)), "/new", &full);
    is_out_of_memory(
        &refused(a.subscriber::<Dynamic>("/new").schema(&level()).open()),
        "/new",
        &full,
    );
    let error = refused(publisher.send(&[2; 300_000]));
    is_out_of_memory(&error, "/t", &full);
    assert!(matches!(error, Error::OutOfMemory { limit_bytes: 4_194_304, .. }), "{error}");
    is_out_of_memory(&refused(publisher.loan(400_000).map(drop)), "/t", &full);
    assert_eq!(files_below(net.base()), before);

    // Operations that need no space continue, and nothing is lost.
    publisher.send(b"while").unwrap();
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [1; 50_000]);
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"before");
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"while");
    publisher.send(&[3; 50_000]).unwrap();
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [3; 50_000]);
    assert_eq!(subscriber.lost().total(), 0);

    // Space for the type, but not for the endpoint: the type is complete, and available for the next one.
    filler.give(4096);
    is_out_of_memory(&refused(typed(&a)), "/new", &full);
    let new = |before: &[PathBuf]| {
        let now = files_below(net.base()).into_iter();
        now.filter(|path| !before.contains(path)).collect::<Vec<_>>()
    };
    let kept = new(&before);
    assert!(kept.len() == 1 && kept[0].ends_with(format!("t{}", level().hash())), "{kept:?}");
    filler.give(PUBLISHER_LEN);
    drop(typed(&a).unwrap());
    assert_eq!(new(&before), kept);
    filler.take(PUBLISHER_LEN);

    // Space for the publisher, but not for the page of its subscriber.
    filler.give(PUBLISHER_LEN);
    let mut second = a
        .publisher::<[u8]>("/lonely")
        .reliable(OnFull::Refuse)
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .open()
        .unwrap();
    is_out_of_memory(&refused(lonely.recv_timeout(LONG).map(drop)), "/lonely", &full);
    assert_eq!(lonely.publisher_count(), 0);
    drop(filler);
    // By itself: no event reports free space.
    second.wait_for_subscribers_timeout(1, LONG).unwrap();
    second.send(b"room").unwrap();
    assert_eq!(&*lonely.recv_timeout(LONG).unwrap(), b"room");
    publisher.send(&[2; 300_000]).unwrap();
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [2; 300_000]);
    let c = net.node("c");
    drop((reader(&c, "/new"), c));
    drop((second, lonely, publisher, subscriber, a, b));
    let uid = rustix::process::geteuid().as_raw();
    let domain = net.base().join(format!("rnet-{uid}-t"));
    let left = ["VERSION", "names", "nodes"].map(|name| domain.join(name));
    assert_eq!(files_below(&domain), left);
    tell("done");
}

pub(crate) fn a_will_without_room(net: &Net) {
    if !mount(net, "size=256k") {
        return;
    }
    let node = net.node("a");
    // Allocates the page for the list.
    drop(
        node.publisher::<[u8]>("/t")
            .reliable(OnFull::Refuse)
            .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
            .open()
            .unwrap(),
    );
    let mut filler = Filler::fill(net.base());
    filler.give(PUBLISHER_LEN);
    let before = files_below(net.base());
    let error = refused(
        node.publisher::<[u8]>("/t")
            .reliable(OnFull::Refuse)
            .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
            .last_will(&b"gone"[..])
            .open(),
    );
    is_out_of_memory(&error, "/t", &["its file system is full"]);
    assert_eq!(files_below(net.base()), before);
    filler.give(3 * 4096);
    let mut publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Refuse)
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .last_will(&b"gone"[..])
        .open()
        .unwrap();
    // All of its memory is allocated, although the file system is full.
    publisher.set_last_will(&[7; 4096]).unwrap();
    publisher.set_last_will(&[8; 4096]).unwrap();
    drop((publisher, filler));
    tell("done");
}

pub(crate) fn full_at_the_start(net: &Net) {
    if !mount(net, "size=256k") {
        return;
    }
    let filler = Filler::fill(net.base());
    let error = refused(net.builder("a").open());
    is_out_of_memory(&error, "VERSION", &["its file system is full", "RNET_DIR"]);
    drop(filler);
    let node = net.node("a");
    // The node is complete: its first endpoint needs a page for the list, and its file.
    let mut filler = Filler::fill(net.base());
    for pages in 0..8 {
        let before = files_below(net.base());
        match node
            .publisher::<[u8]>("/t")
            .reliable(OnFull::Refuse)
            .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
            .open()
        {
            Ok(publisher) => {
                assert!(pages >= 7, "not with {pages} pages");
                drop((publisher, filler));
                tell("done");
                return;
            }
            Err(error) => is_out_of_memory(&error, "", &["its file system is full"]),
        }
        assert_eq!(files_below(net.base()), before, "{pages}");
        filler.give(4096);
    }
    panic!("seven pages should have been enough");
}

pub(crate) fn no_inodes(net: &Net) {
    if !mount(net, "size=16m,nr_inodes=40") {
        return;
    }
    let words = ["files on this file system", "nr_inodes"];
    let node = net.node("a");
    let mut publishers = Vec::new();
    let error = loop {
        let topic = format!("/t{}", publishers.len());
        match node
            .publisher::<[u8]>(&topic)
            .reliable(OnFull::Refuse)
            .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
            .open()
        {
            Ok(publisher) => publishers.push(publisher),
            Err(error) => break error,
        }
    };
    is_limit(&error, &words);
    is_limit(&refused(net.builder("b").open()), &words);
    is_limit(&refused(publishers[0].send(&[1; 10_000])), &words);
    publishers[0].send(b"small").unwrap();
    publishers.truncate(publishers.len() - 6);
    publishers[0].send(&[1; 10_000]).unwrap();
    drop(net.node("b"));
    tell("done");
}

fn in_a_child(role: &str) {
    let net = Net::new(role);
    let mut child = Child::spawn(&net, role);
    play(&mut child);
    child.finish();
    // The file system was private to the child: nothing was ever created here.
    eventually("nothing is left", || std::fs::read_dir(net.base()).unwrap().count() == 0);
}

#[test]
fn a_full_file_system() {
    in_a_child("tmpfs");
}

#[test]
fn last_will_without_space_is_refused_at_open() {
    in_a_child("will");
}

#[test]
fn a_file_system_that_is_full_from_the_start() {
    in_a_child("start");
}

#[test]
fn a_file_system_without_inodes() {
    in_a_child("inodes");
}

#[test]
fn file_system_without_space_for_late_joiner_history() {
    in_a_child("promise");
}

#[test]
fn a_death_in_a_full_file_system() {
    in_a_child("death");
}

/// A death is recorded in the space that the dead node frees.
pub(crate) fn a_death_without_room(net: &Net) {
    if !mount(net, "size=4m") {
        return;
    }
    let _living = net.node("a");
    let inside = |folder: &str| {
        let entries = std::fs::read_dir(net.inspect_path().join(folder));
        entries.into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let dies = || {
        let mut victim = Child::spawn(net, "victim");
        victim.expect("there");
        assert_eq!(inside("nodes").count(), 2);
        let filler = Filler::fill(net.base());
        victim.kill();
        eventually("the dead node is swept", || inside("nodes").count() == 1);
        drop(filler);
    };
    for _ in 0..2 {
        dies();
        // The sweeper records the death before and after.
        let is_noted = || {
            let mut notes = inside("deaths").map(std::fs::read);
            notes.next().is_some_and(|text| text.is_ok_and(|text| !text.is_empty()))
        };
        eventually("its death is recorded", is_noted);
        assert_eq!(net.inspect().died, ["/victim"]);
    }
    tell("done");
}

pub(crate) fn large_messages_for_late_joiners(net: &Net) {
    const LEN: usize = 65_536;
    if !mount(net, "size=4m") {
        return;
    }
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").transient_local(3).open().unwrap();
    (0..3).for_each(|i| publisher.send(&[i; LEN]).unwrap());
    let mut late = b.subscriber::<[u8]>("/t").transient_local().keep_all().open().unwrap();
    let mut filler = Filler::fill(net.base());
    let error = refused(publisher.send(&[3; LEN]));
    let words =
        ["its file system is full", "RNET_DIR", "transient_local keeps the last 3 messages"];
    is_out_of_memory(&error, "/t", &words);
    for i in 0..3 {
        assert_eq!(*late.recv_timeout(LONG).unwrap(), [i; LEN]);
    }
    assert!(late.try_recv().unwrap().is_none());
    filler.give(LEN as u64 + 16_384);
    // One more chunk is always enough.
    for i in 3..10 {
        publisher.send(&[i; LEN]).unwrap();
        assert_eq!(*late.recv_timeout(LONG).unwrap(), [i; LEN]);
        assert!(late.try_recv().unwrap().is_none());
    }
    drop(filler);
    let mut late = b.subscriber::<[u8]>("/t").transient_local().keep_all().open().unwrap();
    for i in 7..10 {
        assert_eq!(*late.recv_timeout(LONG).unwrap(), [i; LEN]);
    }
    tell("done");
}

#[test]
fn file_system_without_space_for_log_growth() {
    in_a_child("growth");
}

/// A log grows if memory is available and keeps its size otherwise. A full file system causes an error or a
/// counted loss at the affected message, and never ends a process.
pub(crate) fn a_log_that_cannot_grow(net: &Net) {
    if !mount(net, "size=4m") {
        return;
    }
    let (a, b) = (net.node("a"), net.node("b"));
    let mut held = a.publisher::<[u8]>("/held").reliable(OnFull::Refuse).open().unwrap();
    let mut kept = a.publisher::<[u8]>("/kept").transient_local(40).open();
    let kept = kept.as_mut().unwrap();
    let mut lossy = a.publisher::<[u8]>("/lossy").open().unwrap();
    let mut reads = reader(&b, "/held");
    let mut misses = b.subscriber::<[u8]>("/lossy").keep_all().open().unwrap();
    held.wait_for_subscribers_timeout(1, LONG).unwrap();
    lossy.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut filler = Filler::fill(net.base());

    let sent = (0..).take_while(|_| held.send(&[1; 1000]).is_ok()).count();
    assert_eq!(sent, (16 << 10) / 1016, "as many messages as 16 KiB hold");
    let error = refused(held.send(&[1; 1000]));
    assert!(matches!(error, Error::Full { .. }), "{error}");
    (0..100).for_each(|_| lossy.send(&[1; 1000]).unwrap());
    let mut got = 0;
    while misses.try_recv().unwrap().is_some() {
        got += 1;
    }
    assert_eq!(got + misses.lost().overrun, 100);
    // Messages promised to late joiners are not evicted.
    let error = (0..100).find_map(|_| kept.send(&[1; 1000]).err()).unwrap();
    is_out_of_memory(&error, "/kept", &["its file system is full", "RNET_DIR"]);

    filler.give(2 << 20);
    eventually("the log grows again", || {
        (0..sent).for_each(|_| drop(reads.try_recv()));
        (0..2 * sent).all(|_| held.send(&[1; 1000]).is_ok())
    });
    eventually("the kept messages fit again", || (0..100).all(|_| kept.send(&[1; 1000]).is_ok()));
    let mut late = b.subscriber::<[u8]>("/kept").transient_local().keep_all().open().unwrap();
    (0..40).for_each(|_| assert!(late.recv_timeout(LONG).is_ok()));
    tell("done");
}
