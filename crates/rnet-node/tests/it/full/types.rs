//! No file descriptor is available to write a type's definition, or to read a peer's.

use std::os::fd::AsRawFd;
use std::time::Duration;

use rnet::{Dynamic, Error};

use super::limits::{Limited, left_open, open_files};
use super::{is_limit, level};
use crate::common::{Child, LONG, Net, eventually, orders, tell};

/// The files of the child's node, by name.
fn files_of_child(net: &Net) -> Vec<String> {
    let folders = std::fs::read_dir(net.inspect_path().join("nodes")).unwrap().flatten();
    let own = folders.filter(|f| f.file_name().to_string_lossy().starts_with("child@"));
    let files = own.flat_map(|f| std::fs::read_dir(f.path()).into_iter().flatten().flatten());
    files.map(|file| file.file_name().into_string().unwrap()).collect()
}

/// No other node can sweep: the node removes its types itself, by name.
fn lonely_node_without_files(net: &Net) {
    let node = net.builder("lonely").domain("alone").open().unwrap();
    let nodes = node.domain_path().join("nodes");
    drop(
        node.publisher::<Dynamic>("/t")
            .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
            .schema(&level())
            .open()
            .unwrap(),
    );
    let folder = std::fs::read_dir(&nodes).unwrap().next().unwrap().unwrap().path();
    assert!(folder.join(format!("t{}", level().hash())).exists());
    let limited = Limited::to(libc::RLIMIT_NOFILE, 0);
    drop(node);
    drop(limited);
    assert!(!folder.exists(), "the folder cannot be listed");
}

/// Raises the limit by one file at a time until everything works: each step works or names the limit, and
/// resumes by itself once descriptors are free. The loop starts over until each case occurred, because the
/// node's threads open and close files meanwhile, so more descriptors may be free than the limit leaves.
pub(crate) fn few_files(net: &Net) {
    let _orders = orders();
    let check = |error: &Error| is_limit(error, &["open files in this process", "ulimit -n"]);
    // Inherited files may have any numbers, and the limit applies to numbers.
    let highest = open_files().pop().unwrap();
    let plug = || std::fs::File::open("/dev/null").unwrap();
    let _plugs: Vec<_> = std::iter::repeat_with(plug)
        .take_while(|file| (file.as_raw_fd() as u64) < highest)
        .collect();
    lonely_node_without_files(net);
    // Opens the files that a process opens only once.
    drop(net.node("child"));
    let before = open_files();
    let (mut failed, mut short, mut worked) = (0, 0, 0);
    for more in (0..20).cycle().take(400) {
        let node = net.node("child");
        let top = open_files().pop().unwrap();
        // Files closed meanwhile have left numbers free.
        let plugs: Vec<_> = std::iter::repeat_with(plug)
            .take_while(|file| file.as_raw_fd() as u64 <= top)
            .collect();
        let limited = Limited::to(libc::RLIMIT_NOFILE, top + 1 + more);
        let made = node
            .publisher::<Dynamic>("/up")
            .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
            .schema(&level())
            .open()
            .and_then(|publisher| {
                Ok((publisher, node.subscriber::<Dynamic>("/down").schema(&level()).open()?))
            });
        let (mut publisher, mut subscriber) = match made {
            Ok(made) => made,
            Err(error) => {
                check(&error);
                failed += 1;
                // Without a descriptor to list the folder, the node removes them by name.
                drop((node, limited, plugs));
                assert_eq!(files_of_child(net), Vec::<String>::new(), "with {more} files");
                assert_eq!(left_open(&before), [], "with {more} files");
                continue;
            }
        };
        let mut limited = Some(limited);
        let mut was_short = false;
        let mut lift = |error: Error| {
            check(&error);
            was_short = true;
            limited = None;
        };
        loop {
            match subscriber.wait_for_publishers_timeout(1, LONG) {
                Ok(()) => break,
                Err(error) => lift(error),
            }
        }
        loop {
            match publisher.wait_for_subscribers_timeout(1, LONG) {
                Ok(()) => break,
                Err(error) => lift(error),
            }
        }
        publisher.send(&Dynamic::new(&level())).unwrap();
        loop {
            match subscriber.recv_timeout(LONG) {
                Ok(_) => break,
                Err(error) => lift(error),
            }
        }
        short += u32::from(was_short);
        worked += u32::from(!was_short);
        drop((publisher, subscriber, node, limited, plugs));
        assert_eq!(files_of_child(net), Vec::<String>::new(), "with {more} files");
        assert_eq!(left_open(&before), [], "with {more} files");
        if failed > 0 && short > 0 && worked >= 3 {
            break;
        }
    }
    assert!(failed > 0 && short > 0 && worked >= 3, "{failed} {short} {worked}");
    tell("done");
}

#[test]
fn types_without_file_descriptors() {
    let net = Net::new("types without files");
    let node = net.node("parent");
    let mut down = node
        .publisher::<Dynamic>("/down")
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .schema(&level())
        .open()
        .unwrap();
    let mut up = node.subscriber::<Dynamic>("/up").schema(&level()).open().unwrap();
    let mut child = Child::spawn(&net, "types");
    let mut received = 0;
    eventually("the child is done", || {
        // The child waits for one message of each incarnation.
        let _ = down.send(&Dynamic::new(&level()));
        received += u32::from(up.recv_timeout(Duration::from_millis(1)).is_ok());
        child.heard().is_some_and(|line| {
            assert_eq!(line, "done");
            true
        })
    });
    assert!(received >= 3, "{received}");
    child.finish();
}
