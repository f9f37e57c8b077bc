//! What a page sees of a domain, and what it changes in one.

use crate::util;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet::msgs::{Twist, Vector3};
use rnet::{LogLevel, Node};
use rnet_dashboard::Dashboard;
use serde_json::{Value as Json, json};
use util::{Page, TestDomain, get, get_with, has_node, what};

/// Publishes periodically until it is dropped.
struct Pump {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Pump {
    fn start(every: Duration, mut send: impl FnMut(u64) + Send + 'static) -> Pump {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut n = 0;
            while !stopped.load(Ordering::Relaxed) {
                send(n);
                n += 1;
                std::thread::sleep(every); // sleep: the period of the messages
            }
        });
        Pump { stop, thread: Some(thread) }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

fn twist(x: f64) -> Twist {
    Twist { linear: Some(Vector3 { x, ..Default::default() }), ..Default::default() }
}

fn pump(node: &Node, topic: &str) -> Pump {
    let mut publisher = node.publisher::<Twist>(topic).open().unwrap();
    Pump::start(Duration::from_millis(2), move |n| {
        publisher.send(&twist(if n % 50 == 25 { 9.0 } else { (n % 2) as f64 })).unwrap();
    })
}

#[test]
fn starts_before_domain_exists_and_shows_nodes_topics_and_gone_nodes() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let figures = page.sub(json!({"what": "figures", "interval_ms": 250}));
    page.data(figures, |data| (data["exists"] == false).then_some(()));
    let health = get(dashboard.address(), "/healthz");
    assert_eq!(health.status, 503, "{}", health.text());
    assert!(health.text().contains("no node has joined this domain yet"), "{}", health.text());
    assert!(
        place.location().exists().is_ok_and(|exists| !exists),
        "observing has created a domain"
    );
    let (imu, arm) = (place.node("imu"), place.node("arm"));
    let subscription = arm.subscriber::<Twist>("/twist").open().unwrap().on(|_| {});
    let pump = pump(&imu, "/twist");
    let row = page.data(figures, |data| {
        let row = data["topics"].as_array()?.iter().find(|row| row["topic"] == "/twist")?;
        let is_heard = row["latency"]["p50_ns"].is_u64() && row["rate_hz"].as_f64()? > 1.0;
        is_heard.then(|| row.clone())
    });
    assert_eq!(row["types"][0], "rnet.msgs.Twist", "{row}");
    assert_eq!(
        (&row["publishers"][0]["node"], &row["subscribers"][0]["node"]),
        (&json!("/imu"), &json!("/arm"))
    );
    let history = page.sub(json!({"what": "history", "topic": "/twist"}));
    let first = page.data(history, |data| Some(data.clone()));
    let columns = first["t_s"].as_array().unwrap().len();
    assert!(columns > 0 && first["p99_ns"].as_array().unwrap().len() == columns, "{first}");
    page.data(history, |data| (!data["hist"].as_array()?.is_empty()).then_some(()));
    // A node that leaves normally is not shown as gone.
    drop((pump, imu));
    let is_alone = |data: &Json| has_node(data, "/arm") && !has_node(data, "/imu");
    let data = page.data(figures, |data| is_alone(data).then(|| data.clone()));
    assert_eq!(data["gone"], json!([]), "{data}");
    drop((subscription, arm));
}

#[test]
fn reports_incompatible_types_and_quality_of_service() {
    let place = TestDomain::new();
    let (imu, arm) = (place.node("imu"), place.node("arm"));
    let _sent = imu.publisher::<Twist>("/twist").open().unwrap();
    let _heard = arm.subscriber::<Twist>("/twist").reliable().open().unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let figures = page.sub(what("figures"));
    let found = page.data(figures, |data| data["mismatches"].get(0).cloned());
    assert_eq!(
        (&found["topic"], &found["subscriber"]),
        (&json!("/twist"), &json!("/arm")),
        "{found}"
    );
    let health = get(dashboard.address(), "/healthz");
    let document: Json = serde_json::from_slice(&health.body).unwrap();
    assert_eq!((health.status, &document["ok"]), (503, &json!(false)), "{document}");
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    let metrics = get_with(dashboard.address(), "/metrics", accept);
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    assert!(metrics.text().contains("rnet_topic_publishers{domain=\"dash\",topic=\"/twist\"} 1"));
    assert!(metrics.text().ends_with("# EOF\n"));
    let plain = get(dashboard.address(), "/metrics");
    assert!(plain.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    assert!(plain.text().contains("rnet_topic_publishers{domain=\"dash\",topic=\"/twist\"} 1"));
    assert!(!plain.text().contains("# EOF"));
}

#[test]
fn plot_keeps_peaks_and_messages_are_shown_as_json() {
    let place = TestDomain::new();
    let node = place.node("imu");
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let plot = json!({"what": "plot", "topic": "/twist", "field": "linear.x", "bucket_ms": 200});
    let plot = page.sub(plot);
    let wrong = page.sub(json!({"what": "plot", "topic": "/twist", "field": "linear.q"}));
    let messages = page.sub(json!({"what": "messages", "topic": "/twist", "hz": 30}));
    let pump = pump(&node, "/twist");
    let mut n = 0;
    page.data(plot, |data| {
        let counts: Vec<u64> = data["n"].as_array()?.iter().filter_map(Json::as_u64).collect();
        n += counts.iter().sum::<u64>();
        let (min, max) = (data["min"].as_array()?, data["max"].as_array()?);
        // One message in fifty is a peak, within a bucket of many.
        let at = max.iter().position(|max| *max == 9.0)?;
        assert_eq!(min[at].as_f64().map(|min| min <= 1.0 || counts[at] == 1), Some(true), "{data}");
        (counts[at] > 1).then_some(())
    });
    let why = page.data(wrong, |data| data["why"].as_str().map(str::to_owned));
    assert!(why.contains("linear.q") || why.contains('q'), "{why}");
    let message = page.data(messages, |data| Some(data.clone()));
    assert_eq!((&message["node"], &message["type"]), (&json!("/imu"), &json!("rnet.msgs.Twist")));
    assert!(message["json"]["linear"]["x"].is_number(), "{message}");
    assert_eq!(message["units"]["linear.x"], "m/s", "{message}");
    page.data(plot, |data| (data["unit"] == "m/s").then_some(()));
    let first = message["seq"].as_u64().unwrap();
    page.data(messages, |data| (data["seq"].as_u64()? > first).then_some(()));
    let form = page.ask(json!({"op": "type", "topic": "/twist"}));
    assert_eq!(form["form"]["fields"][0]["name"], "linear", "{form}");
    drop(pump);
}

#[test]
fn unsubscribed_topics_are_not_followed_and_latched_messages_arrive_at_once() {
    let place = TestDomain::new();
    let node = place.node("map");
    let mut publisher = node.publisher::<Twist>("/goal").transient_local(1).open().unwrap();
    publisher.send(&twist(7.0)).unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let other = page.sub(json!({"what": "messages", "topic": "/other"}));
    // The second subscription uses a reader that already follows the domain.
    for _ in 0..2 {
        let messages = page.sub(json!({"what": "messages", "topic": "/goal"}));
        let x = page.data(messages, |data| data["json"]["linear"]["x"].as_f64());
        assert_eq!(x, 7.0);
        page.ask(json!({"op": "unsub", "sub": messages}));
    }
    page.ask(json!({"op": "unsub", "sub": other}));
}

#[test]
fn shows_follows_and_changes_state() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let state = page.sub(json!({"what": "state", "prefix": "/"}));
    page.data(state, |data| (data["whole"] == true).then_some(()));
    let node = place.node("arm");
    let own = node.state().unwrap();
    own.set("/arm/mode", "idle").unwrap();
    let value = |data: &Json, key: &str| {
        let entries = data["entries"].as_array()?;
        entries.iter().find(|entry| entry["key"] == key).map(|entry| entry["value"].clone())
    };
    page.data(state, |data| (value(data, "/arm/mode")? == "idle").then_some(()));
    own.set("/arm/mode", "run").unwrap();
    page.data(state, |data| (value(data, "/arm/mode")? == "run").then_some(()));
    let set = page.ask(json!({"op": "state.set", "key": "/arm/speed", "value": 2.5}));
    assert_eq!((&set["ok"], &set["entry"]["type"]), (&json!(true), &json!("float")), "{set}");
    assert_eq!(own.get("/arm/speed").unwrap(), Some(2.5.into()));
    let plot = page.sub(json!({"what": "plot", "state": "/arm/speed", "bucket_ms": 50}));
    page.data(plot, |data| (data["last"][0] == 2.5).then_some(()));
    // The key keeps its type, whatever the type of the JSON number.
    assert_eq!(
        page.ask(json!({"op": "state.set", "key": "/arm/speed", "value": 3}))["entry"]["type"],
        "float"
    );
    assert_eq!(
        page.refused(json!({"op": "state.set", "key": "/arm/speed", "value": "fast"})),
        "bad_request"
    );
    page.ask(json!({"op": "state.delete", "key": "/arm/mode"}));
    page.data(state, |data| {
        (data["deleted"].as_array()?.contains(&json!("/arm/mode"))).then_some(())
    });
    assert_eq!(page.refused(json!({"op": "state.delete", "key": "/arm/mode"})), "not_found");
}

#[test]
fn shows_parameters_with_ranges_and_enforces_them() {
    let place = TestDomain::new();
    let node = place.node("arm");
    let gain = node.param::<f64>("gain").default(1.0).min(0.0).max(10.0).declare().unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let params = page.sub(what("params"));
    let row = page.data(params, |data| data["params"].get(0).cloned());
    assert_eq!(
        (&row["node"], &row["name"], &row["type"]),
        (&json!("/arm"), &json!("/gain"), &json!("float"))
    );
    assert_eq!((&row["min"], &row["max"], &row["value"]), (&json!(0.0), &json!(10.0), &json!(1.0)));
    let set =
        |value: Json| json!({"op": "param.set", "node": "/arm", "name": "/gain", "value": value});
    assert_eq!(page.ask(set(json!(4)))["param"]["value"], 4.0);
    assert_eq!(gain.get().unwrap(), 4.0);
    page.data(params, |data| (data["params"][0]["value"] == 4.0).then_some(()));
    assert_eq!(page.refused(set(json!(11))), "refused");
    assert_eq!(page.refused(set(json!({}))), "bad_request");
    assert_eq!(
        page.ask(json!({"op": "param.reset", "node": "/arm", "name": "/gain"}))["param"]["value"],
        1.0
    );
    let none = json!({"op": "param.set", "node": "/arm", "name": "/none", "value": 1});
    assert_eq!(page.refused(none), "not_found");
}

#[test]
fn shows_logs_with_history_and_by_level() {
    let place = TestDomain::new();
    let node = place.node("arm");
    node.log().log(LogLevel::Info, "begun");
    node.log().log(LogLevel::Error, "the motor is hot");
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let all = page.sub(what("logs"));
    let errors = page.sub(json!({"what": "logs", "level": "error", "text": "motor"}));
    let has = |data: &Json, text: &str| {
        data["lines"]
            .as_array()
            .is_some_and(|lines| lines.iter().any(|line| line["message"] == text))
    };
    page.data(all, |data| (has(data, "begun") && has(data, "the motor is hot")).then_some(()));
    page.data(errors, |data| {
        assert!(!has(data, "begun"));
        has(data, "the motor is hot").then_some(())
    });
    node.log().log(LogLevel::Warning, "and now");
    page.data(all, |data| has(data, "and now").then_some(()));
}

#[test]
fn stop_takes_authority_keeps_it_without_page_and_releases_it() {
    let place = TestDomain::new();
    let base = place.node("base");
    let applied = Arc::new(Mutex::new(Vec::new()));
    let put = applied.clone();
    let command =
        base.command::<Twist>("/cmd_vel").deadline(Duration::from_secs(5)).fallback_zero();
    let command = command
        .apply(move |twist: &Twist| put.lock().unwrap().push(twist.linear.map_or(0.0, |v| v.x)))
        .unwrap();
    let pilot = place.node("pilot");
    let mut driver = pilot
        .drive::<Twist>("/cmd_vel")
        .priority(1)
        .lease(Duration::from_secs(30))
        .timeout(util::HANG)
        .take()
        .unwrap();
    driver.send(&twist(1.0)).unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let commands = page.sub(what("commands"));
    page.data(commands, |data| (data["commands"][0]["driver"] == "/pilot").then_some(()));
    let take = page.ask(json!({"op": "command.take", "command": "/cmd_vel"}));
    assert_eq!(take["held"], true, "{take}");
    page.data(commands, |data| {
        let row = data["commands"].get(0)?;
        (row["held"] == true && row["driver"].as_str()?.starts_with("/rnet_dashboard_"))
            .then_some(())
    });
    assert!(driver.send(&twist(2.0)).is_err(), "the driver did not get an error");
    drop(page);
    let mut page = Page::open(&dashboard);
    let commands = page.sub(what("commands"));
    page.data(commands, |data| (data["commands"].get(0)?["held"] == true).then_some(()));
    let log = page.sub(json!({"what": "command_log", "command": "/cmd_vel"}));
    page.data(log, |data| {
        data["lines"].as_array()?.iter().any(|line| line["kind"] == "granted").then_some(())
    });
    assert_eq!(page.ask(json!({"op": "command.release", "command": "/cmd_vel"}))["ok"], true);
    page.data(commands, |data| (data["commands"].get(0)?["held"] == false).then_some(()));
    assert_eq!(page.refused(json!({"op": "command.release", "command": "/cmd_vel"})), "not_found");
    assert_eq!(page.refused(json!({"op": "command.take", "command": "/none"})), "not_found");
    assert!(!applied.lock().unwrap().contains(&2.0));
    drop(command);
}

#[test]
fn lists_and_calls_services_and_shows_progress_of_actions() {
    let place = TestDomain::new();
    let planner = place.node("planner");
    let double = |asked: &Twist| Ok(twist(asked.linear.map_or(0.0, |v| v.x) * 2.0));
    let _double = planner.service::<Twist, Twist>("/double").serve(double).unwrap();
    let drive = planner.action::<Twist, Twist, Twist>("/drive").serve(|goal, context| {
        let mut x = 0.0;
        while !context.cancelled() {
            x += 1.0;
            context.feedback(&twist(x))?;
            if x >= goal.linear.map_or(0.0, |v| v.x) {
                return Ok(twist(x));
            }
            std::thread::sleep(Duration::from_millis(5)); // sleep: the duration of a step of the goal
        }
        Ok(twist(-1.0))
    });
    let _drive = drive.unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let services = page.sub(what("services"));
    let row = page.data(services, |data| {
        data["services"].as_array()?.iter().find(|row| row["service"] == "/double").cloned()
    });
    assert_eq!(
        (&row["kind"], &row["request"]),
        (&json!("service"), &json!("rnet.msgs.Twist")),
        "{row}"
    );
    let form = page.ask(json!({"op": "type", "service": "/double"}));
    assert_eq!(form["form"]["fields"][0]["fields"][0]["type"], "float64", "{form}");
    let call = json!({"op": "call", "service": "/double", "request": {"linear": {"x": 1.5}}});
    let reply = page.ask(call);
    assert_eq!(reply["reply"]["linear"]["x"], 3.0, "{reply}");
    let goal = |x: f64| json!({"op": "call", "service": "/drive", "request": {"linear": {"x": x}}});
    let drive = page.send(goal(3.0));
    let fed = page.until(|received| (received.json["re"] == drive).then(|| received.json.clone()));
    assert_eq!(
        (&fed["more"], &fed["feedback"]["linear"]["x"]),
        (&json!(true), &json!(1.0)),
        "{fed}"
    );
    assert_eq!(page.answer(drive)["reply"]["linear"]["x"], 3.0);
    let long = page.send(goal(1e9));
    page.until(|received| (received.json["re"] == long).then_some(()));
    assert_eq!(page.ask(json!({"op": "cancel", "call": long}))["ok"], true);
    let ended = page.answer(long);
    assert!(
        ended["error"]["code"] == "cancelled" || ended["reply"]["linear"]["x"] == -1.0,
        "{ended}"
    );
    let wrong = json!({"op": "call", "service": "/double", "request": {"linear": {"q": 1.5}}});
    assert_eq!(page.refused(wrong), "bad_request");
    assert_eq!(page.refused(json!({"op": "call", "service": "/none"})), "not_found");
}

#[test]
fn reports_silent_receivers_and_failed_fallbacks() {
    let place = TestDomain::new();
    let node = place.node("base");
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let command = node.command::<[u8]>("/cmd").fallback_handler(move |_| {
        let _ = ended.recv();
        panic!("on purpose");
    });
    let command = command.apply(|_| {}).unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let (commands, figures) = (page.sub(what("commands")), page.sub(what("figures")));
    let row = |data: &Json, word: &str, is_so: &Json| {
        let row = &data["commands"][0];
        (row["receiver"] == "/base" && row[word] == *is_so).then(|| row.clone())
    };
    let has = |data: &Json, check: &str| {
        let found = data["problems"].as_array()?.iter().find(|found| found["check"] == check)?;
        Some(found["what"].as_str()?.to_owned())
    };
    page.data(commands, |data| row(data, "state", &json!("no_answer")));
    let problem = page.data(figures, |data| has(data, "no_answer"));
    assert!(problem.starts_with("/base, the receiver of /cmd, does not answer"), "{problem}");
    drop(end);
    let last = page.data(commands, |data| row(data, "fallback_failed", &json!(true)));
    assert_eq!(last["state"], "fallback", "{last}");
    let problem = page.data(figures, |data| has(data, "fallback_failed"));
    assert!(problem.contains("its fallback FAILED"), "{problem}");
    drop(command);
}

#[test]
fn starts_and_stops_recording_in_its_folder() {
    let place = TestDomain::new();
    let node = place.node("imu");
    let pump = pump(&node, "/twist");
    let folder = place.dir.join("recordings");
    std::fs::create_dir_all(&folder).unwrap();
    let mut options = place.options();
    options.recordings = Some(folder.clone());
    let dashboard = Dashboard::start(options).unwrap();
    let mut page = Page::open(&dashboard);
    let record = page.sub(what("record"));
    page.data(record, |data| data["recording"].is_null().then_some(()));
    assert_eq!(page.refused(json!({"op": "record.start", "name": "../x"})), "bad_request");
    assert_eq!(page.ask(json!({"op": "record.start", "name": "drive"}))["ok"], true);
    assert_eq!(page.refused(json!({"op": "record.start", "name": "drive2"})), "refused");
    page.data(record, |data| (data["recording"]["messages"].as_u64()? > 0).then_some(()));
    let stopped = page.ask(json!({"op": "record.stop"}));
    assert!(stopped["messages"].as_u64().unwrap() > 0, "{stopped}");
    let files: Vec<_> =
        std::fs::read_dir(&folder).unwrap().flatten().map(|file| file.file_name()).collect();
    assert!(
        !files.is_empty() && stopped["file"].as_str().unwrap().contains("drive"),
        "{files:?} {stopped}"
    );
    assert_eq!(page.refused(json!({"op": "record.stop"})), "refused");
    assert_eq!(page.refused(json!({"op": "blackbox.trigger", "why": "x"})), "not_found");
    // The folder disappears during the recording, like a disk that is unplugged, and reappears.
    page.data_since(record, |data| data["folder_problem"].is_null().then_some(()));
    std::fs::remove_dir_all(&folder).unwrap();
    let problem = |data: &Json| Some(data["folder_problem"].as_str()?.to_owned());
    let reported = page.data_since(record, problem);
    assert!(
        reported.contains(folder.to_str().unwrap()) && reported.contains("No such file"),
        "{reported}"
    );
    let refused = page.ask(json!({"op": "record.start", "name": "lost"}));
    assert_eq!(refused["error"]["message"], reported, "{refused}");
    assert!(!folder.exists(), "a folder in place of the disk must not be created");
    std::fs::create_dir(&folder).unwrap();
    page.data_since(record, |data| data["folder_problem"].is_null().then_some(()));
    drop(pump);
}

#[test]
fn lists_downloads_and_plays_recordings() {
    let place = TestDomain::new();
    let node = place.node("imu");
    let pumping = pump(&node, "/twist");
    let folder = place.dir.join("recordings");
    std::fs::create_dir_all(&folder).unwrap();
    let mut options = place.options();
    options.recordings = Some(folder.clone());
    let dashboard = Dashboard::start(options).unwrap();
    let mut page = Page::open(&dashboard);
    let record = page.sub(what("record"));
    assert_eq!(page.ask(json!({"op": "record.start", "name": "drive"}))["ok"], true);
    page.data(record, |data| (data["recording"]["messages"].as_u64()? > 10).then_some(()));
    assert_eq!(page.ask(json!({"op": "record.stop"}))["ok"], true);
    // Files that are not recordings, or are outside of the folder, are not listed.
    std::fs::write(folder.join("notes.txt"), "x").unwrap();
    std::fs::write(place.dir.join("secret.mcap"), "x").unwrap();
    std::os::unix::fs::symlink(place.dir.join("secret.mcap"), folder.join("link.mcap")).unwrap();
    let bytes = std::fs::read(folder.join("drive.mcap")).unwrap();
    let files = page.data_since(record, |data| {
        let files = data["files"].as_array()?;
        (files.first()?["bytes"] == bytes.len()).then(|| files.clone())
    });
    assert_eq!((files.len(), &files[0]["name"]), (1, &json!("drive.mcap")), "{files:?}");

    let got = get(dashboard.address(), "/recordings/drive.mcap");
    assert_eq!((got.status, &got.body), (200, &bytes));
    assert_eq!(got.header("content-disposition"), Some("attachment; filename=\"drive.mcap\""));
    for not in ["link.mcap", "notes.txt", "..%2Fsecret.mcap", "none.mcap"] {
        assert_eq!(get(dashboard.address(), &format!("/recordings/{not}")).status, 404, "{not}");
    }

    assert_eq!(page.refused(json!({"op": "play.start", "name": "../secret.mcap"})), "not_found");
    assert_eq!(page.refused(json!({"op": "play.start", "name": "link.mcap"})), "not_found");
    assert_eq!(page.refused(json!({"op": "play.stop"})), "refused");
    // Another node publishes the topic.
    let refused = page.ask(json!({"op": "play.start", "name": "drive.mcap"}));
    let why = refused["error"]["message"].as_str().unwrap();
    assert!(why.contains("/twist is already published by /imu"), "{why}");
    drop(pumping);
    let arm = place.node("arm");
    let mut subscriber = arm.subscriber::<Twist>("/twist").open().unwrap();
    let start = json!({"op": "play.start", "name": "drive.mcap", "loop": true});
    assert_eq!(page.ask(start.clone())["ok"], true);
    subscriber.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(page.refused(start), "refused");
    assert_eq!(page.ask(json!({"op": "play.pause"}))["ok"], true);
    let playing = page.data_since(record, |data| {
        let playing = &data["playing"];
        (playing["paused"] == true).then(|| playing.clone())
    });
    assert_eq!((&playing["name"], &playing["is_over"]), (&json!("drive.mcap"), &json!(false)));
    let stopped = page.ask(json!({"op": "play.stop"}));
    assert!(stopped["played"].as_u64().unwrap() > 0, "{stopped}");
    page.data_since(record, |data| (data["playing"]["is_over"] == true).then_some(()));
}

#[test]
fn read_only_rejects_changes_and_shows_everything() {
    let place = TestDomain::new();
    let node = place.node("arm");
    node.state().unwrap().set("/a", 1).unwrap();
    let mut options = place.options();
    options.access.read_only = true;
    let dashboard = Dashboard::start(options).unwrap();
    let mut page = Page::open(&dashboard);
    for op in [
        "state.set",
        "state.delete",
        "param.set",
        "param.reset",
        "command.take",
        "command.take_all",
        "command.release",
        "command.release_all",
        "call",
        "record.start",
        "record.stop",
        "play.start",
        "play.pause",
        "play.stop",
        "blackbox.trigger",
        "launch.stop",
        "launch.restart",
        "launch.kill",
    ] {
        let request = json!({"op": op, "key": "/a", "value": 2, "node": "/arm", "name": "/x", "service": "/s"});
        assert_eq!(page.refused(request), "read_only", "{op}");
    }
    let state = page.sub(what("state"));
    page.data(state, |data| {
        data["entries"].as_array()?.iter().any(|e| e["key"] == "/a").then_some(())
    });
    assert_eq!(node.state().unwrap().get("/a").unwrap(), Some(1.into()));
}

#[test]
fn page_that_does_not_read_loses_data_and_blocks_nothing() {
    let place = TestDomain::new();
    let node = place.node("camera");
    let mut publisher = node.publisher::<[u8]>("/blob").open().unwrap();
    let dashboard = place.start();
    let mut slow = Page::open(&dashboard);
    for _ in 0..32 {
        slow.sub(json!({"what": "messages", "topic": "/blob", "hz": 30}));
        slow.sub(json!({"what": "figures", "interval_ms": 250, "all": true}));
    }
    let sent = Arc::new(AtomicBool::new(false));
    let pump = Pump::start(Duration::from_millis(1), move |_| {
        publisher.send(&[7; 4000]).unwrap();
        sent.store(true, Ordering::Relaxed);
    });
    // Another page is served meanwhile.
    let mut page = Page::open(&dashboard);
    let messages = page.sub(json!({"what": "messages", "topic": "/blob", "hz": 30}));
    for _ in 0..20 {
        page.data(messages, |data| data["hex"].is_string().then_some(()));
    }
    drop(pump);
}

#[test]
fn shows_domain_again_after_removal_and_recreation() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let figures = page.sub(json!({"what": "figures", "interval_ms": 250}));
    let is_there = |data: &Json, name: &str| {
        data["nodes"].as_array().is_some_and(|nodes| nodes.iter().any(|node| node["node"] == name))
    };
    let node = place.node("first");
    page.data(figures, |data| is_there(data, "/first").then_some(()));
    drop(node);
    std::fs::remove_dir_all(place.location().path()).unwrap();
    page.data(figures, |data| (data["exists"] == false).then_some(()));
    let node = place.node("second");
    let messages = page.sub(json!({"what": "messages", "topic": "/twist"}));
    let pump = pump(&node, "/twist");
    page.data(figures, |data| is_there(data, "/second").then_some(()));
    page.data(messages, |data| data["json"].is_object().then_some(()));
    drop(pump);
}
