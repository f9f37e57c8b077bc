//! Playback of a recording: how often the time is sent, and how a damaged file is reported.

use crate::util;

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::time::Instant;

use rnet_foxglove::ServerHandle;
use rnet_record::mcap::records::MessageHeader;
use rnet_record::mcap::{WriteOptions, Writer};
use serde_json::Value;
use tungstenite::Message;
use util::{TestDomain, Viewer};

const START_NS: u64 = 1_790_000_000_000_000_000;
/// Occurs only in payloads.
const PAYLOAD: [u8; 16] = *b"here is a robot!";

/// A recording of `/t` with this many messages, this far apart in ns, in chunks of a few messages.
fn recording(test_domain: &TestDomain, messages: u32, apart_ns: u64, damaged: bool) -> PathBuf {
    let options = WriteOptions::new().chunk_size(Some(200)).compression(None);
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), options).unwrap();
    let channel_id = writer.add_channel(0, "/t", "", &Default::default()).unwrap();
    for sequence in 0..messages {
        let log_time = START_NS + u64::from(sequence) * apart_ns;
        let header = MessageHeader { channel_id, sequence, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, &PAYLOAD).unwrap();
    }
    writer.finish().unwrap();
    let mut bytes = writer.into_inner().into_inner();
    // Flips a bit in each chunk except the first.
    let first = bytes.windows(PAYLOAD.len()).position(|part| part == PAYLOAD).unwrap();
    for at in (first + 1000..bytes.len()).filter(|_| damaged) {
        if bytes[at..].starts_with(&PAYLOAD) {
            bytes[at] ^= 1;
        }
    }
    let path = test_domain.0.join("run.mcap");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn played(test_domain: &TestDomain, file: PathBuf) -> ServerHandle {
    let mut options = test_domain.options();
    options.recording = Some(file);
    rnet_foxglove::serve(options).unwrap()
}

/// Everything received until playback ends.
#[derive(Default)]
struct PlaybackLog {
    /// Received times, in ns.
    times: Vec<u64>,
    warnings: Vec<String>,
}

fn until_the_end(viewer: &mut Viewer) -> PlaybackLog {
    const ENDED: u8 = 3;
    let mut log = PlaybackLog::default();
    viewer.until(|message| {
        match message {
            Message::Text(text) => {
                let said: Value = serde_json::from_str(text).unwrap();
                if said["op"] == "status" {
                    log.warnings.push(said["message"].as_str().unwrap().to_owned());
                }
            }
            Message::Binary(frame) if frame[0] == 2 => {
                log.times.push(u64::from_le_bytes(frame[1..].try_into().unwrap()));
            }
            Message::Binary(frame) if frame[0] == 5 && frame[1] == ENDED => return Some(()),
            _ => {}
        }
        None
    });
    log
}

#[test]
fn sends_time_with_messages_at_most_60_times_per_second() {
    let test_domain = TestDomain::new();
    // 2,000 messages in a second, and as many at the same time, without waiting.
    for apart_ns in [500_000, 0] {
        let server = played(&test_domain, recording(&test_domain, 2000, apart_ns, false));
        let mut viewer = Viewer::of(&server);
        let channel = viewer.channel("/t");
        let begun = Instant::now();
        viewer.subscribe(1, &channel);
        let log = until_the_end(&mut viewer);
        let most = begun.elapsed().as_secs_f64() * 60.0 + 1.0;
        let times = &log.times;
        assert!(!times.is_empty() && times.len() as f64 <= most, "{} of {most}", times.len());
        assert!(times.is_sorted() && times[0] >= START_NS, "{times:?}");
        assert!(*times.last().unwrap() <= START_NS + 2000 * apart_ns, "{times:?}");
    }
}

#[test]
fn reports_only_first_damage_of_each_kind() {
    let test_domain = TestDomain::new();
    let server = played(&test_domain, recording(&test_domain, 400, 0, true));
    let mut viewer = Viewer::of(&server);
    let channel = viewer.channel("/t");
    viewer.subscribe(1, &channel);
    let log = until_the_end(&mut viewer);
    assert_eq!(log.warnings.len(), 1, "{:?}", log.warnings);
    assert!(log.warnings[0].contains("run.mcap: "), "{:?}", log.warnings);
    // Nor when it is played again.
    viewer.binary(&[&[3, 0], &1f32.to_le_bytes(), &[0], &[0; 8], &[0; 4]]);
    let again = until_the_end(&mut viewer);
    assert_eq!(again.warnings, [""; 0]);
}

/// The first `count` advertised channels, by topic.
fn channels(viewer: &mut Viewer, count: usize) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    viewer.until(|message| {
        let Message::Text(text) = message else { return None };
        let said: Value = serde_json::from_str(text).unwrap();
        for channel in said["channels"].as_array().into_iter().flatten() {
            found.insert(channel["topic"].as_str().unwrap().to_owned(), channel.clone());
        }
        (found.len() == count).then_some(())
    });
    found
}

/// The next `count` messages, in order.
fn messages(viewer: &mut Viewer, count: usize) -> Vec<(u32, Vec<u8>)> {
    (0..count).map(|_| viewer.message()).collect()
}

#[test]
fn all_channels_of_a_request_get_the_first_messages() {
    const CHANNELS: u32 = 25;
    let test_domain = TestDomain::new();
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), WriteOptions::new()).unwrap();
    for n in 0..CHANNELS {
        let topic = format!("/t{n}");
        let channel_id = writer.add_channel(0, &topic, "", &Default::default()).unwrap();
        let log_time = START_NS + u64::from(n) * 40_000;
        let header = MessageHeader { channel_id, sequence: 0, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, topic.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    let path = test_domain.0.join("run.mcap");
    std::fs::write(&path, writer.into_inner().into_inner()).unwrap();
    for _ in 0..20 {
        let server = played(&test_domain, path.clone());
        let mut viewer = Viewer::of(&server);
        let channels = channels(&mut viewer, CHANNELS as usize);
        let id = |n: u32| &channels[&format!("/t{n}")]["id"];
        let subscriptions: Vec<Value> =
            (0..CHANNELS).map(|n| serde_json::json!({"id": n, "channelId": id(n)})).collect();
        viewer.send(&serde_json::json!({"op": "subscribe", "subscriptions": subscriptions}));
        let got = messages(&mut viewer, CHANNELS as usize);
        let ids: Vec<u32> = got.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, (0..CHANNELS).collect::<Vec<u32>>());
    }
}

#[test]
fn late_subscriber_gets_latched_messages() {
    let test_domain = TestDomain::new();
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), WriteOptions::new()).unwrap();
    let latched = [("rnet.durability", "transient_local"), ("rnet.depth", "1")];
    let latched = latched.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let map = writer.add_channel(0, "/map", "", &latched).unwrap();
    let tick = writer.add_channel(0, "/tick", "", &Default::default()).unwrap();
    for (channel_id, at, data) in [
        (map, 0, "old"),
        (map, 1, "map"),
        (tick, 2, "tick"),
        (map, 1_000_000, "new"),
        (tick, 2_000_000, "tick"),
    ] {
        let log_time = START_NS + at;
        let header = MessageHeader { channel_id, sequence: 0, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, data.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    let path = test_domain.0.join("run.mcap");
    std::fs::write(&path, writer.into_inner().into_inner()).unwrap();
    let server = played(&test_domain, path);
    let mut viewer = Viewer::of(&server);
    let channels = channels(&mut viewer, 2);
    viewer.subscribe(1, &channels["/tick"]);
    assert_eq!(messages(&mut viewer, 2), [(1, b"tick".to_vec()), (1, b"tick".to_vec())]);
    viewer.subscribe(2, &channels["/map"]);
    assert_eq!(viewer.message(), (2, b"new".to_vec()));
    // After seeking back to the second tick, the messages kept at that time are sent again.
    let at = (START_NS + 500_000).to_le_bytes();
    viewer.binary(&[&[3, 0], &1f32.to_le_bytes(), &[1], &at, &[0; 4]]);
    let again = messages(&mut viewer, 3);
    assert_eq!(again, [(2, b"map".to_vec()), (2, b"new".to_vec()), (1, b"tick".to_vec())]);
}
