//! What a page and `/healthz` say of other hosts. The link is a node of the test that says what a link says, and has its
//! proxies.

mod util;

use rnet::msgs::link_status::{Cause, Direction, Lost, Peer, State, Topic};
use rnet::msgs::{LinkStatus, Timestamp, Twist, duration_from_ns, timestamp_now};
use rnet::{Proxy, PublisherOptions};
use serde_json::{Value as Json, json};
use util::{Page, Place, get, what};

/// A link that has spoken so many seconds from now.
fn says(in_s: i64, held_back: Cause) -> LinkStatus {
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
fn another_host_has_its_row_and_its_nodes_and_a_link_that_hangs_is_named() {
    let place = Place::new();
    let link = place.node("_rnet/link_1");
    let options = PublisherOptions::new().transient_local(1);
    let mut said = link.publisher_with::<LinkStatus>("/_rnet/link", options).unwrap();
    // Nobody takes it for silent, however slow this machine is.
    said.send(&says(3600, Cause::Unspecified)).unwrap();
    let viewer = Proxy::new("laptop", "/viewer", 1).unwrap();
    let proxy = PublisherOptions::new().proxy(viewer);
    let _goal = link.publisher_with::<Twist>("/goal", proxy).unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let figures = page.sub(what("figures"));
    let of_laptop = |data: &Json, is_it: fn(&Json) -> bool| {
        let row = data["hosts"].as_array()?.iter().find(|row| row["host"] == "laptop")?;
        is_it(row).then(|| (row.clone(), data["nodes"].clone()))
    };
    let (row, nodes) = page.data(figures, |data| of_laptop(data, |_| true));
    let expected = json!({
        "host": "laptop", "state": "connected", "round_trip_s": 0.00125, "clock_offset_s": -0.0035,
        "clock_offset_uncertainty_s": 0.0005, "in_bytes_per_s": 0.0, "out_bytes_per_s": 1.5e6, "lost": 3,
        "held_back": [],
    });
    assert_eq!(row, expected);
    let is_viewer = |node: &&Json| node["node"] == "@laptop/viewer";
    let node = nodes.as_array().unwrap().iter().find(is_viewer).unwrap();
    assert_eq!((&node["host"], &node["pid"]), (&json!("laptop"), &json!(null)), "{node}");
    assert_eq!(node["publishes"], json!(["/goal"]), "{node}");
    assert_eq!(get(dashboard.address(), "/healthz").status, 200);

    said.send(&says(3600, Cause::Credit)).unwrap();
    let is_held = |row: &Json| row["held_back"] == json!(["/image"]);
    page.data(figures, |data| of_laptop(data, is_held));
    unwell(&dashboard, "the way to host laptop is full: /image wait");

    said.send(&says(-60, Cause::Unspecified)).unwrap();
    page.data(figures, |data| of_laptop(data, |row| row["state"] == "unknown"));
    unwell(&dashboard, "the link, process 77, hangs or is stopped");
}

/// Waits until `/healthz` says so: it looks as often as it is asked, at most.
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
