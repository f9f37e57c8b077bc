//! Many topics: their memory, without lost messages.

mod common;

use common::{missing, received, run};

#[test]
fn many_topics_are_carried_and_their_memory_is_measured() {
    let raw = run("memory", &["--systems", "unix,rnet-adaptive", "--scale", "0.05"]);
    missing(&raw);
    let runs = raw["runs"].as_array().expect("runs");
    let mut shared_kib = Vec::new();
    for system in ["unix", "rnet-adaptive"] {
        for topics in [10, 50] {
            let variant = format!("{topics} topics");
            let of = |run: &&serde_json::Value| {
                run["system"] == system && run["variant"] == variant.as_str()
            };
            let run = runs.iter().find(of).expect("has run");
            assert!(run["error"].is_null(), "{system}, {variant}: {}", run["error"]);
            let received = received(run);
            assert_eq!(received.len(), topics, "{system}: a reader for each topic");
            for (_, r) in received {
                assert!(r["count"].as_u64() > Some(0) && r["lost"] == 0, "{system}: {r}");
            }
            let memory = &run["phases"][0]["memory"];
            // Twenty processes have at least a stack each.
            assert!(memory["processes_kib"].as_u64() > Some(20 * 8), "{system}: {memory}");
            shared_kib.push(memory["shared_kib"].as_u64().expect("a number"));
        }
    }
    assert_eq!(runs.len(), 4);
    // Sockets take no shared memory; each log of robot-net does.
    let [_, sockets, few_logs, many_logs] = shared_kib[..] else { panic!("four runs") };
    assert!(sockets < 40 && few_logs >= 40 && many_logs > few_logs, "{shared_kib:?}");
}
