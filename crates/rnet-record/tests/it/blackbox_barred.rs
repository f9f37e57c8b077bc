//! Black boxes that cannot write, and whose files are removed by others.

use crate::common;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use common::{Net, eventually, folder, of, stored};
use rnet_record::blackbox::{BlackBox, BlackBoxOptions, list_files};

fn options(net: &Net) -> BlackBoxOptions {
    let recording = common::options(net);
    let mut options = BlackBoxOptions::default();
    options.after = Duration::from_millis(100);
    options.folder = folder(net);
    options.location = recording.location;
    options.state_dir = recording.state_dir;
    options
}

fn start(net: &Net) -> BlackBox {
    BlackBox::start(options(net)).expect("the box starts")
}

fn location(net: &Net) -> rnet::inspect::Location {
    options(net).location.expect("the location is set")
}

/// The numbers of `/raw` in a file.
fn numbers(file: &Path) -> Vec<u32> {
    let all = stored(file);
    of(&all, "/raw").iter().map(|m| u32::from_le_bytes(m.data[..4].try_into().unwrap())).collect()
}

#[test]
fn unwritable_folder_is_reported_and_loses_no_file() {
    let net = Net::new("no folder");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut log = node
        .subscriber::<rnet::msgs::Log>(rnet::LOG_TOPIC)
        .transient_local()
        .keep_all()
        .open()
        .unwrap();
    let mut opts = options(&net);
    opts.folder = net.base().join("files");
    opts.triggers = vec!["log info black box".parse().unwrap()];
    let files = opts.folder.clone();
    let blackbox = BlackBox::start(opts).unwrap();
    raw.send(&1u32.to_le_bytes()).unwrap();
    eventually("the message is recorded", || blackbox.status().messages > 0);
    // A removed folder is recreated; then a file takes its path.
    std::fs::remove_dir(&files).unwrap();
    eventually("the folder is recreated", || files.is_dir());
    std::fs::remove_dir(&files).unwrap();
    std::fs::write(&files, b"").unwrap();
    eventually("it is reported before anything fires", || {
        blackbox.status().problems.get("folder").is_some_and(|why| why.contains("files"))
    });
    blackbox.trigger("smoke");
    eventually("the window waits", || blackbox.status().problems.contains_key("window"));
    let observers = || rnet::inspect::observer_statuses(location(&net).path()).join("\n");
    eventually("the recorder status has it", || observers().contains("\"window\":\""));
    let mut lines = Vec::new();
    eventually("the log has it", || {
        lines.extend(log.try_recv().unwrap().map(|line| line.message.clone()));
        lines.iter().any(|line| line.starts_with("the black box cannot write its folder: "))
    });
    std::fs::remove_file(&files).unwrap();
    eventually("the file is written", || blackbox.status().files == 1);
    eventually("no problem is left", || blackbox.status().problems.is_empty());
    let ended = blackbox.stop().unwrap();
    // Its own log lines have fired nothing.
    assert_eq!((ended.fired, ended.lost_files), (1, 0));
    let written = list_files(&files, &location(&net)).unwrap();
    assert_eq!(numbers(&written[0].0), [1]);
}

#[test]
fn removed_ring_is_reported() {
    let net = Net::new("no ring");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let blackbox = start(&net);
    std::fs::remove_dir_all(blackbox.status().ring).unwrap();
    eventually("it is reported", || {
        raw.send(&1u32.to_le_bytes()).unwrap();
        blackbox.status().problems.get("ring").is_some_and(|why| why.contains("blackbox-"))
    });
    let ended = blackbox.stop().unwrap();
    assert!(ended.problems.contains_key("ring") && ended.missing > 0, "{ended:?}");
}

#[test]
fn removed_window_copies_remaining_parts_again() {
    let net = Net::new("no window");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut opts = options(&net);
    opts.after = Duration::from_secs(60);
    let blackbox = BlackBox::start(opts).unwrap();
    raw.send(&1u32.to_le_bytes()).unwrap();
    blackbox.trigger("smoke");
    let parts = || {
        let dirs = std::fs::read_dir(folder(&net)).unwrap().flatten().map(|dir| dir.path());
        let all = dirs.flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten());
        all.map(|part| part.path()).find(|part| part.extension() == Some("mcap".as_ref()))
    };
    eventually("a part is copied", || parts().is_some());
    std::fs::remove_dir_all(parts().unwrap().parent().unwrap()).unwrap();
    eventually("it is copied again", || parts().is_some());
    let ended = blackbox.stop().unwrap();
    assert_eq!((ended.files, ended.lost_files), (1, 0));
    assert_eq!(numbers(&list_files(&folder(&net), &location(&net)).unwrap()[0].0), [1]);
}

#[test]
fn keeps_window_while_its_folder_is_unreadable() {
    let net = Net::new("barred folder");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut opts = options(&net);
    opts.folder = net.base().join("files");
    let (files, away) = (opts.folder.clone(), net.base().join("away"));
    let blackbox = BlackBox::start(opts).unwrap();
    raw.send(&1u32.to_le_bytes()).unwrap();
    eventually("the message is recorded", || blackbox.status().messages > 0);
    // The file cannot get its name, so the window is kept after its end.
    let taken = |dir: &Path| -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.extension() == Some("pending".as_ref())).collect()
    };
    blackbox.trigger("smoke");
    eventually("a window exists", || !taken(&files).is_empty());
    let window = taken(&files).remove(0);
    std::fs::create_dir_all(window.join("file/in the way")).unwrap();
    eventually("its file cannot be written", || blackbox.status().problems.contains_key("file"));
    // Root can search any folder, so a file takes its place.
    std::fs::rename(&files, &away).unwrap();
    std::fs::write(&files, b"").unwrap();
    let why = || blackbox.status().problems.get("file").cloned().unwrap_or_default();
    eventually("the write is retried", || why().contains("Not a directory"));
    assert_eq!(blackbox.status().lost_files, 0);
    std::fs::remove_file(&files).unwrap();
    std::fs::rename(&away, &files).unwrap();
    std::fs::remove_dir_all(window.join("file")).unwrap();
    eventually("the file is written", || blackbox.status().files == 1);
    assert_eq!(blackbox.stop().unwrap().lost_files, 0);
    assert_eq!(numbers(&list_files(&files, &location(&net)).unwrap()[0].0), [1]);
}

#[test]
fn window_without_its_parts_is_reported_as_incomplete() {
    let net = Net::new("incomplete");
    let node = net.node("/n");
    let _raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut log = node
        .subscriber::<rnet::msgs::Log>(rnet::LOG_TOPIC)
        .transient_local()
        .keep_all()
        .open()
        .unwrap();
    let mut opts = options(&net);
    // Longer than a part, so that a part ends while its copy cannot be written.
    opts.after = Duration::from_secs(5);
    let blackbox = BlackBox::start(opts).unwrap();
    blackbox.trigger("smoke");
    let window = || {
        let dirs = std::fs::read_dir(folder(&net)).unwrap().flatten().map(|dir| dir.path());
        dirs.into_iter().find(|dir| dir.join("pending.json").exists())
    };
    eventually("the window exists", || window().is_some());
    std::fs::create_dir_all(window().unwrap().join("copy/in the way")).unwrap();
    let mut lines = Vec::new();
    eventually("the file is written", || {
        lines.extend(log.try_recv().unwrap().map(|line| line.message.clone()));
        blackbox.status().files == 1
    });
    assert_eq!(blackbox.status().incomplete_files, 1);
    eventually("the log has it", || {
        lines.extend(log.try_recv().unwrap().map(|line| line.message.clone()));
        lines.iter().any(|line| line.contains("not all of it could be written in time"))
    });
    assert!(!lines.iter().any(|line| line.contains("can write its window again")), "{lines:?}");
    eventually("no problem is left", || blackbox.status().problems.is_empty());
    let file = &list_files(&folder(&net), &location(&net)).unwrap()[0].0;
    let trigger = &common::metadata(file)[rnet_record::names::TRIGGER];
    assert!(trigger["incomplete"].contains("directory"), "{trigger:?}");
    blackbox.stop().unwrap();
}

#[test]
fn file_reports_parts_overwritten_while_window_waits() {
    let net = Net::new("forgotten");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut opts = options(&net);
    opts.folder = net.base().join("files");
    (opts.before, opts.after) = (Duration::ZERO, Duration::from_secs(60));
    let files = opts.folder.clone();
    let blackbox = BlackBox::start(opts).unwrap();
    let ring = blackbox.status().ring;
    std::fs::remove_dir(&files).unwrap();
    std::fs::write(&files, b"").unwrap();
    blackbox.trigger("smoke");
    eventually("the window waits", || blackbox.status().problems.contains_key("window"));
    raw.send(&1u32.to_le_bytes()).unwrap();
    let parts = || -> BTreeSet<OsString> {
        let names = std::fs::read_dir(&ring).unwrap().flatten().map(|part| part.file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".mcap")).collect()
    };
    eventually("the message is recorded", || blackbox.status().messages > 0);
    let with_it = parts();
    eventually("the ring has removed it", || parts().is_disjoint(&with_it));
    std::fs::remove_file(&files).unwrap();
    eventually("space is free again", || blackbox.status().problems.is_empty());
    raw.send(&2u32.to_le_bytes()).unwrap();
    let ended = blackbox.stop().unwrap();
    assert_eq!((ended.files, ended.incomplete_files), (1, 1));
    let file = &list_files(&files, &location(&net)).unwrap()[0].0;
    assert_eq!(numbers(file), [2]);
    let why = &common::metadata(file)[rnet_record::names::TRIGGER]["incomplete"];
    assert!(why.starts_with("the ring overwrote ") && why.contains("(os error "), "{why}");
}

#[test]
fn missing_disk_is_reported_and_nothing_is_written_elsewhere() {
    let net = Net::new("no disk");
    let _node = net.node("/n");
    let mut opts = options(&net);
    let (real, link) = (net.base().join("real"), net.base().join("files"));
    std::fs::create_dir(&real).unwrap();
    let lead_to = |path: &Path| {
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(path, &link).unwrap();
    };
    lead_to(&real);
    opts.folder.clone_from(&link);
    let blackbox = BlackBox::start(opts).unwrap();
    lead_to(Path::new("/proc"));
    let why = || blackbox.status().problems.get("folder").cloned().unwrap_or_default();
    eventually("it is reported", || why().contains("not on the same disk"));
    lead_to(&real);
    eventually("no problem is left", || blackbox.status().problems.is_empty());
    blackbox.stop().unwrap();
}
