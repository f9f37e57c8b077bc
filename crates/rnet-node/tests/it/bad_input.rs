//! Invalid input returns an error that names the cause, and loses no data.
//!
//! CI runs the tests as root, so owner and mode are used to test permissions. A full tmpfs is a small one
//! that the test mounts, in its own mount namespace where mounting is refused.

use crate::common;

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use common::{LONG, Net, role};
use rnet::{Error, Node, OnFull, PublisherBuilder, limits};

/// Set on machines where mounting is known to be impossible.
const NO_MOUNT: &str = "RNET_TEST_NO_MOUNT";

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    if let Some(role) = role() {
        assert_eq!(role, "full tmpfs");
        let dir = std::env::var_os("RNET_TEST_DIR").unwrap();
        mount_and_fill(Path::new(&dir)).unwrap();
    }
}

#[test]
fn errors_quote_the_invalid_name() {
    let net = Net::new("names");
    let node = net.node("ok");
    for name in ["", "/", "a b", "/a//b", "/a/", "1st", "/é", "a-b", &"x".repeat(300)] {
        let errors = [
            ("topic", node.publisher::<[u8]>(name).open().map(drop).unwrap_err()),
            ("topic", node.subscriber::<[u8]>(name).open().map(drop).unwrap_err()),
            ("node", net.builder(name).open().map(drop).unwrap_err()),
        ];
        for (which, error) in errors {
            assert!(matches!(error, Error::BadName { what, .. } if what == which), "{error:?}");
            assert!(error.to_string().starts_with(&format!("bad {which} name")), "{error}");
        }
    }
    for domain in ["a/b", "..", "a b", &"d".repeat(33)] {
        let error = Node::builder("ok").dir(net.base()).domain(domain).open().unwrap_err();
        assert!(matches!(error, Error::BadName { what: "domain", .. }), "{error:?}");
    }
}

#[test]
fn errors_name_the_invalid_setting() {
    let net = Net::new("settings");
    let node = net.node("ok");
    let publisher = || node.publisher::<[u8]>("/t");
    let error = |publisher: PublisherBuilder<[u8]>| publisher.open().map(drop).unwrap_err();
    let errors = [
        error(publisher().log_len_bytes(1000)),
        error(publisher().transient_local(0)),
        error(publisher().reliable(OnFull::Detach { stall: std::time::Duration::ZERO })),
        node.subscriber::<[u8]>("/t").keep_last(0).open().map(drop).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(&error, Error::BadQos { topic, .. } if topic == "/t"), "{error:?}");
    }
}

#[test]
fn a_message_over_the_limit_is_refused() {
    let net = Net::new("too large");
    let node = net.node("a");
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let len = limits::MAX_MESSAGE_LEN_BYTES + 1;
    let error = publisher.loan(len).map(drop).unwrap_err();
    let limit = limits::MAX_MESSAGE_LEN_BYTES;
    assert_eq!(error, Error::MessageTooLarge { topic: "/t".to_owned(), len, limit });
    publisher.send(b"fits").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"fits");
}

fn refused(net: &Net) -> Error {
    net.builder("a").open().map(drop).unwrap_err()
}

fn domain_dir(net: &Net) -> std::path::PathBuf {
    net.base().join(format!("rnet-{}-t", rustix::process::geteuid().as_raw()))
}

#[test]
fn domain_path_that_is_not_a_directory_is_refused() {
    let net = Net::new("file");
    std::fs::write(domain_dir(&net), "").unwrap();
    let error = refused(&net);
    assert!(matches!(&error, Error::NoPermission { path, .. } if *path == domain_dir(&net)));
    assert!(error.to_string().contains("not a directory"), "{error}");
    // A symlink to another user's directory is refused as well.
    std::fs::remove_file(domain_dir(&net)).unwrap();
    std::os::unix::fs::symlink("/tmp", domain_dir(&net)).unwrap();
    assert!(matches!(refused(&net), Error::NoPermission { .. }));
}

#[test]
fn a_directory_open_to_others_is_refused() {
    let net = Net::new("mode");
    std::fs::create_dir(domain_dir(&net)).unwrap();
    for mode in [0o777, 0o750, 0o701] {
        std::fs::set_permissions(domain_dir(&net), PermissionsExt::from_mode(mode)).unwrap();
        let error = refused(&net);
        assert!(matches!(error, Error::NoPermission { .. }), "{error:?}");
        assert!(error.to_string().contains(&format!("{mode:o}")), "{error}");
    }
    std::fs::set_permissions(domain_dir(&net), PermissionsExt::from_mode(0o700)).unwrap();
    net.node("a");
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let net = Net::new("owner");
    std::fs::create_dir(domain_dir(&net)).unwrap();
    std::fs::set_permissions(domain_dir(&net), PermissionsExt::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(domain_dir(&net), Some(65534), None).unwrap();
        let error = refused(&net);
        assert!(matches!(error, Error::NoPermission { .. }), "{error:?}");
        assert!(error.to_string().contains("user 65534"), "{error}");
    } else {
        // A user that cannot change the owner can at least remove the write permission.
        std::fs::set_permissions(domain_dir(&net), PermissionsExt::from_mode(0o500)).unwrap();
        assert!(matches!(refused(&net), Error::NoPermission { .. }));
    }
}

#[test]
fn missing_or_unwritable_base_directory_is_named() {
    let net = Net::new("no base");
    let nowhere = net.base().join("nowhere/at/all");
    let error = Node::builder("a").dir(&nowhere).open().unwrap_err();
    assert!(error.to_string().contains("nowhere/at/all"), "{error}");
    // Not even root can create directories here.
    let error = Node::builder("a").dir("/proc").open().unwrap_err();
    assert!(error.to_string().contains("/proc"), "{error}");
}

/// While an old node lives in the domain. `leftovers.rs` tests a domain without live nodes.
#[test]
fn another_layout_version_is_refused() {
    let net = Net::new("version");
    let living = net.node("living");
    let path = domain_dir(&net).join("VERSION");
    std::fs::write(&path, "999\n").unwrap();
    let ours = rnet::LAYOUT_VERSION;
    let expected = Error::LayoutVersion { path: path.clone(), found: 999, ours };
    assert_eq!(refused(&net), expected);
    let observe = || rnet::inspect::Domain::open(Some("t"), Some(net.base().into()), None);
    assert_eq!(observe().unwrap_err(), expected);
    std::fs::write(&path, "what?").unwrap();
    assert!(matches!(refused(&net), Error::LayoutVersion { .. }));
    // An observer does not replace the layout.
    drop(living);
    assert!(matches!(observe(), Err(Error::LayoutVersion { found: 0, .. })));
    net.node("a");
}

/// Sends until the file system is full. The error names it, no message is lost, and freed space restores
/// service.
fn fill(base: &Path) {
    let node = Node::builder("a").dir(base).domain("t").open().unwrap();
    let publisher = |topic: &str| {
        node.publisher::<[u8]>(topic)
            .reliable(OnFull::Refuse)
            .log_len_bytes(limits::MIN_LOG_LEN_BYTES)
            .large_depth(1000)
    };
    let larger = publisher("/log").log_len_bytes(4 << 20);
    let mut publisher = publisher("/camera").open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/camera").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut held = Vec::new();
    let error = loop {
        match publisher.send(&[held.len() as u8; 100_000]) {
            Ok(()) => held.push(subscriber.recv_timeout(LONG).unwrap().into_owned()),
            Err(error) => break error,
        }
    };
    assert!(!held.is_empty());
    let Error::OutOfMemory { topic, needed_bytes, why, .. } = &error else { panic!("{error:?}") };
    assert!(topic == "/camera" && *needed_bytes >= 100_000 && why.contains("full"), "{error}");
    for (i, sample) in held.iter().enumerate() {
        assert_eq!(**sample, [i as u8; 100_000]);
    }
    // An allocation of new memory fails as well, with the same error.
    let error = larger.open().map(drop).unwrap_err();
    assert!(matches!(&error, Error::OutOfMemory { topic, .. } if topic == "/log"), "{error:?}");
    // Small messages continue; large ones continue once space is free.
    publisher.send(b"small").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"small");
    held.clear();
    publisher.send(&[7; 100_000]).unwrap();
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [7; 100_000]);
    assert_eq!(subscriber.lost().total(), 0);
}

fn mount_and_fill(dir: &Path) -> std::io::Result<()> {
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs"])
        .arg(dir)
        .status()?;
    if !mounted.success() {
        return Err(std::io::Error::other(format!("mount: {mounted}")));
    }
    let filled = std::panic::catch_unwind(|| fill(dir));
    let unmounted = Command::new("umount").arg(dir).status()?;
    if let Err(panic) = filled {
        std::panic::resume_unwind(panic);
    }
    assert!(unmounted.success());
    Ok(())
}

#[test]
fn full_tmpfs_is_named_and_loses_no_message() {
    let net = Net::new("full tmpfs");
    let Err(refused) = mount_and_fill(net.base()) else { return };
    // If mounting is not permitted, a child process in its own mount namespace runs the test.
    let child = Command::new("unshare")
        .arg("-rm")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "bad_input::child_entry", "--ignored", "--nocapture"])
        .env("RNET_TEST_ROLE", "full tmpfs")
        .env("RNET_TEST_DIR", net.base())
        .status();
    if child.as_ref().is_ok_and(std::process::ExitStatus::success) {
        return;
    }
    let what = format!("a full tmpfs could not be tested: {refused}; with unshare: {child:?}");
    assert!(std::env::var(NO_MOUNT).is_ok_and(|v| v == "1"), "{what}; {NO_MOUNT}=1 accepts that");
    eprintln!("NOT TESTED: {what}");
}
