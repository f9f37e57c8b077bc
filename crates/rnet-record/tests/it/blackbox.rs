//! The black box: its triggers, the content of its files, and the data left after a process dies.

use crate::common;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Child, Net, Stored, eventually, folder, metadata, of, orders, role, stored, tell};
use rnet::msgs::BatteryState;
use rnet::{LossCause, Meta, Publisher};
use rnet_record::blackbox::{BlackBox, BlackBoxOptions, TRIGGER_SERVICE, list_files, recover};
use rnet_record::{names, read};

#[derive(Clone, Copy, Debug, Default, PartialEq, rnet::Plain)]
#[repr(C)]
struct Cell {
    volts: [f64; 2],
    amps: f32,
    hot: u8,
    _pad: [u8; 3],
}

fn options(net: &Net, triggers: &[&str]) -> BlackBoxOptions {
    let recording = common::options(net);
    let mut options = BlackBoxOptions::default();
    options.triggers = triggers.iter().map(|t| t.parse().expect("a trigger")).collect();
    options.after = Duration::from_millis(100);
    options.folder = folder(net);
    options.location = recording.location;
    options.state_dir = recording.state_dir;
    options.host = recording.host;
    options
}

fn start(net: &Net, triggers: &[&str]) -> BlackBox {
    BlackBox::start(options(net, triggers)).expect("the box starts")
}

fn files(net: &Net) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder(net)).expect("the folder is there").flatten();
    let mut files: Vec<PathBuf> =
        files.map(|f| f.path()).filter(|f| f.extension() == Some("mcap".as_ref())).collect();
    files.sort();
    files
}

/// The triggers of a file: name and reason.
fn fired(file: &Path) -> Vec<(String, String)> {
    let recording = read::Recording::open(file).expect("the file can be read");
    let all = recording.info().metadata.iter().filter(|one| one.name == names::TRIGGER);
    all.map(|one| (one.metadata["name"].clone(), one.metadata["why"].clone())).collect()
}

fn numbers(all: &[Stored], topic: &str) -> Vec<u32> {
    of(all, topic).iter().map(|m| u32::from_le_bytes(m.data[..4].try_into().unwrap())).collect()
}

/// Waits until the box has written its first file.
fn first_file(net: &Net, blackbox: &BlackBox) -> PathBuf {
    eventually("a file is written", || blackbox.status().files >= 1);
    files(net).remove(0)
}

#[test]
fn call_writes_file_with_messages_before_and_after_latched_messages_and_state() {
    let net = Net::new("call");
    let node = net.node("/n");
    let mut map = node.publisher::<[u8]>("/map").transient_local(1).open().unwrap();
    map.send(&7u32.to_le_bytes()).unwrap();
    node.state().unwrap().set("/speed", 3).unwrap();
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut opts = options(&net, &[]);
    opts.after = Duration::from_secs(2);
    let blackbox = BlackBox::start(opts).unwrap();
    let mut n = 0u32;
    let mut send = || {
        raw.send(&n.to_le_bytes()).unwrap();
        n += 1;
        std::thread::sleep(Duration::from_millis(20)); // sleep: a rate, as nodes have
    };
    // More than one part, so that several parts contain latched messages.
    eventually("the ring has parts", || {
        send();
        blackbox.status().kept_s > 4.0
    });
    let reply = node.call_timeout::<[u8], [u8]>(TRIGGER_SERVICE, b"smoke", common::LONG).unwrap();
    let status: serde_json::Value = serde_json::from_slice(&reply).unwrap();
    assert_eq!(status["domain"], "t");
    eventually("a file is written", || {
        send();
        blackbox.status().files == 1
    });
    let file = first_file(&net, &blackbox);
    assert_eq!(fired(&file), [("call".to_owned(), "smoke".to_owned())]);
    let all = stored(&file);
    let raws = numbers(&all, "/raw");
    assert!(raws.len() > 10, "{raws:?}");
    assert_eq!(raws, (0..raws.len() as u32).collect::<Vec<u32>>());
    // Once, although each part of the ring begins with them.
    assert_eq!(numbers(&all, "/map"), [7]);
    let said = of(&all, names::STATE_TOPIC);
    let speed = said.iter().filter(|m| String::from_utf8_lossy(&m.data).contains("\"/speed\""));
    assert_eq!(speed.count(), 1);
    assert_eq!(metadata(&file)[names::TRIGGER]["why"], "smoke");
    let at: u64 = metadata(&file)[names::TRIGGER]["at_ns"].parse().unwrap();
    let times: Vec<u64> = of(&all, "/raw").iter().map(|m| m.publish_time).collect();
    assert!(times[0] < at && *times.last().unwrap() > at);
    let recording = read::Recording::open(&file).unwrap();
    let graph = recording.attachment(recording.info().attachments[0]).unwrap();
    assert!(String::from_utf8_lossy(&graph.data).contains("\"/n\""), "{graph:?}");
    let ring = blackbox.status().ring;
    let ended = blackbox.stop().unwrap();
    assert_eq!((ended.fired, ended.files), (1, 1));
    // A box that is stopped leaves only the lock.
    let left: Vec<_> = std::fs::read_dir(ring).unwrap().flatten().map(|f| f.file_name()).collect();
    assert_eq!(left, ["lock"]);
}

#[test]
fn field_trigger_fires_when_its_condition_becomes_true() {
    let net = Net::new("field");
    let node = net.node("/n");
    let mut battery = node.publisher::<BatteryState>("/battery").open().unwrap();
    let mut cell = node.publisher::<Cell>("/cell").open().unwrap();
    let triggers = ["/battery.voltage < 21", "/cell.volts[1] >= 4.2", "/cell.hot == 1"];
    let blackbox = start(&net, &triggers);
    let volts = [24.0, 20.5, 20.0, 22.0, f64::NAN, 19.0];
    for voltage in volts {
        battery.send(&BatteryState { voltage: Some(voltage), ..Default::default() }).unwrap();
    }
    let of = |volt, hot| Cell { volts: [9.0, volt], amps: 0.0, hot, _pad: [0; 3] };
    for (volt, hot) in [(4.1, 0), (4.2, 1), (4.3, 1)] {
        cell.send(&of(volt, hot)).unwrap();
    }
    eventually("all have fired", || blackbox.status().fired >= 4);
    let file = first_file(&net, &blackbox);
    let ended = blackbox.stop().unwrap();
    // The battery's second drop has the same cause as the first.
    assert_eq!((ended.fired, ended.merged), (4, 1));
    let mut all: Vec<(String, String)> = files(&net).iter().flat_map(|file| fired(file)).collect();
    all.sort();
    let one = |name: &str, why: &str| (name.to_owned(), why.to_owned());
    assert_eq!(
        all,
        [
            one("/battery.voltage < 21", "it is 20.5"),
            one("/cell.hot == 1", "it is 1"),
            one("/cell.volts[1] >= 4.2", "it is 4.2"),
        ]
    );
    assert!(file.to_string_lossy().contains("battery_voltage_21"), "{file:?}");
}

#[test]
fn missing_fields_do_not_fire_and_are_reported() {
    let net = Net::new("hostile fields");
    let node = net.node("/n");
    let mut cell = node.publisher::<Cell>("/cell").open().unwrap();
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut battery = node.publisher::<BatteryState>("/battery").open().unwrap();
    let deep = format!("/cell.{}x > 0", "x.".repeat(2000));
    let triggers = [
        "/cell.volts > 0",
        "/cell.volts[2] > 0",
        "/cell.volts[99999999999999999999] > 0",
        "/cell.watts > 0",
        "/cell._pad > 0",
        "/raw.x > 0",
        "/battery.voltage.x > 0",
        "/never.x > 0",
        &deep,
    ];
    let blackbox = start(&net, &triggers);
    cell.send(&Cell { volts: [1.0; 2], amps: 1.0, hot: 1, _pad: [0; 3] }).unwrap();
    raw.send(b"\xff").unwrap();
    battery.send(&BatteryState { voltage: Some(1.0), ..Default::default() }).unwrap();
    let mut notes = Vec::new();
    eventually("all but one are reported", || {
        notes.extend(blackbox.take_notes());
        notes.len() >= 8
    });
    assert!(notes.iter().all(|note| note.contains("cannot fire on /")), "{notes:?}");
    assert!(notes[0].contains("such as volts[0]"), "{notes:?}");
    assert_eq!(blackbox.stop().unwrap().fired, 0);
    assert!(files(&net).is_empty());
}

#[test]
fn death_fires_and_normal_exit_does_not() {
    let net = Net::new("death");
    let blackbox = start(&net, &["death /dying", "log error over", "log fatal"]);
    let node = net.node("/leaving");
    node.log().error("over current");
    node.log().error("else");
    node.log().warning("over");
    // A publisher that exits before it was polled is not found.
    eventually("the line has fired", || blackbox.status().fired == 1);
    drop(node);
    // A node that lives for less than a poll interval is not seen; this one may be, on a busy machine.
    eventually("the death has fired", || {
        let mut child = Child::spawn(&net, "dying");
        child.expect("lives");
        std::thread::sleep(Duration::from_millis(300)); // sleep: three poll intervals
        child.kill();
        std::thread::sleep(Duration::from_millis(300)); // sleep: three poll intervals
        blackbox.status().fired >= 2
    });
    first_file(&net, &blackbox);
    blackbox.stop().unwrap();
    let all: Vec<(String, String)> = files(&net).iter().flat_map(|file| fired(file)).collect();
    assert_eq!(all[0].1, "error of /leaving: over current");
    assert_eq!(all[1].1, "/dying has died");
    // The file contains the last message.
    assert!(files(&net).iter().any(|file| numbers(&stored(file), "/life").contains(&99)));
}

#[test]
fn missed_deadline_and_loss_fire() {
    let net = Net::new("deadline");
    let node = net.node("/n");
    let blackbox = start(&net, &["deadline /slow", "loss /fast", "loss /slow"]);
    let mut slow =
        node.publisher::<[u8]>("/slow").deadline(Duration::from_millis(20)).open().unwrap();
    slow.send(b"one").unwrap();
    let mut fast = node.publisher::<[u8]>("/fast").open().unwrap();
    let mut reader = node.subscriber::<[u8]>("/fast").keep_all().open().unwrap();
    eventually("both have fired", || {
        // Reports a loss as a link does.
        fast.send_with(b"one", Meta::default().with_gap(LossCause::Link, 1)).unwrap();
        let _ = reader.try_recv();
        // A deadline is checked when something is sent or not sent.
        let _ = slow.send(b"late");
        std::thread::sleep(Duration::from_millis(30)); // sleep: longer than the deadline
        let names: Vec<String> = files(&net).iter().flat_map(|f| fired(f)).map(|f| f.0).collect();
        ["deadline /slow", "loss /fast"].iter().all(|name| names.iter().any(|n| n == name))
    });
    blackbox.stop().unwrap();
}

#[test]
fn fallback_of_command_fires() {
    let net = Net::new("fallback");
    let node = net.node("/n");
    let blackbox = start(&net, &["fallback /drive", "fallback /other"]);
    let command = node.command::<Cell>("/drive").deadline(Duration::from_millis(50));
    // It falls back when it is opened, and no driver was in force.
    let command = command.fallback_zero().apply(|_| {}).unwrap();
    let lease = Duration::from_secs(30);
    let mut driver =
        node.drive::<Cell>("/drive").lease(lease).timeout(common::LONG).take().unwrap();
    let stop = Cell { volts: [0.0; 2], amps: 0.0, hot: 0, _pad: [0; 3] };
    driver.send(&stop).unwrap();
    let file = first_file(&net, &blackbox);
    let all = fired(&file);
    assert_eq!((all.len(), &*all[0].0), (1, "fallback /drive"));
    assert!(all[0].1.starts_with("/drive has fallen back: "), "{all:?}");
    drop((driver, command));
    blackbox.stop().unwrap();
}

#[test]
fn overlapping_triggers_make_one_file() {
    let net = Net::new("overlap");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut opts = options(&net, &[]);
    opts.after = Duration::from_secs(60);
    let blackbox = BlackBox::start(opts).unwrap();
    raw.send(&0u32.to_le_bytes()).unwrap();
    // Sixty-four at once, from as many threads.
    std::thread::scope(|scope| {
        for n in 0..64 {
            let blackbox = &blackbox;
            scope.spawn(move || blackbox.trigger(&format!("reason {n}")));
        }
    });
    eventually("the first have fired", || blackbox.status().fired == 64);
    raw.send(&1u32.to_le_bytes()).unwrap();
    blackbox.trigger("the last");
    assert!(blackbox.status().pending.is_some());
    // Stopping the box writes the pending file.
    let ended = blackbox.stop().unwrap();
    assert_eq!((ended.fired, ended.files), (65, 1));
    let file = files(&net).remove(0);
    assert_eq!((fired(&file).len(), files(&net).len()), (65, 1));
    assert_eq!(numbers(&stored(&file), "/raw"), [0, 1]);
}

/// A box in a process of its own, whose ring has these numbers, and those below.
fn box_with(net: &Net, raw: &mut Publisher<[u8]>, numbers: Range<u32>) -> Child {
    let mut child = Child::spawn(net, "box");
    child.expect("keeps");
    for n in numbers.clone() {
        raw.send(&n.to_le_bytes()).unwrap();
    }
    child.say(&format!("wait for {}", numbers.len()));
    child.expect("waited");
    eventually("the chunk is written", || in_ring(net) == numbers.end as usize);
    child
}

#[test]
fn next_box_writes_files_of_killed_box() {
    let net = Net::new("killed box");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    // First without a window; the next box has the messages of the killed one.
    let mut child = box_with(&net, &mut raw, 0..100);
    assert!(
        matches!(recover(&location(&net), &folder(&net)), Err(error) if error.to_string().contains("already runs"))
    );
    child.kill();
    // Within a window, whose end is far away.
    let mut child = box_with(&net, &mut raw, 100..200);
    child.say("trigger");
    let is_pending = || {
        let dirs = std::fs::read_dir(folder(&net)).unwrap().flatten();
        dirs.into_iter().any(|dir| dir.path().join("pending.json").exists())
    };
    eventually("a window exists", is_pending);
    child.kill();
    assert!(files(&net).is_empty());
    let blackbox = start(&net, &[]);
    let file = first_file(&net, &blackbox);
    let all = numbers(&stored(&file), "/raw");
    assert_eq!(all, (0..200).collect::<Vec<u32>>());
    assert_eq!(fired(&file), [("call".to_owned(), "child".to_owned())]);
    let trigger = &common::metadata(&file)[names::TRIGGER];
    assert!(trigger["incomplete"].contains("its black box exited early"), "{trigger:?}");
    blackbox.stop().unwrap();
    assert_eq!((files(&net).len(), is_pending()), (1, false));
}

#[test]
fn recovers_files_of_killed_box_without_a_box() {
    let net = Net::new("recover");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    assert_eq!(recover(&location(&net), &folder(&net)).unwrap().0, [""; 0].map(PathBuf::from));
    box_with(&net, &mut raw, 0..100).kill();
    // Killed while it wrote the file: writing starts again.
    let (written, _) = recover(&location(&net), &folder(&net)).unwrap();
    assert_eq!(numbers(&stored(&written[0]), "/raw"), (0..100).collect::<Vec<u32>>());
    assert!(recover(&location(&net), &folder(&net)).unwrap().0.is_empty());
}

#[test]
fn recover_without_data_makes_nothing_and_keeps_ring_on_write_error() {
    let net = Net::new("recover nothing");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let nowhere = net.base().join("nowhere");
    assert!(recover(&location(&net), &nowhere).unwrap().0.is_empty());
    assert!(
        !nowhere.exists() && rnet_record::blackbox::RingMemory::of(location(&net).path()).is_none()
    );
    let error = list_files(&nowhere, &location(&net)).unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("nowhere"), "{error}");
    box_with(&net, &mut raw, 0..100).kill();
    // A folder that is readable, but not writable.
    let error = recover(&location(&net), Path::new("/proc")).unwrap_err().to_string();
    assert!(error.contains("cannot write /proc/.blackbox-t-"), "{error}");
    let file = net.base().join("file");
    std::fs::write(&file, b"").unwrap();
    let error = recover(&location(&net), &file).unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("/file"), "{error}");
    let (written, _) = recover(&location(&net), &nowhere).unwrap();
    assert_eq!(numbers(&stored(&written[0]), "/raw"), (0..100).collect::<Vec<u32>>());
}

#[test]
fn removes_files_of_an_earlier_boot() {
    let net = Net::new("earlier boot");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    box_with(&net, &mut raw, 0..100).kill();
    let ring = rnet_record::blackbox::RingMemory::of(location(&net).path()).unwrap().ring;
    let boot = format!("{:016x}", rnet::boot_id());
    let names = ring.read_dir().unwrap().flatten().map(|part| part.file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    for name in names.iter().filter(|name| name.contains(&boot)) {
        let earlier = name.replace(&boot, "earlier");
        std::fs::rename(ring.join(name), ring.join(earlier)).unwrap();
    }
    // The times themselves would match: they are those of this boot.
    let blackbox = start(&net, &[]);
    assert_eq!(in_ring(&net), 0);
    blackbox.stop().unwrap();
}

#[test]
fn window_interrupted_at_any_point_is_written_once() {
    let net = Net::new("cut windows");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut child = Child::spawn(&net, "box");
    child.expect("keeps");
    raw.send(&5u32.to_le_bytes()).unwrap();
    child.say("wait for 1");
    child.expect("waited");
    child.say("trigger");
    let window = || {
        let dirs = std::fs::read_dir(folder(&net)).unwrap().flatten().map(|dir| dir.path());
        dirs.into_iter().find(|dir| dir.join("pending.json").exists())
    };
    eventually("a part is copied", || {
        let files = window().into_iter().flat_map(|dir| std::fs::read_dir(dir).unwrap().flatten());
        files.into_iter().any(|file| file.path().extension() == Some("mcap".as_ref()))
    });
    child.kill();
    let dir = window().unwrap();
    // Killed while it copied a part, while it wrote the file, and before it saved the window.
    std::fs::write(dir.join("copy"), b"half a part").unwrap();
    std::fs::write(dir.join("file"), b"half a file").unwrap();
    let other = |ms: u64| folder(&net).join(format!(".blackbox-t-{ms}-call.mcap.pending"));
    let unbegun = other(1_790_000_000_000);
    std::fs::create_dir(&unbegun).unwrap();
    std::fs::write(unbegun.join("pending.json.new"), b"{\"file\": \"../x\"").unwrap();
    let (written, notes) = recover(&location(&net), &folder(&net)).unwrap();
    assert_eq!((written.len(), notes.len()), (1, 1), "{notes:?}");
    assert_eq!(numbers(&stored(&written[0]), "/raw"), [5]);
    assert!(!unbegun.exists() && window().is_none());
    // As a power cut leaves it, and one without its description: the parts exist.
    for (ms, text) in [(1_790_000_000_001, Some("")), (1_790_000_000_002, None)] {
        let damaged = other(ms);
        std::fs::create_dir(&damaged).unwrap();
        std::fs::copy(&written[0], damaged.join("ring-1-x.mcap")).unwrap();
        text.into_iter()
            .for_each(|text| std::fs::write(damaged.join("pending.json"), text).unwrap());
        let error = recover(&location(&net), &folder(&net)).unwrap_err().to_string();
        assert!(error.contains("pending.json") && error.contains("the 1 parts next to"), "{error}");
        assert!(damaged.join("ring-1-x.mcap").exists());
        std::fs::remove_dir_all(damaged).unwrap();
    }
}

#[test]
fn ring_stays_within_memory_and_counts_dropped_messages() {
    let net = Net::new("memory");
    let node = net.node("/n");
    let mut camera = node.publisher::<[u8]>("/camera").open().unwrap();
    let blackbox = start(&net, &[]);
    // Incompressible data.
    let mut state = 1u64;
    let image: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    })
    .take(4 << 20)
    .collect();
    let ring = blackbox.status().ring;
    let on_disk = || {
        let files = std::fs::read_dir(&ring).unwrap().flatten();
        files.filter_map(|f| f.metadata().ok()).map(|f| f.len()).sum::<u64>()
    };
    let (mut sent, mut most) = (0u64, 0);
    eventually("a ring has passed", || {
        camera.send(&image).unwrap();
        sent += 1;
        most = most.max(on_disk());
        blackbox.status().messages > 14
    });
    assert!(most <= 64 << 20, "{most} bytes");
    eventually("all messages are counted", || {
        let status = blackbox.status();
        status.messages + status.missing >= sent
    });
    blackbox.trigger("full");
    let file = first_file(&net, &blackbox);
    assert!(of(&stored(&file), "/camera").len() >= 4);
    blackbox.stop().unwrap();
}

#[test]
fn rejects_second_box_and_invalid_options() {
    let net = Net::new("one box");
    let first = start(&net, &[]);
    let error = BlackBox::start(options(&net, &[])).unwrap_err().to_string();
    assert!(error.contains(&std::process::id().to_string()), "{error}");
    first.stop().unwrap();
    // A directory that another user has created.
    let ring = rnet_record::blackbox::RingMemory::of(location(&net).path()).unwrap().ring;
    let elsewhere = net.base().join("elsewhere");
    std::fs::rename(&ring, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &ring).unwrap();
    let error = BlackBox::start(options(&net, &[])).unwrap_err().to_string();
    assert!(error.contains("is not a directory owned by this user"), "{error}");
    std::fs::remove_file(&ring).unwrap();
    let mut opts = options(&net, &[]);
    opts.memory_len_bytes = 1 << 50;
    let error = BlackBox::start(opts).unwrap_err().to_string();
    assert!(error.contains("more than half of the"), "{error}");
    let mut opts = options(&net, &[]);
    opts.memory_len_bytes = 1 << 20;
    assert!(BlackBox::start(opts).unwrap_err().to_string().contains("67108864"));
    let mut opts = options(&net, &[]);
    opts.before = Duration::MAX;
    assert!(BlackBox::start(opts).unwrap_err().to_string().contains("600 s"));
}

/// Messages of `/raw` in the complete chunks of the ring.
fn in_ring(net: &Net) -> usize {
    let dirs = net.base().read_dir().unwrap().flatten().map(|dir| dir.path());
    let is_ring =
        |dir: &PathBuf| dir.file_name().unwrap().to_string_lossy().starts_with("blackbox-");
    let parts = dirs.filter(is_ring).flat_map(|ring| std::fs::read_dir(ring).unwrap().flatten());
    let parts =
        parts.map(|part| part.path()).filter(|part| part.extension() == Some("mcap".as_ref()));
    parts.map(|part| of(&common::stored_in_ruins(&part), "/raw").len()).sum()
}

fn location(net: &Net) -> rnet::inspect::Location {
    options(net, &[]).location.expect("the location is set")
}

#[test]
#[ignore = "run by child processes of the other tests"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    match &*role {
        "dying" => {
            let node = net.node("/dying");
            let mut life = node.publisher::<[u8]>("/life").open().unwrap();
            life.send(&99u32.to_le_bytes()).unwrap();
            tell("lives");
            let _ = orders().recv();
        }
        "box" => {
            let mut opts = options(&net, &[]);
            opts.after = Duration::from_secs(500);
            let blackbox = BlackBox::start(opts).unwrap();
            tell("keeps");
            for order in orders() {
                match order.strip_prefix("wait for ").map(str::parse) {
                    Some(Ok(count)) => {
                        eventually("all messages are recorded", || {
                            blackbox.status().messages >= count
                        });
                        tell("waited");
                    }
                    _ => blackbox.trigger("child"),
                }
            }
        }
        other => panic!("{other}"),
    }
}
