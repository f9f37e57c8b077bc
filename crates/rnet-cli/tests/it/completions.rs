//! Shell completion, as the shells' scripts request it, and the manual pages.

use crate::util;

use rnet::state::Value;
use util::TestEnv;

/// Completions that fish, whose protocol is the simplest, gets for this line; the last word is completed.
fn candidates(env: &TestEnv, words: &[&str]) -> Vec<String> {
    let mut command = env.command();
    command.env("RNET_COMPLETE", "fish").arg("--").arg("rnet").args(words);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn topics_nodes_and_keys_are_completed() {
    let env = TestEnv::new();
    let node = env.node("arm/left");
    let _scan = node.publisher::<[u8]>("/scan").open().unwrap();
    let _score = node.subscriber::<[u8]>("/score").open().unwrap();
    let _other = node.publisher::<[u8]>("/odom").open().unwrap();
    node.state().unwrap().set("/speed", Value::from(1.5)).unwrap();
    assert_eq!(candidates(&env, &["topic", "echo", "/sc"]), ["/scan", "/score"]);
    assert_eq!(candidates(&env, &["topic", "hz", "od"]), ["/odom"]);
    let _plan = node.service::<[u8], [u8]>("/plan").serve(|request| Ok(request.to_vec())).unwrap();
    assert_eq!(candidates(&env, &["service", "call", "/pl"]), ["/plan"]);
    assert_eq!(candidates(&env, &["param", "get", "/a"]), ["/arm/left"]);
    assert_eq!(candidates(&env, &["state", "get", "/s"]), ["/speed"]);
    assert_eq!(candidates(&env, &["topic", "echo", "/x"]), [""; 0]);
    assert!(candidates(&env, &["to"]).contains(&"topic".to_owned()));
    assert!(candidates(&env, &["topic", "echo", "--on"]).contains(&"--once".to_owned()));
    assert!(!candidates(&env, &[""]).iter().any(|name| name == "bench-worker"));
}

#[test]
fn domain_option_on_the_line_selects_the_domain() {
    let env = TestEnv::new();
    let _here = env.node("here").publisher::<[u8]>("/here").open().unwrap();
    let there = env.node_in("there", "lab");
    let _there = there.publisher::<[u8]>("/there").open().unwrap();
    assert_eq!(candidates(&env, &["--domain", "lab", "topic", "echo", "/"]), ["/there"]);
    assert_eq!(candidates(&env, &["topic", "echo", "--domain=lab", "/"]), ["/there"]);
    // In a domain without nodes there is nothing to complete, and nothing is created.
    assert_eq!(candidates(&env, &["--domain", "none", "state", "get", "/"]), [""; 0]);
    assert!(
        !std::fs::read_dir(&env.dir)
            .unwrap()
            .any(|e| { e.unwrap().file_name().to_string_lossy().contains("none") })
    );
}

#[test]
fn each_shell_has_its_script() {
    let env = TestEnv::new();
    for (shell, word) in [("bash", "complete "), ("zsh", "compdef"), ("fish", "complete ")] {
        let output = rnet!(env, "completions", shell).ok();
        assert!(output.contains("RNET_COMPLETE") && output.contains(word), "{output}");
    }
}

#[test]
fn each_command_has_its_manual_page() {
    let env = TestEnv::new();
    let dir = env.dir.join("man");
    std::fs::create_dir(&dir).unwrap();
    rnet!(env, "man", dir.to_str().unwrap()).ok();
    for page in ["rnet.1", "rnet-topic.1", "rnet-topic-echo.1", "rnet-state-set.1"] {
        let text = std::fs::read_to_string(dir.join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
    assert!(!dir.join("rnet-bench-worker.1").exists());
}
