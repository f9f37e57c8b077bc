//! Input that commands read from files and stdin: complete or rejected, and up to a limit.

use crate::util;

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use util::{TEST_TIMEOUT, TestEnv};

/// `producer | rnet …` in a process group, as a shell starts them.
struct Pipeline {
    producer: Child,
    rnet: Child,
}

impl Pipeline {
    /// The producer writes `half` and then blocks; both programs are ready for a signal.
    fn start(env: &TestEnv, half: &str, args: &[&str]) -> Pipeline {
        let mut producer = Command::new("sh")
            .args(["-c", "printf '%s' \"$0\"; echo said >&2; exec sleep 1000", half])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut command = env.command();
        command.args(args).stdin(producer.stdout.take().unwrap());
        let rnet = command.process_group(producer.id() as i32).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(producer.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "said\n");
        let pipeline = Pipeline { producer, rnet };
        pipeline.until_it_catches_signals();
        pipeline
    }

    /// Waits until the program catches SIGTERM. Before that, a signal kills it like any program.
    fn until_it_catches_signals(&self) {
        let until = Instant::now() + TEST_TIMEOUT;
        let path = format!("/proc/{}/status", self.rnet.id());
        loop {
            let status = std::fs::read_to_string(&path).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            if u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (15 - 1)) != 0 {
                return;
            }
            assert!(Instant::now() < until, "it never catches SIGTERM");
            std::thread::sleep(Duration::from_millis(1)); // sleep: polling interval
        }
    }

    /// Sends the group one signal. Returns how `rnet` exited.
    fn signalled(mut self, name: &str) -> Option<i32> {
        let group = format!("-{}", self.producer.id());
        let sent = Command::new("kill").args(["-s", name, "--", &group]).status().unwrap();
        assert!(sent.success());
        self.rnet.wait().unwrap().code()
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        for child in [&mut self.producer, &mut self.rnet] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn input_cut_short_by_a_signal_is_not_applied() {
    let dump = {
        let env = TestEnv::new();
        rnet!(env, "state", "set", "/loaded", "1").ok();
        rnet!(env, "state", "dump").ok()
    };
    let env = TestEnv::new();
    let node = env.node("hearer");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let cases: [(&str, &[&str]); 5] = [
        ("half", &["state", "set", "/fw", "--file", "-"]),
        ("half", &["state", "cas", "/fw", "0", "--file", "-"]),
        (&dump, &["state", "load"]),
        ("/arm:\n  gain: 1\n", &["param", "load", "-"]),
        ("half", &["topic", "pub", "/t", "--file", "-", "--once"]),
    ];
    for (half, args) in cases {
        // The end of the pipe and the signal race.
        for signal in ["INT", "TERM", "INT", "HUP", "INT", "TERM"] {
            let code = Pipeline::start(&env, half, args).signalled(signal);
            assert_eq!(code, Some(130), "{args:?} {signal}");
        }
    }
    assert_eq!(rnet!(env, "state", "list", "--json").json()["keys"].as_array().unwrap().len(), 0);
    assert!(subscriber.try_recv().unwrap().is_none());
}

#[test]
fn end_of_input_without_a_signal_completes_the_input() {
    let env = TestEnv::new();
    let mut pipeline =
        Pipeline::start(&env, "whole", &["state", "set", "/fw", "--type", "str", "--file", "-"]);
    pipeline.producer.kill().unwrap();
    assert_eq!(pipeline.rnet.wait().unwrap().code(), Some(0));
    assert_eq!(rnet!(env, "state", "get", "/fw").ok(), "whole\n");
}

#[test]
fn endless_input_is_refused_and_the_limit_named() {
    let env = TestEnv::new();
    for (args, limit) in [
        (&["state", "set", "/fw", "--file", "/dev/zero"][..], "MAX_VALUE_LEN_BYTES"),
        (&["param", "load", "/dev/zero"], "MAX_YAML_LEN_BYTES"),
        (&["state", "load", "/dev/zero"], "a dump of the state"),
    ] {
        let said = env.run(args).fails(1);
        assert!(said.contains("/dev/zero") && said.contains(limit), "{said}");
    }
    // A file whose length exceeds the limit is not read at all.
    let long = env.dir.join("long");
    std::fs::File::create(&long).unwrap().set_len((1 << 30) + 1).unwrap();
    let said = env.run(&["topic", "pub", "/t", "--file", long.to_str().unwrap()]).fails(1);
    assert!(said.contains("MAX_MESSAGE_LEN_BYTES"), "{said}");
}
