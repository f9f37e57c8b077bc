//! `rnet status`.

use crate::util;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet::{PublisherOptions, SubscriberOptions};
use util::robot::Robot;
use util::{Place, Pump};

const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_domain_without_problems_is_well() {
    let place = Place::new();
    let (imu, control) = (place.node("imu"), place.node("control"));
    let _angles = control.subscriber::<[u8]>("/angles").unwrap();
    let pump = Pump::start(imu.publisher::<[u8]>("/angles").unwrap(), Box::from(*b"1"));
    let text = rnet!(place, "status", "--over", "0.1", "/imu", "/control").ok();
    assert!(text.contains("2 nodes, 1 topic\nall is well"), "{text}");
    let document = rnet!(place, "status", "--over", "0.1", "--json").json();
    assert_eq!((&document["ok"], &document["nodes"]), (&true.into(), &2.into()), "{document}");
    drop(pump);
}

#[test]
fn a_node_that_is_asked_for_and_does_not_run_is_a_problem() {
    let place = Place::new();
    let _imu = place.node("imu");
    let ran = rnet!(place, "status", "--over", "0.1", "/imu", "/control");
    let text = &ran.stdout;
    assert_eq!(ran.code, Some(1), "{text}");
    assert!(
        text.contains("PROBLEM  the node /control does not run\n         -> start it"),
        "{text}"
    );
}

#[test]
fn a_domain_that_nobody_has_joined_is_not_well() {
    let place = Place::new();
    let ran = rnet!(place, "status", "--over", "0.1");
    let text = &ran.stdout;
    assert_eq!(ran.code, Some(1), "{text}");
    assert!(text.contains("PROBLEM  no node has joined this domain yet: there is no "), "{text}");
    // Who looks on says the same.
    let text = rnet!(place, "top", "--once", "--interval", "0.1").ok();
    assert!(text.contains("PROBLEM  no node has joined this domain yet"), "{text}");
    let text = rnet!(place, "metrics", "--over", "0.1").ok();
    assert!(text.contains(r#"rnet_problems{domain="clitest",check="domain"} 1"#), "{text}");
    // One whose nodes have ended is not: they may all have been stopped.
    drop(place.node("imu"));
    assert!(rnet!(place, "status", "--over", "0.1").ok().contains("all is well"));
}

#[test]
fn what_does_not_fit_and_what_is_lost_are_problems_of_their_time() {
    let place = Place::new();
    let (camera, display) = (place.node("camera"), place.node("display"));
    let _image = camera.publisher::<[u8]>("/image").unwrap();
    let reliable = SubscriberOptions::new().reliable();
    let shown = display.subscriber_with::<[u8]>("/image", reliable).unwrap();
    let document = rnet!(place, "status", "--over", "0.1", "--json").json();
    assert_eq!(document["problems"][0]["check"], "qos", "{document}");
    assert!(document["problems"][0]["advice"].is_string(), "{document}");
    drop(shown);
    // Of calls and commands as of topics.
    for topic in ["/scan", "/_rnet/call/plan/q"] {
        what_is_lost_is_a_problem_while_it_is(&place, topic);
    }
}

/// A reader that is overrun: what it loses now is a problem, and what it has lost is over.
fn what_is_lost_is_a_problem_while_it_is(place: &Place, topic: &str) {
    let (camera, display) = (place.node("camera2"), place.node("display2"));
    let small = PublisherOptions::new().log_len_bytes(64 << 10);
    let scans = camera.publisher_with::<[u8]>(topic, small).unwrap();
    let all = SubscriberOptions::new().keep_all();
    let mut slow = display.subscriber_with::<[u8]>(topic, all).unwrap();
    let pump = Pump::start(scans, vec![0; 2000].into());
    let begun = Instant::now();
    let seen = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !seen.load(Ordering::Relaxed) {
                while slow.try_recv().unwrap().is_some() {}
                std::thread::sleep(Duration::from_millis(200)); // sleep: the reader is slow
            }
        });
        while !seen.load(Ordering::Relaxed) {
            let document = rnet!(place, "status", "--over", "1", "--json").json();
            let problems = document["problems"].as_array().unwrap();
            let is_found = problems.iter().any(|problem| problem["check"] == "loss");
            seen.store(is_found || begun.elapsed() > LONG, Ordering::Relaxed);
            assert!(is_found || begun.elapsed() < LONG, "{document}");
        }
    });
    drop(pump);
    rnet!(place, "status", "--over", "0.1").ok();
}

#[test]
fn a_launched_node_that_gave_up_is_a_problem_and_one_that_was_stopped_is_none() {
    let robot = Robot::new(
        "[node.fails]\ncommand = [\"sh\", \"-c\", \"exit 7\"]\n\
         [node.stays]\ncommand = [\"sleep\", \"600\"]\n",
    );
    let mut launch = robot.launch(&[]);
    launch.until_stdout("/fails");
    let status =
        || robot.run(&["status", "--over", "0.1", "--json"]).json()["problems"].to_string();
    let mut problems = String::new();
    util::processes::until("the failed node is named", || {
        problems = status();
        problems.contains("the launched node /fails does not run: exit code 7")
    });
    assert!(
        problems.contains("rnet node restart /fails") && !problems.contains("/stays"),
        "{problems}"
    );
    robot.run(&["node", "stop", "/stays"]).ok();
    assert!(!status().contains("/stays"));
    launch.signal("INT");
    launch.wait();
}
