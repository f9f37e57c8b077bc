//! Links that are stopped: others replace and kill them.

use super::*;

/// Several times, by many that start at once: the stopped ones are killed, because they keep the port.
#[test]
fn start_replaces_links_that_are_stopped() {
    let place = LinkFolder::with_port();
    let _node = place.node();
    let started = place.run(&["start"]);
    assert_eq!((text(&started.stderr).as_str(), started.status.success()), ("", true));
    for at_once in [1, 8, 8] {
        let (link, standby) = place.wait_for_both();
        for pid in [standby, link] {
            signal(pid, Signal::STOP);
        }
        let starts: Vec<_> = (0..at_once)
            .map(|_| {
                place
                    .command(&["start"])
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for again in starts {
            let again = again.wait_with_output().unwrap();
            assert!(again.status.success(), "{}", text(&again.stderr));
        }
        eventually("both are replaced and have ended", || {
            let holders = ["link", "link-standby"].map(|role| place.holder(role));
            let is_new =
                |holder: &Option<u32>| holder.is_some_and(|pid| ![link, standby].contains(&pid));
            holders.iter().all(is_new) && has_ended(link) && has_ended(standby)
        });
    }
    place.wait_for_both();
}

/// The process that took over may have been stopped, too, or have ended, before it killed the first one.
#[test]
fn link_kills_the_stopped_predecessor_of_its_predecessor() {
    let place = LinkFolder::with_port();
    let _node = place.node();
    assert!(place.run(&["start"]).status.success());
    let (link, standby) = place.wait_for_both();
    for pid in [standby, link] {
        signal(pid, Signal::STOP);
    }
    let role = place.location().role("link").unwrap();
    drop(role.wait_for_turn(&std::sync::atomic::AtomicBool::new(false)).unwrap().unwrap());
    assert!(place.run(&["start"]).status.success());
    let (next, _) = place.wait_for_both();
    assert!(next != link && next != standby);
    eventually("the stopped link has ended", || has_ended(link));
}
