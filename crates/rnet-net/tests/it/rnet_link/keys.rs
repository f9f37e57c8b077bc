//! Links with keys.

use rnet::msgs::LinkStatus;

use super::*;
use crate::secure::Keys;

/// A host with this keys file and these lines under `[network]`.
fn host(keys: &std::path::Path, network: &str) -> LinkFolder {
    let place = LinkFolder::new();
    place.configure(&format!("[network]\nkeys = {:?}\n{network}", keys.display().to_string()));
    place
}

/// The next status of this host's link that satisfies the condition.
fn status(place: &LinkFolder, what: &str, is_it: impl Fn(&LinkStatus) -> bool) -> LinkStatus {
    let node = place.builder("watcher").open().unwrap();
    let mut statuses =
        node.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
    let begun = Instant::now();
    loop {
        let status = LinkStatus::clone(&statuses.recv_timeout(LONG).unwrap());
        if is_it(&status) {
            return status;
        }
        assert!(begun.elapsed() < LONG, "time-out while waiting until {what}: {status:?}");
    }
}

#[test]
fn hosts_with_keys_join_and_one_with_foreign_keys_does_not() {
    let (keys, foreign, port) = (Keys::new(), Keys::new(), free_port());
    let robot = host(&keys.host("robot"), &format!("listen = [\"tcp/127.0.0.1:{port}\"]"));
    let connect = format!("connect = [\"tcp/127.0.0.1:{port}\"]");
    let laptop = host(&keys.host("laptop"), &connect);
    let stranger = host(&foreign.host("stranger"), &connect);
    let places = [&robot, &laptop, &stranger];
    let nodes = places.map(|place| place.node());
    for place in places {
        assert!(place.run(&["start"]).status.success());
    }
    let publisher = nodes[0].publisher::<[u8]>("/scan").transient_local(1).open();
    let mut publisher = publisher.unwrap();
    publisher.send(b"secret").unwrap();
    let mut subscriber = nodes[1].subscriber::<[u8]>("/scan").transient_local().open().unwrap();
    let scan = subscriber.recv_timeout(LONG).unwrap();
    assert_eq!((&*scan, scan.node()), (&b"secret"[..], "@robot/robot"));
    let says = |status: &LinkStatus, word: &str| status.problems.iter().any(|of| of.contains(word));
    let of_robot = status(&robot, "the robot names the stranger", |of| says(of, "stranger"));
    assert!(says(&of_robot, "authority") && !of_robot.insecure);
    assert_eq!(of_robot.peers.iter().map(|peer| &*peer.host).collect::<Vec<_>>(), ["laptop"]);
    let of_stranger = status(&stranger, "the stranger knows why", |of| says(of, "authority"));
    assert!(of_stranger.peers.is_empty());
}

#[test]
fn another_keys_file_takes_effect() {
    let (keys, port) = (Keys::new(), free_port());
    let robot = host(&keys.host("robot"), &format!("listen = [\"tcp/127.0.0.1:{port}\"]"));
    let file = keys.host("laptop");
    let laptop = host(&file, &format!("connect = [\"tcp/127.0.0.1:{port}\"]"));
    let nodes = [&robot, &laptop].map(|place| place.node());
    for place in [&robot, &laptop] {
        assert!(place.run(&["start"]).status.success());
    }
    let (first, _) = laptop.wait_for_both();
    status(&robot, "it has joined", |of| of.peers.iter().any(|peer| peer.host == "laptop"));
    // A damaged file is reported, and the earlier one stays in effect.
    let text = fs::read(&file).unwrap();
    fs::write(&file, "nothing").unwrap();
    let says =
        |status: &LinkStatus| status.problems.iter().any(|of| of.contains("not a keys file"));
    status(&laptop, "it reports the file", says);
    assert_eq!(laptop.holder("link"), Some(first));
    fs::write(&file, text).unwrap();
    keys.host("laptop");
    eventually("another process links", || {
        laptop.holder("link").is_some_and(|holder| holder != first) && laptop.is_linked()
    });
    let mut publisher = nodes[0].publisher::<[u8]>("/scan").transient_local(1).open().unwrap();
    publisher.send(b"again").unwrap();
    let mut subscriber = nodes[1].subscriber::<[u8]>("/scan").transient_local().open().unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"again");
}

#[test]
fn keys_that_others_may_read_are_refused() {
    let keys = Keys::new();
    let file = keys.host("robot");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let robot = host(&file, &format!("listen = [\"tcp/127.0.0.1:{}\"]", free_port()));
    let _node = robot.node();
    let ran = robot.run(&["run"]);
    assert_eq!(ran.status.code(), Some(1));
    assert!(text(&ran.stderr).contains("chmod 600"), "{}", text(&ran.stderr));
}

#[test]
fn keys_of_another_host_are_refused() {
    let keys = Keys::new();
    let listen = format!("listen = [\"tcp/127.0.0.1:{}\"]", free_port());
    let robot = host(&keys.host("laptop"), &format!("{listen}\nhost = \"robot\""));
    let ran = robot.run(&["run"]);
    assert_eq!(ran.status.code(), Some(1));
    let said = text(&ran.stderr);
    assert!(said.contains("called robot") && said.contains("keys of host laptop"), "{said}");
}

#[test]
fn keys_allow_a_link_to_reach_beyond_this_host() {
    let keys = Keys::new();
    let network = "listen = [\"tcp/192.0.2.1:7450\"]";
    let place = host(&keys.host("robot"), network);
    let config = text(&place.run(&["config"]).stdout);
    assert!(config.contains("\"refused\": null"), "{config}");
    let place = host(&keys.host("robot"), &format!("{network}\ninsecure = true"));
    let config = text(&place.run(&["config"]).stdout);
    assert!(config.contains("\"keys\": null") && config.contains("\"refused\": null"), "{config}");
}
