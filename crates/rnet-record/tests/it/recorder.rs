//! Published messages are in the file, byte for byte, or counted as missing.

use crate::common;

use std::path::PathBuf;
use std::sync::Barrier;
use std::time::Duration;

use common::{Net, eventually, folder, lost, metadata, of, options, record, stored};
use rnet::bridge::BridgePublisherBuilder;
use rnet::msgs::foxglove::LaserScan;
use rnet::msgs::plain::Image;
use rnet::{Durability, Lane, Meta, Origin, Proxy};
use rnet_record::{
    ChunkCompression, RecordError, RecordLossCause, Recorder, Selection, Source, names,
};

#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[repr(C)]
struct Pose {
    x: f64,
    y: f64,
}

#[test]
fn records_all_messages_byte_for_byte_in_order_with_times() {
    for compress in [ChunkCompression::Zstd, ChunkCompression::Lz4, ChunkCompression::None] {
        let net = Net::new("byte for byte");
        let node = net.node("/arm");
        let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
        let mut pose = node.publisher::<Pose>("/pose").open().unwrap();
        let mut scan = node.publisher::<LaserScan>("/scan").open().unwrap();
        let mut stop = node
            .publisher::<[u8]>("/stop")
            .urgent()
            .reliable(rnet::OnFull::default())
            .open()
            .unwrap();
        let mut opts = options(&net);
        opts.compress = compress;
        opts.command_line = "rnet record -o x".to_owned();
        let (file, recorder) = record(&net, opts);
        let before = rnet::now_ns();
        for n in 0..1000u32 {
            raw.send(&n.to_le_bytes()).unwrap();
            pose.send(&Pose { x: f64::from(n), y: 0.5 }).unwrap();
            let ranges = vec![f64::from(n); 10];
            scan.send(&LaserScan { frame_id: "laser".to_owned(), ranges, ..Default::default() })
                .unwrap();
            if n % 100 == 0 {
                stop.send(&n.to_le_bytes()).unwrap();
            }
        }
        let after = rnet::now_ns();
        let report = recorder.stop().unwrap();
        assert_eq!((report.losses.total(), report.messages), (0, 3010));
        let all = stored(&file);
        for topic in ["/raw", "/pose", "/scan"] {
            let numbers: Vec<u32> =
                of(&all, topic).iter().map(|message| message.sequence).collect();
            assert_eq!(numbers, (0..1000).collect::<Vec<u32>>());
        }
        let raws = of(&all, "/raw");
        assert!(raws.iter().all(|m| m.data == m.sequence.to_le_bytes() && m.encoding == "bytes"));
        let poses = of(&all, "/pose");
        let bytes = |n: u32| [f64::from(n).to_le_bytes(), 0.5f64.to_le_bytes()].concat();
        assert!(poses.iter().all(|m| m.data == bytes(m.sequence)));
        let (name, encoding, layout) = poses[0].schema.clone().unwrap();
        assert_eq!((poses[0].encoding.as_str(), encoding.as_str()), (names::PLAIN, names::PLAIN));
        let layout = rnet::TypeDesc::from_json(std::str::from_utf8(&layout).unwrap()).unwrap();
        assert_eq!(layout.name(), Some(&*name));
        for message in of(&all, "/scan") {
            let scan: LaserScan = prost::Message::decode(&*message.data).unwrap();
            assert_eq!(scan.ranges, vec![f64::from(message.sequence); 10]);
            let (name, encoding, set) = message.schema.as_ref().unwrap();
            assert_eq!(
                (&**name, &**encoding, &*message.encoding),
                ("foxglove.LaserScan", "protobuf", "protobuf")
            );
            rnet::schema::Schema::from_descriptor_set(set, name).unwrap();
        }
        let stops = of(&all, "/stop");
        assert_eq!(stops.len(), 10);
        let Source { lane, reliability, node, host, .. } = &stops[0].source;
        assert_eq!((*lane, *reliability), (Lane::Urgent, rnet::Reliability::Reliable));
        assert_eq!((&**node, &**host), ("/arm", "here"));
        let said = metadata(&file);
        let offset: i64 = said[names::CLOCK]["offset_ns"].parse().unwrap();
        // The permitted error. The wall clock read here is the same, apart from its slewing.
        let uncertainty: u64 = said[names::CLOCK]["uncertainty_ns"].parse().unwrap();
        assert!(uncertainty > 0, "{said:?}");
        let (now, drift_ns) = (rnet::wall_offset(), 100_000_000);
        assert!(now.offset_ns.abs_diff(offset) <= uncertainty + now.uncertainty_ns + drift_ns);
        for message in &all {
            let sent = message.publish_time.saturating_add_signed(-offset);
            assert!(
                (before..=after).contains(&sent) || message.topic.starts_with("/_rnet"),
                "{message:?}"
            );
            assert!(message.log_time >= message.publish_time);
        }
        assert_eq!(said[names::RECORDING]["options"], "rnet record -o x");
        assert_eq!(
            (&*said[names::RECORDING]["part"], &*said[names::RECORDING]["domain"]),
            ("0", "t")
        );
        assert_eq!(said[names::LOSSES]["total"], "0");
        assert!(said[names::NODES]["/arm"].contains("\"pid\""));
    }
}

#[test]
fn records_images_as_foxglove_messages_or_raw() {
    for raw in [false, true] {
        let net = Net::new("images");
        let node = net.node("/camera");
        let mut camera = node.publisher::<Image>("/image").open().unwrap();
        let mut opts = options(&net);
        opts.raw = raw;
        let (file, recorder) = record(&net, opts);
        let header = Image::new(2048, 2048, "mono8").unwrap();
        for n in 0..5u8 {
            camera.send_data(&header, &vec![n; 2048 * 2048]).unwrap();
            taken(&recorder, n.into());
        }
        let report = recorder.stop().unwrap();
        assert_eq!((report.messages, report.losses.total()), (5, 0));
        let all = stored(&file);
        for (message, n) in of(&all, "/image").into_iter().zip(0u8..) {
            assert_eq!(message.source.type_name, "rnet.msgs.Image");
            if raw {
                assert_eq!((&*message.encoding, &message.source.layout), (names::PLAIN, &None));
                let mut sent = header.header_bytes().to_vec();
                sent.extend(vec![n; 2048 * 2048]);
                assert!(message.data == sent);
            } else {
                assert_eq!(message.schema.as_ref().unwrap().0, "foxglove.RawImage");
                assert!(message.source.layout.is_some());
                let image: rnet::msgs::RawImage = prost::Message::decode(&*message.data).unwrap();
                assert_eq!((image.width, image.height, &*image.encoding), (2048, 2048, "mono8"));
                assert!(image.data == vec![n; 2048 * 2048]);
            }
        }
    }
}

#[test]
fn metadata_record_precedes_its_message() {
    let net = Net::new("meta");
    let node = net.node("/arm");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let (file, recorder) = record(&net, options(&net));
    let origin = Origin { host: u64::MAX, publisher: 5, seq: 6 };
    let meta = Meta::default().with_origin(origin).with_correlation(u64::MAX);
    raw.send(b"plain").unwrap();
    raw.send_with(b"more", meta).unwrap();
    recorder.stop().unwrap();
    let all = stored(&file);
    let at = all.iter().position(|m| m.data == b"more").unwrap();
    let said: serde_json::Value = serde_json::from_slice(&all[at - 1].data).unwrap();
    assert_eq!(all[at - 1].topic, names::META_TOPIC);
    assert_eq!(said["publisher"], all[at].source.publisher.to_string());
    assert_eq!((&said["seq"], &said["origin"]["seq"]), (&1.into(), &6.into()));
    assert_eq!(said["origin"]["host"], u64::MAX.to_string());
    assert_eq!(said["correlation"], u64::MAX.to_string());
    assert_eq!(of(&all, names::META_TOPIC).len(), 1);
}

#[test]
fn records_late_publishers_from_first_and_dying_ones_to_last_message() {
    let net = Net::new("short lives");
    let (file, recorder) = record(&net, options(&net));
    for n in 0..20u32 {
        let node = net.node("/short");
        let mut publisher = node.publisher::<[u8]>("/life").open().unwrap();
        (0..10u32).for_each(|m| publisher.send(&(n * 10 + m).to_le_bytes()).unwrap());
        // The recorder misses a publisher that lives between two polls: this one lives until it was polled.
        let before = recorder.progress().messages;
        eventually("it is recorded", || {
            recorder.progress().messages >= u64::from(n * 10 + 10) || before > 1000
        });
    }
    let report = recorder.stop().unwrap();
    assert_eq!((report.messages, report.losses.total()), (200, 0));
    let all = stored(&file);
    let lives: Vec<u32> = of(&all, "/life")
        .iter()
        .map(|m| u32::from_le_bytes(m.data[..].try_into().unwrap()))
        .collect();
    assert_eq!(lives, (0..200).collect::<Vec<u32>>());
    let mut publishers: Vec<u64> = of(&all, "/life").iter().map(|m| m.source.publisher).collect();
    publishers.dedup();
    assert_eq!(publishers.len(), 20);
}

#[test]
fn sixty_four_publishers_lose_no_uncounted_message() {
    let net = Net::new("sixty-four");
    let (file, recorder) = record(&net, options(&net));
    // A publisher that exits before the recorder has polled it is not found.
    let all_seen = Barrier::new(65);
    std::thread::scope(|scope| {
        for n in 0..64 {
            let (net, all_seen) = (&net, &all_seen);
            scope.spawn(move || {
                let node = net.node(&format!("/node_{n}"));
                let mut publisher = node.publisher::<[u8]>(&format!("/topic_{n}")).open().unwrap();
                for m in 0..500u32 {
                    publisher.send(&m.to_le_bytes()).unwrap();
                    if m % 50 == 0 {
                        std::thread::sleep(Duration::from_millis(5)); // sleep: a rate, as nodes have
                    }
                }
                all_seen.wait();
            });
        }
        eventually("all messages are recorded or missing", || {
            let progress = recorder.progress();
            progress.messages + progress.losses.total() == 64 * 500
        });
        all_seen.wait();
    });
    let report = recorder.stop().unwrap();
    let all = stored(&file);
    for n in 0..64 {
        let topic = format!("/topic_{n}");
        let got = of(&all, &topic).len() as u64;
        assert_eq!(got + lost(&report, &topic), 500, "{topic}");
    }
    assert_eq!(report.messages, of_users(&all) as u64);
}

/// Waits until more than `messages` are recorded or missing: this loop may be faster than the recorder.
fn taken(recorder: &Recorder, messages: u64) {
    eventually("the messages are recorded or missing", || {
        let progress = recorder.progress();
        progress.messages + progress.losses.total() > messages
    });
}

fn of_users(all: &[common::Stored]) -> usize {
    all.iter().filter(|m| !m.topic.starts_with(names::RESERVED_TOPICS)).count()
}

#[test]
fn selection_records_matching_publishers() {
    let net = Net::new("selection");
    let (left, right) = (net.node("/left"), net.node("/right"));
    let mut publishers = Vec::new();
    for node in [&left, &right] {
        for topic in ["/a/image", "/a/depth", "/b"] {
            publishers.push(node.publisher::<[u8]>(topic).open().unwrap());
        }
    }
    let mut pose = left.publisher::<Pose>("/pose").open().unwrap();
    let recorded = |selection: Selection,
                    name: &str,
                    publishers: &mut Vec<rnet::Publisher<[u8]>>,
                    pose: &mut rnet::Publisher<Pose>| {
        let mut opts = options(&net);
        opts.selection = selection;
        let file = folder(&net).join(name);
        let recorder = Recorder::start(&file, opts).unwrap();
        publishers.iter_mut().for_each(|p| p.send(b"x").unwrap());
        pose.send(&Pose { x: 1.0, y: 2.0 }).unwrap();
        recorder.stop().unwrap();
        let mut took: Vec<String> = stored(&file)
            .iter()
            .filter(|m| !m.topic.starts_with("/_rnet"))
            .map(|m| format!("{} {}", m.topic, m.source.node))
            .collect();
        took.sort();
        took
    };
    let mut took = |selection, name| recorded(selection, name, &mut publishers, &mut pose);
    let new = Selection::default;
    assert_eq!(took(new(), "all").len(), 7);
    assert_eq!(
        took(new().topic("/a/*").unwrap().node("/left").unwrap(), "node"),
        ["/a/depth /left", "/a/image /left"]
    );
    assert_eq!(took(new().topic("b").unwrap(), "name"), ["/b /left", "/b /right"]);
    assert_eq!(took(new().type_name("Pose"), "type"), ["/pose /left"]);
    assert_eq!(
        took(new().exclude("/a/**").unwrap().exclude("/pose").unwrap(), "not"),
        ["/b /left", "/b /right"]
    );
    assert_eq!(took(new().host("elsewhere"), "host"), [""; 0]);
    assert_eq!(
        took(new().host("here").type_name("bytes").topic("/a/image").unwrap(), "both").len(),
        2
    );
}

#[test]
fn records_topics_of_another_host_under_their_nodes() {
    let net = Net::new("other host");
    let (arm, link) = (net.node("/arm"), net.node("/link"));
    let mut ours = arm.publisher::<[u8]>("/t").open().unwrap();
    let mut theirs = ["robot2", "robot3"].map(|host| {
        link.publisher::<[u8]>("/t").proxy(Proxy::new(host, "/arm", 7).unwrap()).open().unwrap()
    });
    let origin = Origin { host: 2, publisher: 7, seq: 70 };
    let mut recorded = |selection: Selection, name: &str| {
        let mut opts = options(&net);
        opts.selection = selection;
        let file = folder(&net).join(name);
        let recorder = Recorder::start(&file, opts).unwrap();
        ours.send(b"ours").unwrap();
        for theirs in &mut theirs {
            theirs.send_with(b"theirs", Meta::default().with_origin(origin)).unwrap();
        }
        assert_eq!(recorder.stop().unwrap().losses.total(), 0);
        let all = stored(&file);
        let mut took: Vec<String> = of(&all, "/t")
            .iter()
            .map(|m| {
                let data = String::from_utf8_lossy(&m.data);
                format!("{data} {} {}", m.source.host, m.source.node)
            })
            .collect();
        took.sort();
        (took, of(&all, names::META_TOPIC).len())
    };
    let of_here = "ours here /arm".to_owned();
    let of_others = ["robot2", "robot3"].map(|host| format!("theirs {host} /arm"));
    let new = Selection::default;
    let all = [std::slice::from_ref(&of_here), &of_others[..]].concat();
    assert_eq!(recorded(new(), "all"), (all.clone(), 2));
    assert_eq!(recorded(new().node("/arm").unwrap(), "node"), (all, 2));
    assert_eq!(recorded(new().host("robot2"), "one"), (vec![of_others[0].clone()], 1));
    let both = new().host("robot2").host("robot3");
    assert_eq!(recorded(both, "both"), (of_others.to_vec(), 2));
    assert_eq!(recorded(new().host("here"), "here"), (vec![of_here], 0));
    // The proxy that carries them is not their publisher.
    assert_eq!(recorded(new().node("/link").unwrap(), "link"), (vec![], 0));
}

#[test]
fn counts_messages_that_are_too_fast_in_the_file() {
    let net = Net::new("too fast");
    let node = net.node("/fast");
    let mut fast = node.publisher::<[u8]>("/fast").open().unwrap();
    let mut opts = options(&net);
    // Little memory: the topic reader has to wait while the writer compresses.
    opts.buffer_len_bytes = 1 << 16;
    let (file, recorder) = record(&net, opts);
    let noise: Vec<u8> =
        (0..60_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut sent = 0u64;
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while recorder.progress().losses.total() == 0 && std::time::Instant::now() < until {
        (0..1000).for_each(|_| fast.send(&noise).unwrap());
        sent += 1000;
    }
    // A message after the losses, so that the end of the last gap is known.
    std::thread::sleep(Duration::from_millis(200)); // sleep: lets the log be read
    fast.send(b"last").unwrap();
    sent += 1;
    let report = recorder.stop().unwrap();
    assert!(report.losses.total() > 0);
    let all = stored(&file);
    let got = of(&all, "/fast");
    assert_eq!(got.len() as u64 + report.losses.total(), sent);
    // A gap in the numbers is a loss, and the file records its cause.
    let mut gaps = 0;
    let mut next = 0u32;
    for message in &got {
        gaps += u64::from(message.sequence - next);
        next = message.sequence + 1;
    }
    assert_eq!(gaps, report.losses.total());
    let runs: u64 = of(&all, names::MISSED_TOPIC)
        .iter()
        .map(|m| {
            serde_json::from_slice::<serde_json::Value>(&m.data).unwrap()["count"].as_u64().unwrap()
        })
        .sum();
    assert_eq!(runs, gaps);
    assert_eq!(metadata(&file)[names::LOSSES]["total"], gaps.to_string());
    let causes = report.losses.by_cause();
    assert!(
        causes.keys().all(|cause| matches!(
            cause,
            RecordLossCause::Queue | RecordLossCause::Overrun | RecordLossCause::Reused
        )),
        "{causes:?}"
    );
}

#[test]
fn parts_are_self_contained() {
    let net = Net::new("parts");
    let node = net.node("/map");
    let mut map = node.publisher::<[u8]>("/map").transient_local(2).open().unwrap();
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let state = node.state().unwrap();
    state.set("/speed", 0.5).unwrap();
    for n in 0..5u8 {
        map.send(&[n]).unwrap();
    }
    let mut opts = options(&net);
    opts.split_size = Some(1 << 20);
    opts.compress = ChunkCompression::None;
    let (file, recorder) = record(&net, opts);
    eventually("the speed is recorded", || {
        let all = common::stored_in_ruins(&file);
        of(&all, names::STATE_TOPIC).iter().any(|m| m.data.windows(3).any(|text| text == b"0.5"))
    });
    state.set("/speed", 1.5).unwrap();
    for n in 0..5000u32 {
        raw.send(&[n.to_le_bytes(); 256].concat()).unwrap();
        if n % 100 == 0 {
            taken(&recorder, n.into());
        }
    }
    let report = recorder.stop().unwrap();
    assert_eq!(report.losses.total(), 0);
    assert!(report.ended.len() > 3, "{:?}", report.ended);
    let mut raws = Vec::new();
    let mut speeds = Vec::new();
    let (mut previous, mut first_sent) = (0, None);
    for (number, part) in report.ended.iter().enumerate() {
        let name = if number == 0 { "run.mcap".to_owned() } else { format!("run_{number}.mcap") };
        assert_eq!(part.file_name().unwrap().to_str().unwrap(), name);
        let all = stored(part);
        let maps: Vec<u32> = of(&all, "/map").iter().map(|m| m.sequence).collect();
        assert_eq!(maps, [3, 4], "part {number}");
        // Messages that a part repeats are logged at its start and keep their send time, so the part covers
        // only its own time. (Each part has measured the wall clock, which differs by less than 1 ms.)
        let repeated = [of(&all, "/map")[0], of(&all, names::STATE_TOPIC)[0]];
        assert!(repeated.iter().all(|m| m.log_time + 1_000_000 >= previous), "part {number}");
        let sent = of(&all, "/map")[0].publish_time;
        assert!(sent.abs_diff(*first_sent.get_or_insert(sent)) < 1_000_000, "part {number}");
        previous = of(&all, "/raw").iter().map(|m| m.log_time).max().unwrap_or(previous);
        let depth = of(&all, "/map")[0].source.durability;
        assert_eq!(depth, Durability::TransientLocal { depth: 2 });
        let keys: Vec<serde_json::Value> = of(&all, names::STATE_TOPIC)
            .iter()
            .map(|m| serde_json::from_slice(&m.data).unwrap())
            .filter(|key: &serde_json::Value| key["key"] == "/speed")
            .collect();
        assert_eq!(keys[0]["kind"], "float", "part {number}: {keys:?}");
        assert!(number == 0 || keys[0]["initial"] == true, "{keys:?}");
        speeds.extend(keys.iter().map(|key| key["value"].as_f64().unwrap()));
        raws.extend(of(&all, "/raw").iter().map(|m| m.sequence));
        assert_eq!(metadata(part)[names::RECORDING]["part"], number.to_string());
    }
    assert_eq!(raws, (0..5000).collect::<Vec<u32>>());
    assert_eq!((speeds.first(), speeds.last()), (Some(&0.5), Some(&1.5)));
    assert_eq!(report.ended[0], file);
}

#[test]
fn counts_skipped_values_of_fast_keys() {
    const VALUES: i64 = 5000;
    let net = Net::new("fast key");
    let node = net.node("/n");
    let state = node.state().unwrap();
    state.set("/k", -1).unwrap();
    let mut opts = options(&net);
    opts.split_time = Some(Duration::from_millis(20));
    let (file, recorder) = record(&net, opts);
    let values = |all: &[common::Stored]| -> Vec<serde_json::Value> {
        let said = of(all, names::STATE_TOPIC).into_iter();
        let said = said.map(|m| serde_json::from_slice(&m.data).unwrap());
        said.filter(|said: &serde_json::Value| said["key"] == "/k").collect()
    };
    eventually("the key is recorded", || !values(&common::stored_in_ruins(&file)).is_empty());
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    for n in 0..VALUES {
        state.set("/k", n).unwrap();
    }
    // Parts that begin with the newest value; some values before it are missing.
    for _ in 0..20 {
        raw.send(&[1]).unwrap();
        std::thread::sleep(Duration::from_millis(5)); // sleep: parts end by their age
    }
    let report = recorder.stop().unwrap();
    let of_part = |(number, part): (usize, &PathBuf)| {
        let mut said = values(&stored(part));
        // Each part begins with the current value of the key, which is not a change and counts no skipped
        // values.
        said.retain(|said| {
            number == 0 || said["initial"] != true || said["skipped"].as_u64().is_some()
        });
        said
    };
    let values: Vec<serde_json::Value> =
        report.ended.iter().enumerate().flat_map(of_part).collect();
    let skipped: u64 = values.iter().filter_map(|said| said["skipped"].as_u64()).sum();
    assert_eq!(values.len() as u64 + skipped, VALUES as u64 + 1, "{skipped} skipped");
    assert_eq!(report.skipped_values, skipped);
    assert_eq!(values[values.len() - 1]["value"], VALUES - 1);
    let is_told = report.notes.iter().any(|note| note.contains("state values are not"));
    assert_eq!(is_told, skipped > 0, "{:?}", report.notes);
}

#[test]
fn removes_oldest_parts_first() {
    // Parts that end by their size alone, and also by their age.
    for split_time in [None, Some(Duration::from_millis(30))] {
        let net = Net::new("max disk");
        let node = net.node("/n");
        let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
        let mut opts = options(&net);
        (opts.max_disk, opts.compress) = (Some(16 << 20), ChunkCompression::None);
        opts.split_time = split_time;
        let (file, recorder) = record(&net, opts);
        let mut sent = 0;
        while sent < 40 || recorder.progress().removed < 2 {
            raw.send(&vec![sent as u8; 1 << 20]).unwrap();
            taken(&recorder, sent.into());
            sent += 1;
        }
        let notes = recorder.take_notes().join("\n");
        let report = recorder.stop().unwrap();
        assert_eq!(report.losses.total(), 0);
        assert!(notes.contains(&format!("{} is removed", file.display())), "{notes}");
        assert!(report.removed > 1 && !file.exists());
        let len: u64 = report.ended.iter().map(|part| part.metadata().unwrap().len()).sum();
        assert!(len <= 16 << 20, "{len}");
        let of_part = |part: &PathBuf| {
            let all = stored(part);
            of(&all, "/raw").iter().map(|m| m.sequence).collect::<Vec<_>>()
        };
        let raws: Vec<u32> = report.ended.iter().flat_map(of_part).collect();
        let first = raws[0];
        assert!(first > 0);
        assert_eq!(raws, (first..sent).collect::<Vec<u32>>());
    }
}

#[test]
fn records_gate_topic_from_its_first_message() {
    let net = Net::new("while first");
    let node = net.node("/n");
    let mut opts = options(&net);
    opts.while_topic = Some("/mission".to_owned());
    let (file, recorder) = record(&net, opts);
    assert!(recorder.progress().is_waiting);
    // Some are sent before the next check for a publisher, which runs 10 times a second.
    let mut mission = node.publisher::<[u8]>("/mission").open().unwrap();
    (0..50).for_each(|n| mission.send(&[n]).unwrap());
    eventually("all messages are recorded", || recorder.progress().messages == 50);
    let report = recorder.stop().unwrap();
    let all = stored(&file);
    let numbers: Vec<u32> = of(&all, "/mission").iter().map(|m| m.sequence).collect();
    assert_eq!((numbers, report.losses.total()), ((0..50).collect(), 0));
}

#[test]
fn records_only_while_gate_topic_has_publisher() {
    let net = Net::new("while");
    let node = net.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut opts = options(&net);
    opts.while_topic = Some("mission".to_owned());
    let (file, recorder) = record(&net, opts);
    assert!(recorder.progress().is_waiting && !file.exists());
    for n in 0..2u8 {
        raw.send(b"not wanted").unwrap();
        std::thread::sleep(Duration::from_millis(300)); // sleep: unrecorded messages pass
        let mission = node.publisher::<[u8]>("/mission").open().unwrap();
        eventually("it begins", || recorder.progress().path.is_some());
        raw.send(&[n]).unwrap();
        eventually("the message is recorded", || recorder.progress().messages == u64::from(n) + 1);
        drop(mission);
        eventually("it ends", || recorder.progress().path.is_none());
    }
    let report = recorder.stop().unwrap();
    assert_eq!((report.ended.len(), report.losses.total()), (2, 0));
    for (part, n) in report.ended.iter().zip(0u8..) {
        let all = stored(part);
        let raws: Vec<&[u8]> = of(&all, "/raw").iter().map(|m| &*m.data).collect();
        assert_eq!(raws, [[n]]);
    }
}

#[test]
fn stops_after_duration_and_overwrites_nothing() {
    let net = Net::new("its time");
    let node = net.node("/n");
    let mut opts = options(&net);
    opts.duration = Some(Duration::from_millis(50));
    let (file, recorder) = record(&net, opts.clone());
    eventually("it ends", || recorder.is_finished());
    recorder.stop().unwrap();
    assert_eq!(stored(&file), []);
    assert!(matches!(Recorder::start(&file, opts.clone()), Err(RecordError::Exists { .. })));
    opts.while_topic = Some("/x".to_owned());
    assert!(matches!(Recorder::start(&file, opts.clone()), Err(RecordError::Exists { .. })));
    let nowhere = file.join("x.mcap");
    opts.while_topic = None;
    let error = Recorder::start(&nowhere, opts).unwrap_err();
    assert!(error.to_string().contains("x.mcap"), "{error}");
    drop(node);
}
