//! Killed recorders, full disks, and hostile peers.

use crate::common;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use common::{
    Child, Net, eventually, folder, lost, metadata, not_run, of, options, orders, record, role,
    stored, stored_in_ruins, tell,
};
use rnet::Dynamic;
use rnet::schema::compile_text;
use rnet_record::{ChunkCompression, Recorder, Selection, names};

/// Incompressible bytes.
fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = u64::from(seed) | 1 << 40;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn killed_recorder_loses_only_the_last_moment() {
    let net = Net::new("killed recorder");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut child = Child::spawn(&net, "recorder");
    child.expect("records");
    for n in 0..500u32 {
        raw.send(&n.to_le_bytes()).unwrap();
    }
    let file = folder(&net).join("run.mcap");
    let has = |wanted: usize| of(&stored_in_ruins(&file), "/raw").len() >= wanted;
    // Messages are written without an end of the recording.
    eventually("a chunk is written", || has(500));
    for n in 500..600u32 {
        raw.send(&n.to_le_bytes()).unwrap();
    }
    child.kill();
    let left = stored_in_ruins(&file);
    let numbers: Vec<u32> = of(&left, "/raw").iter().map(|m| m.sequence).collect();
    assert_eq!(numbers, (0..numbers.len() as u32).collect::<Vec<u32>>());
    let said = metadata(&file);
    assert!(said.contains_key(names::RECORDING) && !said.contains_key(names::LOSSES));
    // The next recorder does not overwrite the file, and the publisher is unaffected.
    assert!(Recorder::start(&file, options(&net)).is_err());
    assert_eq!(raw.send(b"still").map(|()| raw.subscriber_count()), Ok(0));
}

#[test]
fn records_or_counts_each_message_of_a_flood() {
    let net = Net::new("flood");
    let node = net.node("/camera");
    let mut images = node.publisher::<[u8]>("/image").open().unwrap();
    let mut opts = options(&net);
    // Much less than a second of the data, on any disk.
    opts.buffer_len_bytes = 4 << 20;
    opts.compress = ChunkCompression::None;
    let (file, recorder) = record(&net, opts);
    let mut image = noise(1, 2 << 20);
    let mut sent = 0u32;
    eventually("something is missing", || {
        for _ in 0..20 {
            image[..4].copy_from_slice(&sent.to_le_bytes());
            images.send(&image).unwrap();
            sent += 1;
        }
        recorder.progress().losses.total() > 0
    });
    let report = recorder.stop().unwrap();
    let missing = lost(&report, "/image");
    assert_eq!(report.messages + missing, u64::from(sent), "{report:?}");
    // The file states for each message whether it is recorded or missing.
    let all = stored(&file);
    let mut numbers: Vec<u64> = Vec::new();
    for message in of(&all, "/image") {
        assert_eq!(message.data.len(), image.len());
        assert!(message.data[4..] == image[4..], "{} is torn", message.sequence);
        assert_eq!(message.data[..4], message.sequence.to_le_bytes());
        numbers.push(message.sequence.into());
    }
    for message in of(&all, names::MISSED_TOPIC) {
        let run: serde_json::Value = serde_json::from_slice(&message.data).unwrap();
        let (first, count) = (run["first_seq"].as_u64().unwrap(), run["count"].as_u64().unwrap());
        numbers.extend(first..first + count);
    }
    numbers.sort();
    assert_eq!(numbers, (0..u64::from(sent)).collect::<Vec<u64>>());
    assert_eq!(metadata(&file)[names::LOSSES]["total"], missing.to_string());
}

#[test]
fn records_killed_publisher_to_its_last_message() {
    let net = Net::new("killed publisher");
    let (file, recorder) = record(&net, options(&net));
    let mut child = Child::spawn(&net, "publisher");
    eventually("the publisher is followed", || recorder.progress().messages == 1);
    child.say("send");
    child.expect("sent");
    child.kill();
    let report = recorder.stop().unwrap();
    let all = stored(&file);
    let numbers: Vec<u32> = of(&all, "/dying").iter().map(|m| m.sequence).collect();
    assert_eq!(numbers.len() as u64 + lost(&report, "/dying"), 2000);
    assert_eq!(lost(&report, "/dying"), 0);
    assert_eq!(numbers, (0..2000).collect::<Vec<u32>>());
    assert!(metadata(&file)[names::NODES].contains_key("/dying"));
}

#[test]
fn full_disk_ends_file_cleanly_and_next_one_begins_when_space_is_free() {
    let net = Net::new("full disk");
    let mut child = Child::spawn(&net, "full");
    let answer = child.hear_for(50);
    match answer.strip_prefix("NOT RUN: ") {
        Some(why) => not_run(why),
        None => assert_eq!(answer, "done"),
    }
}

/// In a mount namespace of this process's own, the folder of the recordings is a tmpfs of 64 MiB.
fn mount(at: &Path) -> std::io::Result<()> {
    let checked = |done: libc::c_int| match done {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    };
    let at = CString::new(at.as_os_str().as_bytes()).expect("a path without zeros");
    let (root, tmpfs, size, none) = (c"/", c"tmpfs", c"size=64m", std::ptr::null());
    // SAFETY: a new mount namespace for this thread and the threads that it starts.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: strings are zero-terminated, and unused pointers are null.
    checked(unsafe { libc::mount(none, root.as_ptr(), none, private, none.cast()) })?;
    let (name, size) = (tmpfs.as_ptr(), size.as_ptr().cast());
    // SAFETY: as above.
    checked(unsafe { libc::mount(name, at.as_ptr(), name, 0, size) })
}

fn fill_and_make_room(net: &Net) {
    let at = folder(net);
    if let Err(error) = mount(&at) {
        return tell(&format!("NOT RUN: no file system may be mounted here: {error}"));
    }
    let filler = at.join("filler");
    std::fs::write(&filler, vec![1; 40 << 20]).unwrap();
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut map = node.publisher::<[u8]>("/map").transient_local(1).open().unwrap();
    map.send(b"map").unwrap();
    let mut opts = options(net);
    opts.compress = ChunkCompression::Zstd;
    let (file, recorder) = record(net, opts);
    let mut sent = 0u64;
    let mut send = |recorder: &Recorder| {
        raw.send(&noise(sent as u32, 200_000)).unwrap();
        sent += 1;
        eventually("the message is recorded", || {
            let progress = recorder.progress();
            progress.messages + progress.losses.total() > sent
        });
    };
    while !recorder.progress().disk_is_full {
        send(&recorder);
    }
    // The file is complete while the recorder continues, and messages sent now are counted.
    let first = stored(&file);
    assert!(of(&first, "/raw").len() > 50);
    (0..5).for_each(|_| send(&recorder));
    assert!(recorder.progress().losses.total() >= 5);
    // Removing a recorded file frees space: no process holds it open.
    std::fs::remove_file(&file).unwrap();
    eventually("space is free", || !recorder.progress().disk_is_full);
    (0..5).for_each(|_| send(&recorder));
    let notes = recorder.take_notes().join("\n");
    assert!(notes.contains("the disk is full"), "{notes}");
    let report = recorder.stop().unwrap();
    assert_eq!(report.ended.len(), 2, "{report:?}");
    let second = stored(&report.ended[1]);
    let got: Vec<u32> =
        [&first, &second].iter().flat_map(|all| of(all, "/raw")).map(|m| m.sequence).collect();
    assert_eq!(got.len() as u64 + lost(&report, "/raw"), sent);
    assert!(got.is_sorted());
    let counts = of(&second, names::MISSED_TOPIC);
    assert!(counts.iter().any(|m| String::from_utf8_lossy(&m.data).contains("disk_full")));
    assert_eq!(of(&second, "/map").len(), 1);
    let said = &metadata(&report.ended[1])[names::LOSSES];
    assert_eq!(said["/raw /n disk_full"], lost(&report, "/raw").to_string());
    for message in [&first, &second].into_iter().flat_map(|all| of(all, "/raw")) {
        assert!(message.data == noise(message.sequence, 200_000), "{}", message.sequence);
    }
    tell("done");
}

#[test]
fn unreadable_types_are_recorded_as_bytes_and_reported() {
    let net = Net::new("hostile types");
    let node = net.node("/liar");
    let text = "syntax = \"proto3\"; message Level { double volt = 1; }";
    let schema = compile_text("demo.proto", text).unwrap().schema("Level").unwrap();
    let mut level = node.publisher::<Dynamic>("/level").schema(&schema).open().unwrap();
    let nodes = net.inspect_path().join("nodes");
    let of_node = std::fs::read_dir(nodes).unwrap().flatten().next().unwrap().path();
    let file = of_node.join(format!("t{}", schema.hash()));
    for (number, bytes) in [vec![], vec![0xff; 100], vec![7; 100_000]].into_iter().enumerate() {
        std::fs::write(&file, bytes).unwrap();
        let recording = folder(&net).join(format!("{number}.mcap"));
        let recorder = Recorder::start(&recording, options(&net)).unwrap();
        level.send(&Dynamic::new(&schema)).unwrap();
        eventually("the message is recorded", || recorder.progress().messages == 1);
        eventually("it is reported", || {
            recorder.take_notes().iter().any(|note| note.contains("type") && note.contains("/liar"))
        });
        recorder.stop().unwrap();
        let all = stored(&recording);
        let [message] = of(&all, "/level")[..] else { panic!("{all:?}") };
        assert_eq!((&*message.encoding, &message.schema), ("bytes", &None));
        assert_eq!((&*message.source.type_name, message.source.kind.name()), ("Level", "protobuf"));
    }
}

#[test]
fn malformed_images_are_counted_and_delay_nothing() {
    let net = Net::new("malformed");
    let node = net.node("/camera");
    let image = rnet::msgs::plain::Image::new(2, 2, "mono8").unwrap();
    let described = <rnet::msgs::plain::Image as rnet::Message>::message_type().unwrap();
    let mut camera = node.publisher::<[u8]>("/image").message_type(described).open().unwrap();
    let (file, recorder) = record(&net, options(&net));
    let mut whole = image.header_bytes().to_vec();
    whole.extend([1, 2, 3, 4]);
    let sent = [whole.clone(), whole[..100].to_vec(), vec![0xff; 500], whole];
    let taken = sent.iter().filter(|message| camera.send(message).is_ok()).count();
    assert_eq!(taken, 4);
    let report = recorder.stop().unwrap();
    assert_eq!((report.messages, lost(&report, "/image")), (2, 2));
    let all = stored(&file);
    let numbers: Vec<u32> = of(&all, "/image").iter().map(|m| m.sequence).collect();
    assert_eq!(numbers, [0, 3]);
    assert_eq!(metadata(&file)[names::LOSSES]["/image /camera malformed"], "2");
}

/// A publisher whose file is invalid, and one whose file is gone before the recorder opens it.
#[test]
fn counts_and_names_publishers_that_cannot_be_read() {
    let net = Net::new("unheard");
    let (liar, other) = (net.node("/liar"), net.node("/other"));
    let _wrong = liar.publisher::<[u8]>("/wrong").open().unwrap();
    let mut gone = Child::spawn(&net, "silent");
    gone.expect("there");
    // Otherwise it would notice that its file is gone, and withdraw its publisher.
    gone.stop();
    let nodes = liar.domain_path().join("nodes");
    let file_of = |name: &str| {
        let folders = nodes.read_dir().unwrap().map(|folder| folder.unwrap().path());
        let is_it = |path: &std::path::PathBuf| path.to_string_lossy().contains(name);
        folders.into_iter().find(is_it).unwrap().join("p0")
    };
    std::fs::write(file_of("/liar@"), [7; 8192]).unwrap();
    std::fs::remove_file(file_of("/dying@")).unwrap();
    let mut options = options(&net);
    options.state = false;
    let (file, recorder) = record(&net, options);
    // The first poll ignores past publishers. When it has found this one, it has polled again.
    let mut good = other.publisher::<[u8]>("/good").open().unwrap();
    good.send(b"1").unwrap();
    eventually("it has polled again", || recorder.progress().messages > 0);
    let report = recorder.stop().unwrap();
    let unheard: Vec<_> = report.unheard.iter().collect();
    use rnet::inspect::UnreadCause::{Closed, Unreadable};
    assert_eq!(unheard, [("?", "/dying", Closed, 1), ("?", "/liar", Unreadable, 1)]);
    let notes = report.notes.join("\n");
    assert!(notes.contains("/dying closed before it could be followed"), "{notes}");
    let said = &metadata(&file)[names::UNHEARD];
    assert_eq!((&*said["? /dying closed"], &*said["? /liar unreadable"]), ("1", "1"), "{said:?}");
    assert_eq!((&*said["total"], &*said["followed"]), ("2", "1"), "{said:?}");
}

#[test]
fn reports_that_no_publisher_was_followed() {
    let net = Net::new("nobody");
    let node = net.node("/other");
    let mut other = node.publisher::<[u8]>("/other").open().unwrap();
    let mut options = options(&net);
    (options.state, options.selection) =
        (false, Selection::default().topic("/scan").unwrap().node("/lidar").unwrap());
    let (file, recorder) = record(&net, options);
    other.send(b"1").unwrap();
    let report = recorder.stop().unwrap();
    assert_eq!((report.followed, report.messages, report.unheard.total()), (0, 0, 0));
    let none = "no publisher was followed: none of /scan in /lidar was found";
    assert!(report.notes.iter().any(|note| note == none), "{:?}", report.notes);
    assert_eq!(metadata(&file)[names::UNHEARD]["followed"], "0");
}

/// Overwrites the file of a node's first publisher with invalid data.
fn spoil(liar: &rnet::Node) {
    let nodes = liar.domain_path().join("nodes");
    let folders = nodes.read_dir().unwrap().map(|folder| folder.unwrap().path());
    let is_it = |path: &std::path::PathBuf| path.to_string_lossy().contains("/liar@");
    std::fs::write(folders.into_iter().find(is_it).unwrap().join("p0"), [7; 8192]).unwrap();
}

#[test]
fn reports_found_but_unreadable_publishers() {
    let net = Net::new("deaf");
    let liar = net.node("/liar");
    let _wrong = liar.publisher::<[u8]>("/scan").open().unwrap();
    spoil(&liar);
    let mut options = options(&net);
    (options.state, options.selection) = (false, Selection::default().topic("/scan").unwrap());
    let (_, recorder) = record(&net, options);
    let report = recorder.stop().unwrap();
    assert_eq!((report.followed, report.unheard.total()), (0, 1));
    let notes = report.notes.join("\n");
    assert!(notes.contains("no publisher was followed; found but not received: 1"), "{notes}");
    assert!(!notes.contains("was found"), "{notes}");
}

#[test]
fn next_part_contains_records_of_part_that_failed_to_end() {
    let net = Net::new("no end");
    let liar = net.node("/liar");
    let _wrong = liar.publisher::<[u8]>("/scan").open().unwrap();
    spoil(&liar);
    let mut raw = net.node("/n").publisher::<[u8]>("/raw").open().unwrap();
    let mut child = Child::spawn(&net, "limited");
    child.expect("limited");
    for n in 0..5 {
        raw.send(&noise(n, 200_000)).unwrap();
    }
    child.say("end the part");
    child.expect("done");
}

/// Limits the size of this process's files from now on.
fn limit_files(bytes: libc::rlim_t) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it fills a struct of this function.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) }, 0);
    limit.rlim_cur = bytes.min(limit.rlim_max);
    // SAFETY: the signal is ignored from now on, so that a write fails instead of killing the process; no
    // handler is involved.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    // SAFETY: it reads a struct of this function.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    assert_eq!(set, 0);
}

fn end_a_part_without_its_end(net: &Net, orders: &std::sync::mpsc::Receiver<String>) {
    let mut opts = options(net);
    (opts.state, opts.compress) = (false, ChunkCompression::None);
    let (_, recorder) = record(net, opts);
    eventually("it has seen both", || {
        recorder.progress().unheard.total() == 1 && recorder.progress().followed == 1
    });
    limit_files(300_000);
    tell("limited");
    orders.recv().unwrap();
    eventually("a part could not be ended", || recorder.progress().losses.total() > 0);
    limit_files(libc::RLIM_INFINITY);
    eventually("the next part has begun", || recorder.progress().problems.is_empty());
    let report = recorder.stop().unwrap();
    let said = metadata(report.ended.last().expect("there is one"));
    assert_eq!(said[names::UNHEARD]["total"], "1", "{report:?}");
    assert_ne!(said[names::LOSSES]["total"], "0", "{report:?}");
    tell("done");
}

#[test]
#[ignore = "run by child processes of the other tests"]
fn child_entry() {
    let Some(role) = role() else { return };
    let orders = orders();
    let net = Net::of_parent();
    match &*role {
        "recorder" => {
            let (_, recorder) = record(&net, options(&net));
            tell("records");
            std::thread::sleep(Duration::from_secs(50)); // sleep: until it is killed
            drop(recorder);
        }
        "publisher" => {
            let node = net.node("/dying");
            let mut publisher = node.publisher::<[u8]>("/dying").open().unwrap();
            publisher.send(&0u32.to_le_bytes()).unwrap();
            // A publisher that dies before the recorder has polled it is not found.
            orders.recv().unwrap();
            for n in 1..2000u32 {
                publisher.send(&n.to_le_bytes()).unwrap();
            }
            tell("sent");
            std::thread::sleep(Duration::from_secs(50)); // sleep: until it is killed
        }
        "silent" => {
            let node = net.node("/dying");
            let _publisher = node.publisher::<[u8]>("/dying").open().unwrap();
            tell("there");
            std::thread::sleep(Duration::from_secs(50)); // sleep: until it is killed
        }
        "limited" => end_a_part_without_its_end(&net, &orders),
        "full" => fill_and_make_room(&net),
        other => panic!("no role {other}"),
    }
}
