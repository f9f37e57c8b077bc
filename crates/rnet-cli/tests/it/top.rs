//! `rnet top`.

use crate::util;

use std::time::Duration;

use rustix::process::Signal;
use util::processes::until;
use util::terminal::Terminal;
use util::{BackgroundPublisher, TestEnv};

const LONG: Duration = Duration::from_secs(30);

#[test]
fn one_interval_is_printed() {
    let env = TestEnv::new();
    let (imu, control) = (env.node("imu"), env.node("control"));
    let mut angles = control.subscriber::<[u8]>("/angles").open().unwrap();
    let pump = BackgroundPublisher::start(
        imu.publisher::<[u8]>("/angles").open().unwrap(),
        Box::from(*b"12345678"),
    );
    angles.recv_timeout(LONG).unwrap();
    let document = rnet!(env, "top", "--once", "--json", "--interval", "0.5").json();
    let topic = &document["topics"][0];
    assert_eq!(topic["topic"], "/angles");
    let hz = topic["rate_hz"].as_f64().unwrap();
    assert!(hz > 1.0 && hz <= 1100.0, "{topic}");
    assert!((topic["bytes_per_s"].as_f64().unwrap() / hz - 8.0).abs() < 0.01, "{topic}");
    let pid = std::process::id();
    let nodes = document["nodes"].as_array().unwrap();
    assert!(
        nodes.iter().all(|n| n["pid"] == pid && n["rss_bytes"].as_u64() > Some(0)),
        "{nodes:?}"
    );
    assert!(nodes.iter().all(|n| n["state"] == "runs"), "{nodes:?}");
    let text = rnet!(env, "top", "--once", "--interval", "0.1", "--filter", "ang").ok();
    assert!(text.contains("/angles") && !text.contains("/imu"), "{text}");
    drop(pump);
}

#[test]
fn without_a_terminal_top_suggests_an_option() {
    let env = TestEnv::new();
    let error = rnet!(env, "top").fails(2);
    assert!(error.contains("--once"), "{error}");
}

#[test]
fn keys_choose_what_is_shown_and_the_terminal_is_restored() {
    let env = TestEnv::new();
    let imu = env.node("imu");
    let pump = BackgroundPublisher::start(
        imu.publisher::<[u8]>("/angles").open().unwrap(),
        Box::from(*b"1"),
    );
    let mut terminal = Terminal::start(&env, &["top", "--interval", "0.2"]);
    terminal.until("/angles");
    assert!(terminal.is_raw());
    // Only changes are drawn: the name appears on the node's page, where nothing was before.
    terminal.send_keys("\t\r");
    terminal.until("/angles");
    terminal.send_keys("q");
    // It leaves the alternate screen, and shows the cursor.
    terminal.until("\u{1b}[?1049l");
    assert_eq!(terminal.end(), Some(0));
    assert!(!terminal.is_raw());
    drop(pump);
}

#[test]
fn one_signal_is_enough_where_the_terminal_takes_no_output() {
    let env = TestEnv::new();
    let _imu = env.node("imu");
    let mut terminal = Terminal::without_reader(&env, &["top"]);
    until("it uses the terminal", || terminal.is_raw());
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.end(), Some(130));
    assert!(!terminal.is_raw());
}

#[test]
fn a_signal_restores_the_terminal() {
    let env = TestEnv::new();
    let _imu = env.node("imu");
    let mut terminal = Terminal::start(&env, &["top"]);
    terminal.until("domain");
    terminal.signal(Signal::TERM);
    terminal.until("\u{1b}[?1049l");
    assert_eq!(terminal.end(), Some(130));
    assert!(!terminal.is_raw());
}

/// Two signals at once, before it has checked for the first, end it in the handler.
#[test]
fn a_second_signal_restores_the_terminal_too() {
    let env = TestEnv::new();
    let _imu = env.node("imu");
    let mut terminal = Terminal::start(&env, &["top"]);
    terminal.until("domain");
    for signal in [Signal::STOP, Signal::TERM, Signal::HUP, Signal::CONT] {
        terminal.signal(signal);
    }
    terminal.until("\u{1b}[?1049l");
    assert_eq!(terminal.end(), Some(130));
    assert!(!terminal.is_raw());
}

#[test]
fn top_exits_when_the_terminal_closes() {
    let env = TestEnv::new();
    let _imu = env.node("imu");
    let mut terminal = Terminal::start(&env, &["top", "--interval", "0.2"]);
    terminal.until("domain");
    terminal.hang_up();
    assert_eq!(terminal.end(), Some(130));
}
