//! Rules for all commands: settings, exit codes, bad input, pipes.

use crate::util;

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use util::{BackgroundPublisher, DOMAIN, TestEnv, is_root};

#[test]
fn version_prints_program_and_layout_versions() {
    let env = TestEnv::new();
    let text = rnet!(env, "version").ok();
    assert_eq!(
        text,
        format!("rnet {} (shared-memory layout {})\n", rnet::VERSION, rnet::LAYOUT_VERSION)
    );
    let json = rnet!(env, "--json", "version").json();
    assert_eq!(json["version"], rnet::VERSION);
    assert_eq!(json["layout_version"], rnet::LAYOUT_VERSION);
}

#[test]
fn help_goes_to_stdout_and_usage_errors_exit_with_2() {
    let env = TestEnv::new();
    assert!(rnet!(env, "--help").ok().contains("doctor"));
    assert!(rnet!(env, "topic", "pub", "--help").ok().contains("--proto"));
    let wrong: [&[&str]; 14] = [
        &[],
        &["topic"],
        &["topic", "shout"],
        &["topic", "echo"],
        &["topic", "echo", "/a//b"],
        &["topic", "echo", "/a", "--count", "0"],
        &["topic", "echo", "/a", "--field", "a..b"],
        &["topic", "echo", "/a", "--timeout", "-1"],
        &["topic", "hz", "/a", "--window", "1"],
        &["topic", "pub", "/a"],
        &["topic", "pub", "/a", "--hex", "0g"],
        &["topic", "pub", "/a", "--text", "x", "--rate", "0"],
        &["node", "info", "two words"],
        &["doctor", "only_one"],
    ];
    for args in wrong {
        let ran = env.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:#?}");
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{args:?}: {ran:#?}");
    }
}

#[test]
fn error_of_an_invalid_name_states_the_reason() {
    let env = TestEnv::new();
    let said = rnet!(env, "topic", "info", "/1st").fails(2);
    assert!(said.contains("not with a digit"), "{said}");
    let said = rnet!(env, "--domain", "a-b", "topic", "list").fails(2);
    assert!(said.contains("'-'"), "{said}");
}

#[test]
fn invalid_domain_in_the_environment_is_a_usage_error() {
    let env = TestEnv::new();
    let mut command = env.command();
    command.env("RNET_DOMAIN", "a b").args(["node", "list"]);
    let said = util::RunningCommand::start(command).wait().fails(2);
    assert!(said.contains("bad domain name"), "{said}");
}

#[test]
fn a_flag_wins_over_the_environment() {
    let env = TestEnv::new();
    let _here = env.node("here");
    let _there = env.node_in("there", "other");
    assert_eq!(rnet!(env, "node", "list").ok(), "/here\n");
    assert_eq!(rnet!(env, "node", "list", "--domain", "other").ok(), "/there\n");
    let elsewhere = TestEnv::new();
    let dir = env.dir.to_str().unwrap();
    assert_eq!(rnet!(elsewhere, "node", "list").ok(), "");
    assert_eq!(rnet!(elsewhere, "--dir", dir, "node", "list").ok(), "/here\n");
}

#[test]
fn directory_with_the_wrong_mode_is_refused_by_name() {
    let env = TestEnv::new();
    drop(env.node("a"));
    let dir = env.domain_dir();
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
    for args in
        [&["topic", "list"][..], &["topic", "echo", "/t"], &["topic", "pub", "/t", "--text", "x"]]
    {
        let said = env.run(args).fails(1);
        assert!(said.contains("no permission") && said.contains("mode 755"), "{said}");
    }
    let said = rnet!(env, "--json", "node", "list").fails(1);
    let error: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(error["error"]["code"], "no_permission");
}

#[test]
fn a_directory_that_cannot_be_written_is_refused_by_name() {
    let env = TestEnv::new();
    if is_root(&env.dir) {
        return; // Root may access everything.
    }
    std::fs::set_permissions(&env.dir, PermissionsExt::from_mode(0o500)).unwrap();
    let said = rnet!(env, "topic", "pub", "/t", "--text", "x").fails(1);
    assert!(said.contains("RNET_DIR"), "{said}");
}

#[test]
fn another_layout_version_is_refused_by_number() {
    let env = TestEnv::new();
    drop(env.node("a"));
    std::fs::write(env.domain_dir().join("VERSION"), "999\n").unwrap();
    let said = rnet!(env, "topic", "list").fails(1);
    assert!(said.contains("layout version 999"), "{said}");
}

#[test]
fn missing_base_directory_is_a_usage_error() {
    let env = TestEnv::new();
    for command in [
        "topic list",
        "topic echo /t",
        "node info /n",
        "node list --watch",
        "state list",
        "state get /k",
        "state set /k 1",
        "state add /k",
        "state cas /k 0 1",
        "state watch",
        "param list",
        "domain list",
        "domain clean",
        "type show --topic /t",
        "topic pub /t --text x --once",
    ] {
        let args: Vec<&str> =
            ["--dir", "/nonexistent"].into_iter().chain(command.split(' ')).collect();
        let said = env.run(&args).fails(2);
        assert!(said.contains("directory /nonexistent does not exist"), "{command}: {said}");
    }
}

#[test]
fn colour_is_for_terminals_and_on_request() {
    let env = TestEnv::new();
    let _node = env.node("a");
    let coloured = |args: &[&str], set: &[&str]| {
        let mut command = env.command();
        command
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .envs(set.iter().map(|name| (name, "1")));
        command.args(["node", "list", "-v"]).args(args);
        util::RunningCommand::start(command).wait().ok().contains("\x1b[1mNODE")
    };
    assert!(!coloured(&[], &[]), "a pipe is not a terminal");
    assert!(coloured(&[], &["CLICOLOR_FORCE"]));
    assert!(!coloured(&[], &["CLICOLOR_FORCE", "NO_COLOR"]));
    assert!(coloured(&["--color", "always"], &[]));
    assert!(!coloured(&["--color", "never"], &["CLICOLOR_FORCE"]));
    let said = rnet!(env, "--color", "always", "node", "info", "/b").fails(1);
    assert!(said.contains("\x1b[1m\x1b[31mrnet:"), "{said:?}");
}

#[test]
fn unknown_group_is_refused() {
    let env = TestEnv::new();
    let said = rnet!(env, "--group", "no_such_group_here", "node", "list").fails(1);
    assert!(said.contains("no such group"), "{said}");
}

#[test]
fn closed_pipe_is_a_successful_exit() {
    let env = TestEnv::new();
    let node = env.node("talker");
    let _pump = BackgroundPublisher::start(
        node.publisher::<[u8]>("/t").open().unwrap(),
        b"x".to_vec().into(),
    );
    let mut echo = env.command().args(["topic", "echo", "/t", "--csv"]).spawn().unwrap();
    let head = Command::new("head")
        .args(["-n", "3"])
        .stdin(echo.stdout.take().unwrap())
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(head.stdout).unwrap(), "78\n78\n78\n");
    let mut said = String::new();
    std::io::Read::read_to_string(&mut echo.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(echo.wait().unwrap().code(), Some(0), "{said}");
    assert!(!said.contains("Broken") && !said.contains("panic"), "{said}");
}

#[test]
fn empty_domain_is_not_an_error() {
    let env = TestEnv::new();
    assert_eq!(rnet!(env, "topic", "list").ok(), "");
    let json = rnet!(env, "--json", "topic", "list").json();
    assert_eq!(json["domain"], DOMAIN);
    assert_eq!(json["topics"].as_array().unwrap().len(), 0);
    assert_eq!(rnet!(env, "node", "list").ok(), "");
    for (what, verbose) in [("topic", "-v"), ("node", "-v"), ("state", "-l")] {
        for args in [&[what, "list"][..], &[what, "list", verbose], &[what, "list", "--json"]] {
            let ran = env.run(args);
            let dir = env.dir.to_str().unwrap();
            assert!(
                ran.stderr.contains(&format!("in domain {DOMAIN} ({dir}/")),
                "{args:?}: {ran:#?}"
            );
            assert!(ran.ok().starts_with(if args.contains(&"--json") { "{" } else { "" }));
        }
    }
    // Inspection creates no file.
    assert_eq!(std::fs::read_dir(&env.dir).unwrap().count(), 0);
}
