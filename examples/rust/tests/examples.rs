//! Runs every example as a user would, in its own domain, and checks its output.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Far longer than any example takes: a hang fails instead of blocking the tests.
const LIMIT: Duration = Duration::from_secs(120);

/// A domain for one test; `drop` removes its directory.
struct TestDomain {
    id: String,
    base: PathBuf,
}

impl TestDomain {
    fn new() -> TestDomain {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let base = PathBuf::from(format!("/dev/shm/rnet-examples-{}-{number}", std::process::id()));
        std::fs::create_dir(&base).expect("a directory on tmpfs");
        TestDomain { id: format!("examples_{number}"), base }
    }

    fn start(&self, program: &str) -> Child {
        Command::new(program)
            .env("RNET_DOMAIN", &self.id)
            .env("RNET_DIR", &self.base)
            .env("RNET_STATE_DIR", self.base.join("keep"))
            .env_remove("RNET_GROUP")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the example starts")
    }

    fn run(&self, program: &str) -> String {
        finish(self.start(program))
    }
}

impl Drop for TestDomain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

/// The output of the example, which must exit with 0 and an empty stderr.
fn finish(child: Child) -> String {
    let output = child.wait_with_output().expect("the example ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{}: {stderr}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn ten_hellos() -> String {
    (0..10).map(|n| format!("hello, robot {n}\n")).collect()
}

#[test]
fn hello_listener_first() {
    let domain = TestDomain::new();
    let listener = domain.start(env!("CARGO_BIN_EXE_example-hello-listener"));
    let talker = domain.start(env!("CARGO_BIN_EXE_example-hello-talker"));
    assert_eq!(finish(talker), "");
    assert_eq!(finish(listener), ten_hellos());
}

#[test]
fn hello_talker_first() {
    let domain = TestDomain::new();
    let talker = domain.start(env!("CARGO_BIN_EXE_example-hello-talker"));
    assert_eq!(domain.run(env!("CARGO_BIN_EXE_example-hello-listener")), ten_hellos());
    assert_eq!(finish(talker), "");
}

/// The first output line of a program that runs until it is stopped.
fn first_line(child: &mut Child) -> String {
    let stdout = child.stdout.take().expect("it was piped");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("UTF-8");
        // Fails if the receiver has timed out.
        let _ = sender.send(line);
    });
    receiver.recv_timeout(LIMIT).unwrap_or_default()
}

fn typed_in_order(talker_first: bool) {
    let domain = TestDomain::new();
    let mut programs =
        [env!("CARGO_BIN_EXE_example-typed-talker"), env!("CARGO_BIN_EXE_example-typed-listener")];
    if !talker_first {
        programs.reverse();
    }
    let [first, second] = programs.map(|program| domain.start(program));
    let (talker, mut listener) = if talker_first { (first, second) } else { (second, first) };
    assert_eq!(finish(talker), "");
    let line = first_line(&mut listener);
    listener.kill().expect("it runs until it is ended");
    listener.wait().expect("it was started here");
    assert_eq!(line, "laser [1.5, 1.25, 2.0]\n");
}

#[test]
fn typed_talker_first() {
    typed_in_order(true);
}

#[test]
fn typed_listener_first() {
    typed_in_order(false);
}

/// The talker is in the domain FROM, the listener in TO: the bridge joins them.
#[test]
fn bridge_joins_two_domains() {
    let domain = TestDomain::new();
    let other = format!("{}_to", domain.id);
    let start = |program: &str, id: &str, args: &[&str]| {
        Command::new(program)
            .args(args)
            .env("RNET_DOMAIN", id)
            .env("RNET_DIR", &domain.base)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the example starts")
    };
    let args = [domain.id.as_str(), other.as_str()];
    let mut bridge = start(env!("CARGO_BIN_EXE_example-bridge"), &domain.id, &args);
    assert_eq!(first_line(&mut bridge), "bridging\n");
    let mut listener = start(env!("CARGO_BIN_EXE_example-typed-listener"), &other, &[]);
    let talker = domain.start(env!("CARGO_BIN_EXE_example-typed-talker"));
    let line = first_line(&mut listener);
    assert_eq!(line, "laser [1.5, 1.25, 2.0]\n");
    for mut process in [listener, bridge, talker] {
        process.kill().expect("it was started here");
        process.wait().expect("it was started here");
    }
}

#[test]
fn typed_programs_have_at_most_the_promised_lines() {
    let programs =
        [(include_str!("../typed/talker.rs"), 8), (include_str!("../typed/listener.rs"), 6)];
    for (program, limit) in programs {
        let code = program.lines().filter(|line| !line.is_empty() && !line.starts_with("//!"));
        assert!(code.count() <= limit, "{program}");
    }
}

#[test]
fn many_topics() {
    let text = TestDomain::new().run(env!("CARGO_BIN_EXE_example-many-topics"));
    let mean = |n: u32| f64::from(10 * n) + 0.5;
    let expected: String =
        (0..8).map(|n| format!("/sensor_{n}: 100 readings, mean {:.1}\n", mean(n))).collect();
    assert_eq!(text, expected);
}

#[test]
fn parameters() {
    let text = TestDomain::new().run(env!("CARGO_BIN_EXE_example-parameters"));
    let refused =
        "refused: bad value for parameter /gain of /arm: 11.0 is above its maximum 10.0 1/s";
    assert_eq!(text, format!("gain is 1.0\n{refused}\ngain is 2.5 now\n"));
}

#[test]
fn zero_copy_image() {
    let text = TestDomain::new().run(env!("CARGO_BIN_EXE_example-zero-copy-image"));
    let mut expected: String = (0..30)
        .map(|n| format!("frame {n}: 921600 bytes, from [255, 0, 0] to [{n}, {n}, {n}]\n"))
        .collect();
    expected.push_str("lost: 0\n");
    assert_eq!(text, expected);
}

#[test]
fn urgent_stop() {
    let text = TestDomain::new().run(env!("CARGO_BIN_EXE_example-urgent-stop"));
    let rest = text.strip_prefix("stop (obstacle) after ").expect("the stop arrived");
    let (_latency, rest) = rest.split_once(" us, ").expect("the latency");
    let handled = rest.strip_suffix(" of 1000 loads handled\n").expect("the loads");
    let handled: u32 = handled.parse().expect("a number");
    // All loads would take 20 s of callbacks: the stop was handled before most of them.
    assert!(handled < 1000, "the stop waited for {handled} loads");
}

#[test]
fn late_joiner() {
    let text = TestDomain::new().run(env!("CARGO_BIN_EXE_example-late-joiner"));
    assert_eq!(text, "map revision 3: 192 free cells of 0.05 m\n");
}

#[test]
fn state() {
    let text = TestDomain::new().run(env!("CARGO_BIN_EXE_example-state"));
    let expected = "the arm is idle, gains are {\"kp\": 12.5, \"kd\": 0.5}\n\
                    job 3: moving to [0.5, -0.25]\nalive: true\nalive: false\n";
    assert_eq!(text, expected);
}
