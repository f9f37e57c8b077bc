//! A start in a directory with an unexpected state: after a power cut, with another layout, with foreign
//! files in it. The start works, or its error names the obstacle.

use crate::common;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use common::{LONG, Net, eventually};
use rnet::schema::compile_text;
use rnet::{Dynamic, Error};

/// Kinds of objects that may occupy a domain's name.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leftover {
    Missing,
    Empty,
    Garbage,
    Half,
    Folder,
    Link,
    DanglingLink,
    Fifo,
}
use Leftover::{DanglingLink, Empty, Fifo, Folder, Garbage, Half, Link, Missing};

const LEFTOVERS: [Leftover; 8] = [Missing, Empty, Garbage, Half, Folder, Link, DanglingLink, Fifo];

fn put(path: &Path, thing: Leftover) {
    // A FIFO is not read, because that would block.
    let before = if path.is_file() { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    if path.is_dir() {
        std::fs::remove_dir_all(path).unwrap();
    } else {
        let _ = std::fs::remove_file(path);
    }
    match thing {
        Missing => {}
        Empty => std::fs::write(path, []).unwrap(),
        Garbage => std::fs::write(path, [0xa5; 5000]).unwrap(),
        Half => std::fs::write(path, &before[..before.len() / 2]).unwrap(),
        Folder => std::fs::create_dir(path).unwrap(),
        Link => std::os::unix::fs::symlink("/dev/null", path).unwrap(),
        DanglingLink => std::os::unix::fs::symlink("nowhere", path).unwrap(),
        Fifo => {
            let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
            // SAFETY: the name is a C string.
            assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        }
    }
}

/// Two nodes communicate under the names of dead nodes.
fn talk(net: &Net) -> Result<(), Error> {
    let (a, b) = (net.builder("a").open()?, net.builder("b").open()?);
    let mut publisher = a.publisher::<[u8]>("/t").open()?;
    let mut subscriber = b.subscriber::<[u8]>("/t").open()?;
    publisher.wait_for_subscribers_timeout(1, LONG)?;
    for len in [8, 100_000] {
        publisher.send(&vec![3; len])?;
        assert_eq!(*subscriber.recv_timeout(LONG)?, vec![3; len]);
    }
    Ok(())
}

/// The domain of two nodes that died while they communicated: a copy of its directory, in which no process
/// holds a lock.
fn dead_domain(net: &Net) -> Vec<PathBuf> {
    fn copy(from: &Path, to: &Path, made: &mut Vec<PathBuf>) {
        use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
        std::fs::DirBuilder::new().mode(0o700).create(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().flatten() {
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                copy(&from, &to, made);
            } else if kind.is_fifo() {
                put(&to, Fifo);
            } else {
                std::fs::copy(&from, &to).unwrap();
            }
            made.push(to);
        }
    }
    let living = Net::new("model");
    let (a, b) = (living.node("a"), living.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = b.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&[1; 10_000]).unwrap();
    subscriber.recv_timeout(LONG).unwrap();
    let text = r#"syntax = "proto3"; message Level { double volt = 1; }"#;
    let level = compile_text("level.proto", text).unwrap().schema("Level").unwrap();
    let _typed = a.publisher::<Dynamic>("/typed").schema(&level).open().unwrap();
    let mut made = Vec::new();
    copy(&living.inspect_path(), &net.inspect_path(), &mut made);
    made.sort();
    let hash = level.hash().to_string();
    assert!(made.iter().any(|path| path.ends_with(format!("t{hash}"))), "a type is among them");
    made
}

/// Replaces each file and folder of a domain in turn with each wrong kind of object.
#[test]
fn start_with_any_object_in_place_of_any_file() {
    let count = dead_domain(&Net::new("count")).len();
    assert!(count >= 12, "only {count} objects of the domain were found");
    let (mut worked, mut refused) = (0, Vec::new());
    for at in 0..count {
        for thing in LEFTOVERS {
            let net = Net::new("mutated");
            let made = dead_domain(&net);
            // Node folders have different names in each domain, in the same order.
            let path = &made[at];
            put(path, thing);
            match talk(&net) {
                Ok(()) => {
                    worked += 1;
                    let nodes = net.inspect_path().join("nodes");
                    let left = || std::fs::read_dir(&nodes).unwrap().flatten().count();
                    eventually("the dead nodes are swept", || left() == 0);
                }
                Err(error) => {
                    let said = error.to_string();
                    let short = path.strip_prefix(net.inspect_path()).unwrap();
                    // The error names the obstacle.
                    assert!(said.contains(&*short.to_string_lossy()), "{path:?} {thing:?}: {said}");
                    refused.push(format!("{} as {thing:?}: {said}", short.display()));
                }
            }
        }
    }
    eprintln!("{worked} starts worked, {} were refused:\n{}", refused.len(), refused.join("\n"));
    // Only objects that a start cannot remove without knowing their owner: the three of the domain itself,
    // and the requested names.
    let own = |line: &String| {
        ["VERSION ", "names ", "nodes ", "names/"].iter().any(|o| line.starts_with(o))
    };
    assert!(refused.iter().all(own), "{refused:#?}");
    assert!(worked > count * LEFTOVERS.len() * 3 / 4);
}

/// Without a live node, the directory is taken over, whatever `VERSION` contains.
#[test]
fn directory_of_another_layout_is_taken_over_without_live_nodes() {
    for version in ["1\n", "2\n", "999\n", "", "\0\0", "two\n", "4294967296\n"] {
        let net = Net::new("other layout");
        dead_domain(&net);
        let file = net.inspect_path().join("VERSION");
        std::fs::write(&file, version).unwrap();
        // Left by a process that was killed while it wrote the version.
        let draft = net.inspect_path().join("@0123456789abcdef");
        std::fs::write(&draft, "2").unwrap();
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        std::fs::File::open(&draft).unwrap().set_modified(long_ago).unwrap();
        talk(&net).unwrap();
        let now = std::fs::read_to_string(&file).unwrap();
        assert_eq!(now, format!("{}\n", rnet::LAYOUT_VERSION));
        let inside = std::fs::read_dir(net.inspect_path()).unwrap().count();
        assert_eq!(inside, 3, "a draft of VERSION was left");
    }
}

/// With a live node, the start reports the version and its path, and changes nothing.
#[test]
fn directory_of_another_layout_is_refused_with_live_nodes() {
    let net = Net::new("other layout, alive");
    let old = net.node("old");
    let path = net.inspect_path().join("VERSION");
    std::fs::write(&path, "1\n").unwrap();
    let error = net.builder("new").open().unwrap_err();
    let ours = rnet::LAYOUT_VERSION;
    assert_eq!(error, Error::LayoutVersion { path: path.clone(), found: 1, ours });
    assert!(error.to_string().contains("the next start replaces it"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
    drop(old);
    drop(net.node("new"));
}

/// Many processes take over one directory at once: all of them use it afterwards, and communicate.
#[test]
fn directory_can_be_taken_over_concurrently() {
    for _ in 0..10 {
        let net = Net::new("taken over at once");
        dead_domain(&net);
        std::fs::write(net.inspect_path().join("VERSION"), "1\n").unwrap();
        let barrier = std::sync::Barrier::new(4);
        let nodes: Vec<rnet::Node> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..4)
                .map(|n| {
                    let (net, barrier) = (&net, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        net.node(&format!("n{n}"))
                    })
                })
                .collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        eventually("all see each other", || net.inspect().nodes.len() == 4);
        talk(&net).unwrap();
        drop(nodes);
    }
}
