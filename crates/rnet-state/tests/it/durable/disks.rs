//! A full disk, or a directory that cannot be written: the `set` returns an error and changes nothing.

use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use rnet::Error;
use rnet::state::Value;

use super::{reboot, set};
use crate::common::{Child, LONG, Net, tell};

fn storage(done: rnet::Result<u64>, word: &str) {
    match done {
        Err(Error::Storage { path, why }) => {
            assert!(why.contains(word), "{}: {why}", path.display());
        }
        other => panic!("{other:?} instead of a storage error"),
    }
}

#[test]
fn set_with_an_unusable_directory_fails_and_changes_nothing() {
    let net = Net::new("no-place");
    std::fs::write(net.keep(), b"a file").unwrap();
    let node = net.node("one");
    let state = node.state().unwrap();
    state.set("/a", 1).unwrap();
    let revision = state.revision();
    storage(state.put("/a").durable(true).set(2), "directory");
    storage(state.put("/b").durable(true).set(2), "directory");
    assert_eq!(state.get("/a").unwrap(), Some(Value::Int(1)));
    assert_eq!(state.get("/b").unwrap(), None);
    assert!(!state.is_durable("/a").unwrap());
    assert_eq!(state.revision(), revision);
    // Keys that are not durable still work; durable ones work once the directory exists.
    state.set("/a", 3).unwrap();
    std::fs::remove_file(net.keep()).unwrap();
    set(&state, "/a", 4);
    drop((state, node));
    reboot(&net);
    let state = net.node("two").state().unwrap();
    assert_eq!(state.get("/a").unwrap(), Some(Value::Int(4)));
}

/// Mounts a small file system over the state directory, visible only to this process.
fn mount(at: &Path) -> bool {
    std::fs::create_dir(at).unwrap();
    let at = CString::new(at.to_str().unwrap()).unwrap();
    let (root, tmpfs, options) = (c"/".as_ptr(), c"tmpfs".as_ptr(), c"size=16m,mode=700".as_ptr());
    let none = std::ptr::null();
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: creates a mount namespace for this thread and the threads that it starts.
    let mut done = unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0;
    // SAFETY: the strings are NUL-terminated and outlive the call.
    done = done && unsafe { libc::mount(none, root, none, private, none.cast()) } == 0;
    // SAFETY: as above.
    done = done && unsafe { libc::mount(tmpfs, at.as_ptr(), tmpfs, 0, options.cast()) } == 0;
    done
}

/// Fills the disk, writes, frees space, writes.
pub fn full(net: &Net) {
    if !mount(&net.keep()) {
        tell(&format!("NOT RUN: {}", std::io::Error::last_os_error()));
        return;
    }
    {
        let node = net.node("one");
        let state = node.state().unwrap();
        set(&state, "/small", 1);
        for key in ["/params/one/narrow", "/params/one/ends"] {
            state.put(key).durable(true).ttl(Duration::from_secs(600)).set(9.0).unwrap();
        }
        set(&state, "/params/one/narrow", 9.0);
        let mut watch = state.watch("/alive").unwrap();
        state.put("/alive").durable(true).ttl(Duration::from_secs(2)).set(true).unwrap();
        assert!(watch.recv_timeout(LONG).unwrap().entry.is_some());
        let filler = net.keep().join("filler");
        let mut file = File::create(&filler).unwrap();
        while file.write(&[7; 4096]).is_ok() {}
        let large = vec![1u8; 1 << 20];
        for _ in 0..3 {
            storage(state.put("/small").durable(true).change_type().set(large.clone()), "full");
            assert_eq!(state.get("/small").unwrap(), Some(Value::Int(1)));
            storage(state.put("/large").durable(true).set(large.clone()), "full");
            assert_eq!(state.get("/large").unwrap(), None);
        }
        // Bounds that the stored value violates, and a time to live that the disk keeps.
        let (tell, receiver) = std::sync::mpsc::channel();
        let narrow = node.param("/narrow").default(1.0).max(5.0).durable();
        let narrow = narrow.on_refused(move |refused| tell.send(refused.value.clone()).unwrap());
        let narrow = narrow.declare().unwrap();
        assert_eq!((narrow.get(), receiver.try_recv()), (Ok(1.0), Ok("9.0".to_owned())));
        let ends = node.param("/ends").default(1.0).durable().read_only().declare().unwrap();
        let entry = state.entry(ends.key()).unwrap().unwrap();
        assert_eq!((ends.get(), entry.expires_boot_ns, entry.durable), (Ok(9.0), None, true));
        // The dead-man switch is reported when readers lose the key, whatever the state of the disk.
        let gone = watch.recv_timeout(LONG).unwrap();
        assert_eq!((gone.entry.is_none(), gone.expired, gone.skipped), (true, Some(true), Some(0)));
        assert_eq!(state.get("/alive").unwrap(), None);
        storage(state.put("/alive").durable(true).set(true), "full");
        assert_eq!(watch.try_recv().unwrap(), None, "the deletion is reported once");
        // Its space is free again after it closes, too.
        drop(file);
        std::fs::remove_file(&filler).unwrap();
        set(&state, "/large", large);
        set(&state, "/small", 2);
        assert_eq!((narrow.get(), ends.get()), (Ok(1.0), Ok(9.0)));
    }
    reboot(net);
    let state = net.node("two").state().unwrap();
    // The store was created on the disk as declared before.
    let ends = state.entry("/params/one/ends").unwrap().unwrap();
    assert_eq!((ends.value, ends.expires_boot_ns), (Value::Float(9.0), None));
    assert_eq!(state.get("/params/one/narrow").unwrap(), None);
    assert_eq!(state.get("/small").unwrap(), Some(Value::Int(2)));
    assert!(matches!(state.get("/large").unwrap(), Some(Value::Bytes(b)) if b.len() == 1 << 20));
    assert_eq!(state.disk_reports().unwrap(), [""; 0]);
    tell("done");
}

#[test]
fn set_on_a_full_disk_fails_and_changes_nothing() {
    let net = Net::new("full");
    let mut child = Child::spawn(&net, "full");
    let said = child.hear();
    match said.strip_prefix("NOT RUN: ") {
        Some(why) => crate::common::not_run(why),
        None => assert_eq!(said, "done"),
    }
    child.finish();
}
