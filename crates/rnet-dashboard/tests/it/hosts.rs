//! What a page and `/healthz` show of other hosts. A node of the test simulates the link: it publishes the
//! status of a link, and has its proxies.

use crate::util;

use rnet::Proxy;
use rnet::bridge::BridgePublisherBuilder;
use rnet::msgs::link_status::{Cause, Direction, Lost, Peer, State, Topic};
use rnet::msgs::{LinkStatus, Timestamp, Twist, duration_from_ns, timestamp_now};
use serde_json::{Value as Json, json};
use util::{Page, TestDomain, get, what};

/// The status of a link, with a time `in_s` seconds from now.
fn status_of(in_s: i64, held_back: Cause) -> LinkStatus {
    let image = Topic {
        name: "/image".into(),
        direction: Direction::Out.into(),
        bytes_per_s: 1.5e6,
        lost: Some(Lost { link: 3, ..Lost::default() }),
        held_back: held_back.into(),
        ..Topic::default()
    };
    let laptop = Peer {
        host: "laptop".into(),
        id: "00000000000000ab".into(),
        version: rnet::VERSION.into(),
        state: State::Connected.into(),
        round_trip: Some(duration_from_ns(1_250_000)),
        clock_offset: Some(duration_from_ns(-3_500_000)),
        clock_offset_uncertainty: Some(duration_from_ns(500_000)),
        topics: vec![image],
        ..Peer::default()
    };
    LinkStatus {
        timestamp: Some(Timestamp { seconds: timestamp_now().seconds + in_s, nanos: 0 }),
        host: "robot-1".into(),
        term: 4,
        pid: 77,
        version: rnet::VERSION.into(),
        peers: vec![laptop],
        ..LinkStatus::default()
    }
}

#[test]
fn shows_other_host_with_nodes_and_reports_hanging_link() {
    let place = TestDomain::new();
    let link = place.node("_rnet/link_1");
    let mut said = link.publisher::<LinkStatus>("/_rnet/link").transient_local(1).open().unwrap();
    // An hour ahead, so that it does not count as silent, however slow this machine is.
    said.send(&status_of(3600, Cause::Unspecified)).unwrap();
    let viewer = Proxy::new("laptop", "/viewer", 1).unwrap();
    let _goal = link.publisher::<Twist>("/goal").proxy(viewer).open().unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let figures = page.sub(what("figures"));
    let of_laptop = |data: &Json, is_it: fn(&Json) -> bool| {
        let row = data["hosts"].as_array()?.iter().find(|row| row["host"] == "laptop")?;
        is_it(row).then(|| (row.clone(), data["nodes"].clone()))
    };
    let (row, nodes) = page.data(figures, |data| of_laptop(data, |_| true));
    // The link determines the name of this host, whatever the system's name is.
    page.data(figures, |data| (data["host"] == "robot-1").then_some(()));
    let expected = json!({
        "host": "laptop", "state": "connected", "round_trip_s": 0.00125, "clock_offset_s": -0.0035,
        "clock_offset_uncertainty_s": 0.0005, "in_bytes_per_s": 0.0, "out_bytes_per_s": 1.5e6, "lost": 3,
        "held_back": [], "refused_endpoints": 0, "certificate_expires_in_s": null,
    });
    assert_eq!(row, expected);
    let is_viewer = |node: &&Json| node["node"] == "@laptop/viewer";
    let node = nodes.as_array().unwrap().iter().find(is_viewer).unwrap();
    assert_eq!((&node["host"], &node["pid"]), (&json!("laptop"), &json!(null)), "{node}");
    assert_eq!(node["publishes"], json!(["/goal"]), "{node}");
    assert_eq!(get(dashboard.address(), "/healthz").status, 200);

    said.send(&status_of(3600, Cause::Credit)).unwrap();
    let is_held = |row: &Json| row["held_back"] == json!(["/image"]);
    page.data(figures, |data| of_laptop(data, is_held));
    unwell(&dashboard, "the link to host laptop is saturated: /image wait");

    said.send(&status_of(-60, Cause::Unspecified)).unwrap();
    page.data(figures, |data| of_laptop(data, |row| row["state"] == "unknown"));
    unwell(&dashboard, "the link, process 77, hangs or is stopped");
}

#[test]
fn shows_and_changes_state_and_parameters_of_another_host() {
    let place = TestDomain::new();
    let arm = place.node("arm");
    let state = arm.state().unwrap();
    state.set("/arm/mode", "idle").unwrap();
    let gain = arm.param("/gain").default(1.0).max(10.0).declare().unwrap();
    // A home that answers for "robot" in this domain, as a link does for another host.
    let home = rnet::bridge::serve_state(&arm, "robot", None).unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let keys = page.sub(json!({"what": "state", "host": "robot", "prefix": "/arm"}));
    let value = |data: &Json, key: &str| {
        let entries = data["entries"].as_array()?;
        entries.iter().find(|entry| entry["key"] == key).map(|entry| entry["value"].clone())
    };
    let first = page.data(keys, |data| (data["whole"] == true).then(|| data.clone()));
    assert_eq!(value(&first, "@robot/arm/mode"), Some(json!("idle")), "{first}");
    assert_eq!(
        (&first["away"], &first["entries"][0]["node"]),
        (&json!(false), &json!("@robot/arm"))
    );
    state.set("/arm/mode", "run").unwrap();
    page.data(keys, |data| (value(data, "@robot/arm/mode")? == "run").then_some(()));
    let set = |value: Json| json!({"op": "state.set", "key": "@robot/arm/mode", "value": value});
    let answer = page.ask(set(json!("off")));
    assert_eq!(answer["entry"]["key"], "@robot/arm/mode", "{answer}");
    assert_eq!(state.get("/arm/mode").unwrap(), Some("off".into()));
    page.data(keys, |data| (value(data, "@robot/arm/mode")? == "off").then_some(()));
    let plot = page.sub(json!({"what": "plot", "state": "@robot/arm/speed", "bucket_ms": 50}));
    state.set("/arm/speed", 2.5).unwrap();
    page.data(plot, |data| (data["last"][0] == 2.5).then_some(()));
    assert_eq!(page.ask(json!({"op": "state.delete", "key": "@robot/arm/speed"}))["ok"], true);
    page.data(keys, |data| {
        data["deleted"].as_array()?.contains(&json!("@robot/arm/speed")).then_some(())
    });

    let params = page.sub(json!({"what": "params", "host": "robot"}));
    let row = page.data(params, |data| data["params"].get(0).cloned());
    assert_eq!((&row["node"], &row["name"]), (&json!("@robot/arm"), &json!("/gain")), "{row}");
    let set = |value: Json| json!({"op": "param.set", "node": "@robot/arm", "name": "/gain", "value": value});
    let answer = page.ask(set(json!(4)));
    assert_eq!(answer["param"]["node"], "@robot/arm", "{answer}");
    assert_eq!(gain.get().unwrap(), 4.0);
    page.data(params, |data| (data["params"][0]["value"] == 4.0).then_some(()));
    let answer = page.ask(set(json!(11)));
    let why = answer["error"]["message"].as_str().unwrap();
    assert!(why.contains("/gain of @robot/arm") && why.contains("maximum 10"), "{answer}");
    let reset = json!({"op": "param.reset", "node": "@robot/arm", "name": "/gain"});
    let answer = page.ask(reset);
    assert!(answer["error"]["message"].as_str().unwrap().contains("on robot"), "{answer}");

    // The link is lost: known values stay, with their age, and a change is rejected with the reason.
    drop(home);
    let away = page.data(keys, |data| (data["away"] == true).then(|| data.clone()));
    assert!(away["known_s"].as_f64().unwrap() > 0.0, "{away}");
    let away =
        page.data(params, |data| data["away"].as_str().map(|why| (why.to_owned(), data.clone())));
    assert!(away.0.contains("home on host robot, which is not reachable"), "{away:?}");
    assert_eq!(away.1["params"][0]["value"], 4.0, "{away:?}");
    let answer = page.ask(json!({"op": "state.set", "key": "@robot/arm/mode", "value": "x"}));
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("robot, which is not reachable"),
        "{answer}"
    );
}

#[test]
fn reports_unreachable_host_and_limits_remote_views() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let trouble = |page: &mut Page, sub: u64| {
        page.until(|received| {
            let is_it = received.json["sub"] == sub;
            is_it.then(|| received.json["error"]["message"].as_str().map(str::to_owned)).flatten()
        })
    };
    for what in ["state", "params"] {
        let sub = page.sub(json!({"what": what, "host": "desk"}));
        let why = trouble(&mut page, sub);
        assert!(why.contains("home on host desk, which is not reachable"), "{why}");
        assert_eq!(page.refused(json!({"op": "sub", "what": what, "host": ""})), "bad_request");
        page.ask(json!({"op": "unsub", "sub": sub}));
    }
    // The maximum number, and one more, which starts when one of them ends.
    let ask = json!({"what": "params", "host": "desk"});
    let views: Vec<u64> = (0..32).map(|_| page.sub(ask.clone())).collect();
    for view in &views {
        trouble(&mut page, *view);
    }
    let mut other = Page::open(&dashboard);
    let last = other.sub(ask);
    assert!(trouble(&mut other, last).contains("32 views of other hosts are open"));
    page.ask(json!({"op": "unsub", "sub": views[0]}));
    while !trouble(&mut other, last).contains("home on host desk, which is not reachable") {}
}

/// Waits until `/healthz` reports `why`; each request takes a new snapshot at most.
fn unwell(dashboard: &rnet_dashboard::Dashboard, why: &str) {
    let begun = std::time::Instant::now();
    loop {
        let health = get(dashboard.address(), "/healthz");
        if health.status == 503 && health.text().contains(why) {
            return;
        }
        assert!(begun.elapsed() < util::HANG, "{why}: {}", health.text());
    }
}
