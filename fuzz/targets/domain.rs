//! A registry in a directory with arbitrary files and a living, hostile peer.

#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rnet_core::{Error, NodeName};
use rnet_fuzz::{Input, corrupt_word, domain, node, open};
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::{OwnNode, ring_control};
use rnet_shm::domain::registry::Registry;

const STEPS: usize = 40;

struct Fixture {
    dir: DomainDir,
    own: Arc<OwnNode>,
    config: DomainConfig,
}

static FIXTURE: OnceLock<Fixture> = OnceLock::new();

/// A file name from the input, in some cases like that of a node.
fn name(input: &mut Input<'_>) -> Vec<u8> {
    let id = input.word(1) & 0xff_ffff_ffff;
    match input.byte() % 4 {
        0 => format!("peer@{id:010x}").into_bytes(),
        1 => format!("x.y@{id:x}").into_bytes(),
        2 => format!("@{id:010x}").into_bytes(),
        _ => {
            let bytes = (0..input.byte() % 20).map(|_| input.byte());
            bytes.filter(|b| *b != 0 && *b != b'/').chain(*b"~").collect()
        }
    }
}

fn create_stray_files(folder: &Path, input: &mut Input<'_>) {
    let path = folder.join(OsStr::from_bytes(&name(input)));
    let content: Vec<u8> = (0..input.byte() % 80).map(|_| input.byte()).collect();
    // A symbolic link of an earlier step would lead to a file outside of the domain.
    let _ = std::fs::remove_file(&path);
    match input.byte() % 4 {
        0 => drop(std::fs::write(path, content)),
        1 => drop(std::os::unix::fs::symlink("/nowhere", path)),
        _ => {
            let _ = std::fs::create_dir(&path);
            let _ = std::fs::write(path.join("node"), content);
        }
    }
}

fn clear(folder: &Path, keep: &dyn Fn(&str) -> bool) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.file_name().to_str().is_some_and(keep) {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = std::fs::remove_dir_all(entry.path());
        } else {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let fixture = FIXTURE.get_or_init(|| {
        let dir = domain();
        let base = dir.path().parent().unwrap().to_owned();
        let config = DomainConfig { id: dir.id().clone(), base: Some(base), group: None };
        Fixture { own: node(&dir, "own"), dir, config }
    });
    let Fixture { dir, own, config } = fixture;
    let liar = node(dir, "liar");
    let mut registry = Registry::new(dir.clone(), Some(own.incarnation()));
    for _ in 0..STEPS {
        let Some(step) = input.step() else { break };
        match step % 8 {
            0 => create_stray_files(&dir.nodes(), &mut input),
            1 => create_stray_files(&dir.names(), &mut input),
            // Header, list, and beyond.
            2 | 3 => {
                let file = open(&liar.folder().join("node"));
                if step & 0x80 != 0 {
                    file.set_len(input.short() * 8).unwrap();
                }
                let at = [0, 4096, 8192][input.byte() as usize % 3];
                corrupt_word(&file, at + u64::from(input.byte()) * 8, &mut input);
                corrupt_word(&file, 32 + u64::from(step & 0x10) / 2, &mut input);
            }
            4 => {
                let bytes: Vec<u8> = (0..input.byte()).map(|_| input.byte()).collect();
                if let Ok(mut fifo) =
                    std::fs::OpenOptions::new().write(true).open(own.folder().join("ctl"))
                {
                    let _ = std::io::Write::write(&mut fifo, &bytes);
                }
                ring_control(liar.folder(), input.word(0));
                let _ = (own.drain_control(), liar.drain_control());
            }
            5 => {
                let nodes = [input.word(liar.incarnation()), liar.incarnation()];
                let _ = registry.refresh_only(&nodes, None);
            }
            6 if step & 0x80 != 0 => {
                let version = dir.path().join("VERSION");
                let before = std::fs::read(&version).unwrap();
                let corrupt: Vec<u8> = (0..input.byte() % 12).map(|_| input.byte()).collect();
                std::fs::write(&version, &corrupt).unwrap();
                let opened = DomainDir::open(config);
                assert!(
                    opened.is_ok()
                        || matches!(opened, Err(Error::LayoutVersion { .. } | Error::Io { .. }))
                );
                std::fs::write(&version, before).unwrap();
            }
            _ => {
                let _ = registry.refresh();
                for peer in registry.peers().values() {
                    for entry in peer.node.entries() {
                        assert_eq!(
                            entry.id >> 24,
                            peer.node.incarnation(),
                            "it speaks for another"
                        );
                        let path = entry.path(peer.node.folder());
                        assert_eq!(path.parent(), Some(peer.node.folder()), "out of its folder");
                    }
                }
                for id in registry.peers().keys().copied().collect::<Vec<_>>() {
                    let _ = registry.peer(id).map(|peer| peer.node.bells().is_ok());
                }
            }
        }
    }
    drop(liar);
    let ours = own.folder().file_name().unwrap().to_str().unwrap().to_owned();
    clear(&dir.nodes(), &|name| name == ours);
    clear(&dir.names(), &|name| name == "own");
    // A free name can be used despite the files.
    let honest = OwnNode::create(dir, &NodeName::new("honest").unwrap(), "rust", "0");
    assert!(honest.is_ok(), "{honest:?}");
});
