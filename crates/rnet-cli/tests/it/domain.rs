//! `rnet domain list|clean`, and the hints of empty lists to other domains.

use crate::util;

use std::sync::atomic::{AtomicBool, Ordering};

use rnet::inspect::Location;
use util::processes::until;
use util::{DOMAIN, TestEnv};

/// Sets the flag when dropped, also during a panic.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The entry of a domain in `rnet domain list --json`.
fn listed(env: &TestEnv, domain: &str) -> serde_json::Value {
    let json = rnet!(env, "domain", "list", "--json").json();
    let domains = json["domains"].as_array().unwrap().clone();
    domains.into_iter().find(|listed| listed["domain"] == domain).unwrap()
}

/// Kills a node that publishes.
fn kill_a_node(env: &TestEnv, name: &str) {
    let mut victim = env.spawn(&["topic", "pub", "/t", "--text", "x", "-n", name]);
    let location = Location::new(Some(DOMAIN), Some(env.dir.clone()), None).unwrap();
    until("the node", || !location.living_nodes().is_empty());
    victim.signal("KILL");
    victim.wait_for_exit();
}

#[test]
fn empty_lists_name_the_domains_that_have_nodes() {
    let env = TestEnv::new();
    let _nodes = [env.node_in("a", "lab"), env.node_in("b", "lab"), env.node_in("c", "field")];
    for what in ["topic", "node", "state"] {
        let said = rnet!(env, what, "list").stderr;
        for part in [") has 2 nodes: --domain lab\n", ") has 1 node: --domain field\n"] {
            assert!(said.contains(part), "{said}");
        }
    }
    let said = rnet!(env, "node", "list", "--domain", "lab").stderr;
    assert_eq!(said, "");
}

#[test]
fn list_counts_live_and_dead_nodes() {
    let env = TestEnv::new();
    assert!(rnet!(env, "domain", "list").stderr.contains("no domain in"));
    kill_a_node(&env, "victim");
    let _node = env.node_in("a", "lab");
    let text = rnet!(env, "domain", "list").ok();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["DOMAIN", "OWNER", "NODES", "DEAD", "DIRECTORY"]);
    assert_eq!((rows[1][0], &rows[1][3..5]), (DOMAIN, &["0", "1"][..]), "{text}");
    assert_eq!((rows[2][0], &rows[2][3..5]), ("lab", &["1", "0"][..]), "{text}");
    let dead = listed(&env, DOMAIN);
    assert_eq!(dead["dead"], serde_json::json!(["/victim"]));
    assert_eq!(dead["path"], env.domain_dir().to_str().unwrap());
    assert_eq!(listed(&env, "lab")["nodes"], serde_json::json!(["/a"]));
}

#[test]
fn clean_removes_only_leftovers_of_dead_nodes() {
    let env = TestEnv::new();
    rnet!(env, "state", "set", "/k", "1").ok();
    kill_a_node(&env, "victim");
    // A node that was killed while it started has a name and no folder.
    let ghost = rnet::NodeName::new("ghost").unwrap();
    std::fs::write(env.domain_dir().join("names").join(ghost.file_stem()), "").unwrap();
    let said = rnet!(env, "domain", "clean").ok();
    assert_eq!(said, "removed the leftovers of dead nodes: /ghost, /victim\n");
    for folder in ["names", "nodes"] {
        let mut left = std::fs::read_dir(env.domain_dir().join(folder)).unwrap();
        assert!(left.next().is_none(), "{folder}");
    }
    assert_eq!(rnet!(env, "state", "get", "/k").ok(), "1\n");
    let said = rnet!(env, "domain", "clean").ok();
    assert_eq!(
        said,
        format!("nothing to clean in domain {DOMAIN}: dead nodes left nothing behind\n")
    );
    let json = rnet!(env, "domain", "clean", "--json", "--domain", "none").json();
    assert_eq!(json["removed"], serde_json::json!([]));
}

/// A sweeper leaves everything alone that a starting node holds.
#[test]
fn clean_and_nodes_that_start_do_not_disturb_each_other() {
    const NODES: usize = 40;
    let env = TestEnv::new();
    let location = Location::new(Some(DOMAIN), Some(env.dir.clone()), None).unwrap();
    let done = AtomicBool::new(false);
    let nodes: Vec<rnet::Node> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let removed = location.clean().unwrap();
                assert!(
                    !removed.iter().any(|name| name.as_str().starts_with("/stays")),
                    "{removed:?}"
                );
            }
        });
        let _done = Done(&done);
        let open = |i| {
            drop(env.node("leaves"));
            env.node(&format!("stays{i}"))
        };
        (0..NODES).map(open).collect()
    });
    assert_eq!(location.living_nodes().len(), NODES);
    let publisher = nodes[0].publisher::<[u8]>("/t").open().unwrap();
    let _subscriber = nodes[NODES - 1].subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, util::TEST_TIMEOUT).unwrap();
}
