//! `rnet link …`, and how other commands report other hosts. A test node simulates the link and its proxies;
//! a script replaces the program.

use crate::util;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use rnet::bridge::{BridgePublisherBuilder, BridgeSubscriberBuilder};
use rnet::msgs::link_status::{Cause, ClockStep, Direction, Lost, Peer, State, Topic};
use rnet::msgs::{LinkStatus, Timestamp, duration_from_ns, timestamp_now};
use rnet::{Node, Proxy, Publisher};
use serde_json::{Value, json};
use util::{CommandOutput, DOMAIN, Pose, TEST_TIMEOUT, TestEnv};

/// Installs the replacement program: it prints its arguments, and the given settings.
pub fn install(env: &TestEnv, settings: &Value) {
    install_with_probe(env, settings, &Value::Null);
}

/// The same, with the multicast answers that it reports.
fn install_with_probe(env: &TestEnv, settings: &Value, answers: &Value) {
    let (path, draft) = (env.dir.join("rnet-link"), env.dir.join("draft"));
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in\nconfig) cat <<'END'\n{settings}\nEND\n;;\ndiscover) cat <<'END'\n{answers}\nEND\n;;\n\
         *) echo \"called $*\";;\nesac\n"
    );
    fs::write(&draft, script).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(draft, path).unwrap();
}

pub fn settings(mode: &str, from: &str) -> Value {
    json!({
        "version": rnet::VERSION, "mode": mode, "mode_from": from, "file": null, "host": "robot-1",
        "interfaces": [], "listen": [], "connect": [], "rules": 0, "topics": 0,
    })
}

/// The link's node, as tools recognize it.
fn link(env: &TestEnv) -> Node {
    Node::builder("_rnet/link_1").tool().dir(&env.dir).domain(DOMAIN).open().unwrap()
}

fn says(link: &Node, status: &LinkStatus) -> Publisher<LinkStatus> {
    let mut publisher = link.publisher("/_rnet/link").transient_local(1).open().unwrap();
    publisher.send(status).unwrap();
    publisher
}

/// A timestamp that keeps the link from being considered silent, however slow this machine is.
fn soon() -> Timestamp {
    Timestamp { seconds: timestamp_now().seconds + 3600, nanos: 0 }
}

fn status() -> LinkStatus {
    let topic = |name: &str, direction: Direction| Topic {
        name: name.into(),
        direction: direction.into(),
        rate_hz: 10.0,
        bytes_per_s: 1.5e6,
        messages: 1234,
        ..Topic::default()
    };
    let held = Topic {
        lost: Some(Lost { link: 3, overrun: 2, ..Lost::default() }),
        skipped: 7,
        held_back: Cause::Rule.into(),
        held_back_text: "the rule \"/camera/**\" (robot.toml:7)".into(),
        ..topic("/camera/front/image", Direction::Out)
    };
    let laptop = Peer {
        host: "laptop".into(),
        id: "00000000000000ab".into(),
        version: rnet::VERSION.into(),
        address: "tcp/10.0.0.2:7450".into(),
        state: State::Connected.into(),
        since: Some(timestamp_now()),
        round_trip: Some(duration_from_ns(1_200_000)),
        clock_offset: Some(duration_from_ns(-3_400_000)),
        clock_offset_uncertainty: Some(duration_from_ns(600_000)),
        clock_steps: vec![ClockStep {
            timestamp: Some(timestamp_now()),
            step: Some(duration_from_ns(2_000_000_000)),
        }],
        topics: vec![topic("/cmd_vel", Direction::In), held],
        nodes: 3,
        clock_drift: 12.34e-6,
        clock_drift_uncertainty: 0.5e-6,
        ..Peer::default()
    };
    let silent = Peer {
        address: "tcp/10.0.0.3:7450".into(),
        state: State::Connecting.into(),
        ..Peer::default()
    };
    LinkStatus {
        timestamp: Some(timestamp_now()),
        host: "robot-1".into(),
        id: "00000000000000cd".into(),
        term: 4,
        pid: 77,
        version: rnet::VERSION.into(),
        mode: "peers".into(),
        listen: vec!["tcp/0.0.0.0:7450".into()],
        peers: vec![laptop, silent],
        problems: vec!["two hosts are called laptop".into()],
        insecure: true,
        ..LinkStatus::default()
    }
}

fn laptop_node(name: &str, endpoint: u64) -> Proxy {
    Proxy::new("laptop", name, endpoint).unwrap()
}

#[test]
fn status_shows_hosts_and_forwarded_topics() {
    let env = TestEnv::new();
    let link = link(&env);
    let _said = says(&link, &status());
    let text = rnet!(env, "link", "status").ok();
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows.iter().all(|row| row.chars().count() <= 100), "{text}");
    assert_eq!(rows[0], "host robot-1");
    assert!(rows[1].contains("term 4, process 77"), "{text}");
    assert_eq!(rows[2], "network peers, listens on tcp/0.0.0.0:7450");
    assert!(text.contains("the link is neither encrypted nor authenticated"), "{text}");
    let row = |words: &str| {
        let is_it = |row: &&&str| {
            let found: Vec<&str> = row.split_whitespace().collect();
            found.join(" ").starts_with(words)
        };
        rows.iter().find(is_it).unwrap_or_else(|| panic!("{words}: {text}"))
    };
    let peer = row("laptop connected");
    for part in ["tcp/10.0.0.2:7450", "3", "1.2 ms", "-3.4 ms ± 600.0 us"] {
        assert!(peer.contains(part), "{part}: {text}");
    }
    assert!(row("tcp/10.0.0.3:7450").contains("connecting"), "{text}");
    assert!(row("laptop: clock drift").ends_with("+12.3 ± 0.5 us per second"), "{text}");
    assert!(row("laptop: clock stepped by +2.00 s").ends_with(" ago"), "{text}");
    assert!(
        row("laptop in").contains("/cmd_vel") && row("laptop in").contains("10.0 Hz"),
        "{text}"
    );
    let held = row("laptop out");
    for part in ["/camera/front/image", "1.50 MB", "1234", "3 link", "7"] {
        assert!(held.contains(part), "{part}: {text}");
    }
    assert!(
        text.contains("robot.toml:7") && text.contains("PROBLEM  two hosts are called laptop"),
        "{text}"
    );
    let json = rnet!(env, "link", "status", "--json").json();
    assert_eq!((&json["running"], &json["term"]), (&true.into(), &4.into()));
    assert_eq!(json["peers"][0]["topics"][1]["lost"]["link"], 3);
    assert_eq!(json["peers"][1]["state"], "STATE_CONNECTING");
}

#[test]
fn later_of_two_links_is_shown() {
    let env = TestEnv::new();
    let link = link(&env);
    let _old = says(&link, &status());
    let _new = says(&link, &LinkStatus { term: 5, host: "robot-new".into(), ..status() });
    let _older = says(&link, &LinkStatus { term: 3, ..status() });
    assert!(rnet!(env, "link", "status").ok().starts_with("host robot-new\n"));
}

#[test]
fn status_explains_why_no_link_runs() {
    let env = TestEnv::new();
    let _node = env.node("robot");
    let said = rnet!(env, "link", "status").fails(1);
    assert!(said.contains("no link is running in domain clitest: RNET_LINK names "), "{said}");
    install(&env, &settings("off", "default"));
    let said = rnet!(env, "link", "status").fails(1);
    assert!(
        said.contains("the network is off") && said.contains("does not contain robot.toml"),
        "{said}"
    );
    install(&env, &settings("off", "robot.toml:3"));
    let said = rnet!(env, "link", "status").fails(1);
    assert!(said.contains("the network is off (robot.toml:3)"), "{said}");
    install(&env, &settings("lan", "RNET_NETWORK"));
    let said = rnet!(env, "link", "status").fails(1);
    assert!(said.contains("\"lan\" (RNET_NETWORK): it starts with the next node"), "{said}");
    let ran = rnet!(env, "link", "status", "--json");
    assert_eq!((ran.code, &ran.json()["running"]), (Some(1), &false.into()));
    // The program's error explains a wrong setting.
    let script = "#!/bin/sh\necho 'rnet-link: robot.toml:3:1: network.lisen: unknown' >&2; exit 1";
    fs::write(env.dir.join("rnet-link"), script).unwrap();
    let said = rnet!(env, "link", "status").fails(1);
    assert!(said.contains("it cannot start: robot.toml:3:1: network.lisen"), "{said}");
}

#[test]
fn the_program_receives_domain_and_settings() {
    let env = TestEnv::new();
    let said = rnet!(env, "link").fails(1);
    assert!(said.contains("RNET_LINK names"), "{said}");
    install(&env, &settings("lan", "RNET_NETWORK"));
    assert_eq!(rnet!(env, "link").ok(), "called run\n");
    assert_eq!(rnet!(env, "link", "run", "--network", "lan").ok(), "called run --network lan\n");
    let ran = rnet!(
        env,
        "--domain",
        "lab",
        "--dir",
        "/tmp",
        "link",
        "start",
        "--config",
        "a.toml",
        "--host",
        "h",
        "--listen",
        "tcp/a:1",
        "--connect",
        "tcp/b:2"
    );
    assert_eq!(
        ran.ok(),
        "called start --domain lab --dir /tmp --config a.toml --host h --listen tcp/a:1 --connect tcp/b:2\n"
    );
    fs::write(env.dir.join("rnet-link"), "#!/bin/sh\nexit 3").unwrap();
    assert_eq!(rnet!(env, "link", "start").fails(1), "");
}

#[test]
fn lists_name_the_host_where_there_are_several() {
    let env = TestEnv::new();
    let (node, link) = (env.node("lidar"), link(&env));
    let _own = node.publisher::<Pose>("/pose").open().unwrap();
    let verbose = rnet!(env, "topic", "list", "-v").ok() + &rnet!(env, "node", "list", "-v").ok();
    assert!(!verbose.contains("HOST"), "{verbose}");
    assert!(!rnet!(env, "topic", "info", "/pose", "-v").ok().contains("Host:"));

    let _said = says(&link, &status());
    let _theirs = link.publisher::<Pose>("/goal").proxy(laptop_node("/viewer", 1)).open().unwrap();
    let _also = link.publisher::<Pose>("/pose").proxy(laptop_node("/viewer", 2)).open().unwrap();
    let _heard =
        link.subscriber::<Pose>("/pose").proxy(laptop_node("/viewer", 3), 1).open().unwrap();
    let text = rnet!(env, "node", "list", "-v").ok();
    let row = |text: &str, start: &str| {
        let row = text.lines().find(|row| row.starts_with(start));
        row.unwrap_or_else(|| panic!("{start}: {text}")).to_owned()
    };
    assert!(text.lines().next().unwrap().ends_with("HOST"), "{text}");
    assert!(
        row(&text, "/lidar ").ends_with("robot-1") && row(&text, "/viewer ").ends_with("laptop"),
        "{text}"
    );
    let list = |host: &str| rnet!(env, "node", "list", "--host", host);
    assert_eq!(list("laptop").ok(), "@laptop/viewer\n");
    assert_eq!(list("robot-1").ok(), "/_rnet/link_1\n/lidar\n");
    assert!(list("labtop").fails(1).contains("host labtop is not known; did you mean laptop?"));
    let json = rnet!(env, "node", "list", "--json").json();
    assert_eq!(
        (&json["host"], &json["remote"][0]["node"]),
        (&"robot-1".into(), &"@laptop/viewer".into())
    );

    let text = rnet!(env, "topic", "list", "-v").ok();
    assert!(
        row(&text, "/goal ").ends_with(" laptop")
            && row(&text, "/pose ").ends_with("laptop, robot-1"),
        "{text}"
    );
    let list = |host: &str| rnet!(env, "topic", "list", "--host", host).ok();
    assert_eq!(list("laptop"), "/goal\n/pose\n");
    assert_eq!(list("robot-1"), "/pose\n");
    let json = rnet!(env, "topic", "list", "--json").json();
    assert_eq!(json["topics"][0]["hosts"], json!(["laptop"]));
    let text = rnet!(env, "topic", "info", "/pose", "-v").ok();
    assert!(text.contains("Node name: /lidar\nHost: robot-1\n"), "{text}");
    assert!(text.contains("Node name: @laptop/viewer\nHost: laptop\n"), "{text}");
}

#[test]
fn listening_to_another_host_subscribes_while_it_lasts() {
    let env = TestEnv::new();
    let link = link(&env);
    let mut theirs =
        link.publisher::<Pose>("/scan").proxy(laptop_node("/lidar", 1)).open().unwrap();
    let _said = says(&link, &status());
    let mut own = env.node("own").publisher::<Pose>("/own").open().unwrap();
    let pose = util::POSE;
    for command in ["echo", "hz", "bw", "delay"] {
        let running = env.spawn(&["topic", command, "/scan", "--count", "1"]);
        theirs.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
        let sends = std::thread::scope(|scope| {
            let waits = scope.spawn(move || running.wait());
            while !waits.is_finished() {
                theirs.send(&pose).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(10)); // sleep: a publisher's period
            }
            waits.join().unwrap()
        });
        let text = sends.ok();
        assert!(!text.is_empty(), "{command}");
        assert!(command != "echo" || text.contains("1.5"), "{text}");
        let clock = "laptop: clock uncertainty ± 600.0 us";
        assert!(command != "delay" || text.contains(clock), "{text}");
        let begun = std::time::Instant::now();
        while theirs.subscriber_count() > 0 {
            assert!(begun.elapsed() < TEST_TIMEOUT, "{command} has left its subscription");
            std::thread::sleep(std::time::Duration::from_millis(1)); // sleep: polling interval
        }
    }
    // For a topic of this host it stays an observer.
    let running = env.spawn(&["topic", "echo", "/own", "--count", "1"]);
    let sends = std::thread::scope(|scope| {
        let waits = scope.spawn(move || running.wait());
        while !waits.is_finished() {
            own.send(&pose).unwrap();
            assert_eq!(own.subscriber_count(), 0);
            std::thread::sleep(std::time::Duration::from_millis(10)); // sleep: a publisher's period
        }
        waits.join().unwrap()
    });
    sends.ok();
}

/// The network findings.
fn network(ran: &CommandOutput) -> Vec<(String, String)> {
    let json = ran.json();
    let findings = json["findings"].as_array().unwrap().iter();
    let ours = findings.filter(|finding| finding["check"] == "network");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ours.map(|f| (text(&f["level"]), text(&f["what"]) + " -> " + &text(&f["advice"]))).collect()
}

#[track_caller]
fn has(found: &[(String, String)], level: &str, parts: &[&str]) {
    let fits =
        |(of, text): &(String, String)| of == level && parts.iter().all(|p| text.contains(p));
    assert!(found.iter().any(fits), "{level} {parts:?} is not in {found:#?}");
}

#[test]
fn doctor_explains_why_no_link_runs() {
    let env = TestEnv::new();
    let _node = env.node("robot");
    let doctor = |network: &str| {
        let mut command = env.command();
        command.args(["doctor", "--json"]);
        if !network.is_empty() {
            command.env("RNET_NETWORK", network);
        }
        self::network(&util::RunningCommand::start(command).wait())
    };
    assert_eq!(doctor(""), []);
    has(&doctor("lan"), "problem", &["configured (RNET_NETWORK=lan)", "RNET_LINK names"]);
    install(&env, &settings("off", "default"));
    has(&doctor(""), "note", &["the network is off (default)"]);
    let mut lan = settings("lan", "RNET_NETWORK");
    lan["interfaces"] = json!(["nonexistent0"]);
    lan["version"] = "0.0.1".into();
    install(&env, &lan);
    let found = doctor("lan");
    has(&found, "ok", &["the network is \"lan\" (RNET_NETWORK)"]);
    has(&found, "note", &["anyone on the LAN"]);
    has(&found, "problem", &["network interface nonexistent0 does not exist"]);
    has(&found, "problem", &["rnet-link has version 0.0.1"]);
    has(&found, "problem", &["no link is running in domain clitest", "rnet link start"]);
    fs::write(env.dir.join("rnet-link"), "#!/bin/sh\necho 'rnet-link: bad key' >&2; exit 1")
        .unwrap();
    has(&doctor("lan"), "problem", &["bad key -> correct the setting"]);
}

/// An endpoint, with listeners on its port and on the next one.
fn two_ports() -> (String, Vec<TcpListener>) {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        // Another program may use that port.
        if let Some(Ok(second)) =
            port.checked_add(1).map(|port| TcpListener::bind(("127.0.0.1", port)))
        {
            return (format!("tcp/127.0.0.1:{port}"), vec![first, second]);
        }
    }
}

#[test]
fn doctor_reports_a_hung_link() {
    let env = TestEnv::new();
    let link = link(&env);
    install(&env, &settings("peers", "robot.toml:2"));
    let long_ago = Timestamp { seconds: timestamp_now().seconds - 60, nanos: 0 };
    let status = LinkStatus { timestamp: Some(long_ago), listen: Vec::new(), ..status() };
    let _said = says(&link, &status);
    let found = network(&rnet!(env, "doctor", "--json"));
    has(&found, "problem", &["process 77, hangs or is stopped", "kill 77"]);
    let text = rnet!(env, "link", "status").ok();
    assert!(text.contains("PROBLEM  the link, process 77, hangs or is stopped"), "{text}");
    let text = rnet!(env, "status", "--over", "0.1");
    assert!(text.stdout.contains("PROBLEM  the link, process 77, hangs"), "{text:?}");
    assert!(text.stdout.contains("-> kill 77"), "{text:?}");
    text.fails(1);
    let text = rnet!(env, "top", "--once", "--interval", "0.1").ok();
    assert!(text.contains("PROBLEM  the link, process 77, hangs"), "{text}");
    // Its last status may be outdated.
    let row = text.lines().find(|line| line.starts_with("laptop")).unwrap();
    assert!(row.contains("unknown") && !row.contains("connected"), "{text}");
}

#[test]
fn topics_waiting_for_link_capacity_are_named() {
    let env = TestEnv::new();
    let link = link(&env);
    let mut status = status();
    status.peers.truncate(1);
    status.problems.clear();
    status.timestamp = Some(soon());
    status.peers[0].topics[1].held_back = Cause::Credit.into();
    // Text of other hosts must not control the terminal.
    status.peers[0].topics[1].name = "/camera\u{1b}[2J".into();
    let full = "PROBLEM  the link to host laptop is saturated: /camera\\u{1b}[2J wait";
    let said = says(&link, &status);
    for command in [&["status", "--over", "0.1"][..], &["top", "--once", "--interval", "0.1"]] {
        let ran = env.run(command);
        assert!(ran.stdout.contains(full), "{ran:?}");
        assert!(ran.stdout.contains("-> send less over the link"), "{ran:?}");
        assert_eq!(ran.code, Some(i32::from(command[0] == "status")), "{ran:?}");
    }
    // A rule that withholds it is not a problem.
    status.peers[0].topics[1].held_back = Cause::Rule.into();
    drop(said);
    let _said = says(&link, &status);
    rnet!(env, "status", "--over", "0.1").ok();
}

#[test]
fn doctor_reports_whether_multicast_arrives() {
    let env = TestEnv::new();
    let link = link(&env);
    let of_lan = LinkStatus { mode: "lan".into(), peers: Vec::new(), ..status() };
    let _said = says(&link, &of_lan);
    let doctor = |asked: &[&str], answered: &[&str]| {
        let answers = json!({
            "groups": ["239.255.1.2:17000"], "asked_by": asked, "answered_by": answered,
        });
        install_with_probe(&env, &settings("lan", "robot.toml:2"), &answers);
        network(&rnet!(env, "doctor", "--json"))
    };
    has(
        &doctor(&[], &[]),
        "note",
        &["no other host of domain clitest was found", "239.255.1.2:17000"],
    );
    has(&doctor(&["10.0.0.9"], &[]), "problem", &["10.0.0.9 sends multicast queries", "drops UDP"]);
    has(&doctor(&[], &["10.0.0.9"]), "problem", &["10.0.0.9 answers multicast", "TCP"]);
    // An earlier release does not report it.
    install(&env, &settings("lan", "robot.toml:2"));
    let found = network(&rnet!(env, "doctor", "--json"));
    assert!(!found.iter().any(|(_, text)| text.contains("multicast")), "{found:#?}");
}

#[test]
fn doctor_explains_why_a_host_is_unreachable() {
    let env = TestEnv::new();
    let link = link(&env);
    let (open_at, _open) = two_ports();
    let (half_at, mut half) = two_ports();
    half.pop();
    // The port was just closed, so it has no listener.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let closed_at = format!("tcp/127.0.0.1:{closed}");
    let mut settings = settings("peers", "robot.toml:2");
    settings["connect"] = json!([
        open_at,
        half_at,
        closed_at,
        "tcp/localhost:7451",
        "tcp/10.0.0.2:7450",
        "tcp/no.such.host.invalid:1"
    ]);
    install(&env, &settings);
    let mut said = status();
    said.listen = vec![open_at.replace("127.0.0.1", "0.0.0.0"), closed_at.clone()];
    said.peers[1].state = State::Refused.into();
    said.peers[1].text = "it uses wire version 9".into();
    said.peers.push(Peer {
        host: "old".into(),
        address: "tcp/10.0.0.4:7450".into(),
        version: "0.0.1".into(),
        state: State::Connected.into(),
        ..Peer::default()
    });
    said.peers.push(Peer {
        host: "by_name".into(),
        address: "tcp/127.0.0.1:7451".into(),
        state: State::Connected.into(),
        ..Peer::default()
    });
    said.peers.push(Peer { host: "away".into(), state: State::Lost.into(), ..Peer::default() });
    said.peers[0].text = "rules in its robot.toml withhold 2 of its topics from this host".into();
    let long_ago = Timestamp { seconds: timestamp_now().seconds - 12, nanos: 0 };
    said.peers.push(Peer {
        id: "00000000000000ef".into(),
        state: State::Connecting.into(),
        since: Some(long_ago),
        ..Peer::default()
    });
    let _said = says(&link, &said);
    let found = network(&rnet!(env, "doctor", "--json"));
    has(&found, "ok", &["process 77 links this host as robot-1"]);
    has(&found, "ok", &["can be reached on tcp/0.0.0.0:"]);
    has(
        &found,
        "problem",
        &[&closed_at, "cannot be reached there: connection refused", "firewall"],
    );
    has(&found, "ok", &["host laptop (tcp/10.0.0.2:7450) is connected"]);
    has(
        &found,
        "note",
        &["nothing of /camera/front/image goes to host laptop", "robot.toml:7", "forbids"],
    );
    has(&found, "note", &["host old (tcp/10.0.0.4:7450) is connected with version 0.0.1"]);
    has(&found, "problem", &["tcp/10.0.0.3:7450 is refused: it uses wire version 9"]);
    has(&found, "problem", &["host away was connected and no longer responds"]);
    has(&found, "problem", &[&half_at, "answers, but the next higher port does not", "both"]);
    has(&found, "note", &[&open_at, "answers", "another domain"]);
    has(&found, "note", &["host laptop (tcp/10.0.0.2:7450): rules in its robot.toml withhold 2"]);
    has(&found, "problem", &["host 00000000000000ef has been visible", "one of the two ports"]);
    has(
        &found,
        "problem",
        &[&closed_at, "cannot reach", "connection refused", "start the link on that host"],
    );
    has(&found, "problem", &["no.such.host.invalid:1: its name cannot be resolved"]);
    has(&found, "problem", &["two hosts are called laptop"]);
    for reached in ["cannot reach tcp/10.0.0.2:7450", "localhost"] {
        assert!(!found.iter().any(|(_, text)| text.contains(reached)), "{found:#?}");
    }
    let found = network(&rnet!(env, "doctor", "--host", "laptop", "--json"));
    has(&found, "ok", &["host laptop (tcp/10.0.0.2:7450) is connected"]);
    has(&found, "problem", &["cannot reach", &closed_at, "connection refused"]);
    let others = |(_, text): &&(String, String)| text.contains("host old") || text.contains("away");
    assert_eq!(found.iter().find(others), None);
    let found = network(&rnet!(env, "doctor", "--host", "lapto", "--json"));
    has(&found, "problem", &["host lapto is not known to the link", "laptop"]);
}

/// As if it was started in another directory, or with environment variables.
#[test]
fn doctor_tries_the_settings_of_the_running_link() {
    let env = TestEnv::new();
    let link = link(&env);
    install(&env, &settings("off", "default"));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let closed_at = format!("tcp/127.0.0.1:{closed}");
    let reported = LinkStatus {
        mode: "lan".into(),
        connect: vec![closed_at.clone()],
        interfaces: vec!["nosuch0".into()],
        listen: Vec::new(),
        ..status()
    };
    let _said = says(&link, &reported);
    let found = network(&rnet!(env, "doctor", "--json"));
    has(&found, "note", &["the network is off here", "process 77 links this host"]);
    has(&found, "problem", &["cannot reach", &closed_at, "connection refused"]);
    has(&found, "problem", &["network interface nosuch0 does not exist"]);
    let text = rnet!(env, "link", "status").ok();
    assert!(text.contains(&format!("connects to {closed_at}\non nosuch0\n")), "{text}");
}

#[test]
fn clock_problems_are_reported_by_all_tools() {
    let env = TestEnv::new();
    let link = link(&env);
    let mut status = status();
    status.peers.truncate(1);
    status.problems.clear();
    status.timestamp = Some(soon());
    let said = says(&link, &status);
    rnet!(env, "status", "--over", "0.1").ok();
    drop(said);
    status.peers[0].clock_offset_uncertainty = Some(duration_from_ns(6_000_000));
    let _said = says(&link, &status);
    let text = rnet!(env, "status", "--over", "0.1");
    assert!(
        text.stdout.contains("the clock of host laptop is known only to ± 6.0 ms"),
        "{}",
        text.stdout
    );
    text.fails(1);
    for command in [["top", "--once"], ["doctor", "--json"]] {
        let ran = env.run(&command);
        assert!(ran.stdout.contains("known only to ± 6.0 ms"), "{}", ran.stdout);
    }
}
