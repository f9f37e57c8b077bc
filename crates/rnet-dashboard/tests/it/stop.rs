//! Stop stops all commands, whatever else runs, with concurrent requests and slow pages, and the stop
//! persists.

use crate::util;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rnet::msgs::{CompressedImage, Twist, Vector3};
use rnet::{Command, Error, GoalPolicy, Node};
use serde_json::{Value as Json, json};
use tungstenite::Message;
use util::{HANG, Page, TestDomain, what};

/// More than the 8 concurrent requests of a page.
const COMMANDS: usize = 40;
const GOALS: usize = 8;

type Applied = Arc<Mutex<Vec<f64>>>;

fn twist(x: f64) -> Twist {
    Twist { linear: Some(Vector3 { x, ..Default::default() }), ..Default::default() }
}

fn receiver(node: &Node, topic: &str, applied: &Applied) -> Command {
    let put = applied.clone();
    let command = node.command::<Twist>(topic).deadline(Duration::from_secs(5)).fallback_zero();
    let apply = move |twist: &Twist| {
        let x = twist.linear.map_or(0.0, |v| v.x);
        // The fallback is a zero.
        if x != 0.0 {
            put.lock().unwrap().push(x);
        }
    };
    command.apply(apply).unwrap()
}

/// A driver that takes authority whenever it can, like the code of a robot.
struct Pilot {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Pilot {
    fn start(node: &Node, topic: &str) -> Pilot {
        let (node, topic) = (node.clone(), topic.to_owned());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let drive = node.drive::<Twist>(&topic).priority(10);
                let Ok(mut driver) = drive.timeout(Duration::from_millis(200)).take() else {
                    std::thread::sleep(Duration::from_millis(5)); // sleep: the period of its attempts
                    continue;
                };
                while !stopped.load(Ordering::Relaxed) && driver.send(&twist(1.0)).is_ok() {
                    std::thread::sleep(Duration::from_millis(5)); // sleep: the period of its commands
                }
            }
        });
        Pilot { stop, thread: Some(thread) }
    }
}

impl Drop for Pilot {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

/// Running flag of a goal; cleared when this is dropped.
struct Runs(Arc<AtomicBool>);

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Waits for a condition; `what` is the panic message.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < HANG, "{what}");
        std::thread::sleep(Duration::from_millis(5)); // sleep: between two checks
    }
}

fn is_dashboard(command: &Command) -> bool {
    command.status().holder.starts_with("/rnet_dashboard_")
}

/// The first row of a command that matches.
fn row(page: &mut Page, sub: u64, fits: impl Fn(&Json) -> bool) -> Json {
    page.data_since(sub, |data| data["commands"].as_array()?.iter().find(|row| fits(row)).cloned())
}

#[test]
fn stops_forty_commands_while_eight_goals_run() {
    let place = TestDomain::new();
    let base = place.node("base");
    let applied = Applied::default();
    let topics: Vec<String> = (0..COMMANDS).map(|n| format!("/joint{n}")).collect();
    let commands: Vec<_> = topics.iter().map(|of| receiver(&base, of, &applied)).collect();
    let (begun, running) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
    let (count, runs) = (begun.clone(), running.clone());
    // All goals are accepted: one runs, the others are queued.
    let action = base.action::<Twist, Twist, Twist>("/walk").policy(GoalPolicy::Queue(GOALS));
    let action = action.serve(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        // It ignores cancellation, which must not matter either.
        while runs.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5)); // sleep: the duration of a step of the goal
        }
        Ok(twist(0.0))
    });
    let action = action.unwrap();
    // Ends the action, even if this test fails.
    let running = Runs(running);
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let goals: Vec<u64> =
        (0..GOALS).map(|_| page.send(json!({"op": "call", "service": "/walk"}))).collect();
    until("no goal runs", || begun.load(Ordering::Relaxed) > 0);
    assert_eq!(page.refused(json!({"op": "call", "service": "/walk"})), "limit");
    let stopped = page.ask(json!({"op": "command.take_all"}));
    assert_eq!(stopped["refused"], json!([]), "{stopped}");
    assert_eq!(stopped["held"].as_array().unwrap().len(), COMMANDS, "{stopped}");
    assert!(commands.iter().all(is_dashboard));
    // Again, from another page: they are already stopped.
    let again = Page::open(&dashboard).ask(json!({"op": "command.take_all"}));
    assert_eq!(again["held"].as_array().unwrap().len(), COMMANDS, "{again}");
    let released = page.ask(json!({"op": "command.release_all"}));
    assert_eq!(released["refused"], json!([]), "{released}");
    assert_eq!(released["released"].as_array().unwrap().len(), COMMANDS, "{released}");
    until("a command is still held", || commands.iter().all(|of| of.status().holder.is_empty()));
    drop(running);
    for goal in goals {
        page.answer(goal);
    }
    drop(action);
}

#[test]
fn page_that_does_not_read_can_stop_commands() {
    let place = TestDomain::new();
    let base = place.node("base");
    let applied = Applied::default();
    let command = receiver(&base, "/cmd_vel", &applied);
    let mut images = base.publisher::<CompressedImage>("/image").open().unwrap();
    let image = CompressedImage {
        format: "jpeg".into(),
        // Begins with the first bytes of a JPEG.
        data: [vec![0xff, 0xd8, 0xff], vec![7; 1_900_000]].concat(),
        ..CompressedImage::default()
    };
    let dashboard = place.start();
    let (mut slow, mut fast) = (Page::open(&dashboard), Page::open(&dashboard));
    let ask = json!({"what": "image", "topic": "/image", "hz": 30});
    slow.sub(json!({"what": "figures", "interval_ms": 250}));
    slow.sub(ask.clone());
    fast.sub(ask);
    // More than all buffers between the two, as counted by the other page: the server is now waiting for this
    // page.
    let mut seen = 0;
    let _ = fast.socket.get_ref().set_read_timeout(Some(Duration::from_millis(50)));
    until("no images come", || {
        images.send(&image).unwrap();
        seen += usize::from(matches!(fast.socket.read(), Ok(Message::Binary(_))));
        seen >= 16
    });
    slow.send(json!({"op": "command.take_all"}));
    until("it does not stop", || is_dashboard(&command));
}

#[test]
fn restarted_receiver_is_stopped_again_before_previous_driver() {
    let place = TestDomain::new();
    let applied = Applied::default();
    let base = place.node("base");
    let command = receiver(&base, "/cmd_vel", &applied);
    let pilot = place.node("pilot");
    let _driving = Pilot::start(&pilot, "/cmd_vel");
    until("it does not drive", || !applied.lock().unwrap().is_empty());
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let commands = page.sub(what("commands"));
    let stop = json!({"op": "command.take", "command": "/cmd_vel"});
    assert_eq!(page.ask(stop)["held"], true);
    row(&mut page, commands, |row| row["held"] == true && row["receiver"] == "/base");
    drop((command, base));
    // While the receiver is absent, it is not stopped; the page shows this, and can release the stop.
    row(&mut page, commands, |row| row["held"] == false && row["stop_wanted"] == true);
    let base = place.node("base2");
    let command = receiver(&base, "/cmd_vel", &applied);
    let seen = row(&mut page, commands, |row| row["held"] == true && row["receiver"] == "/base2");
    assert!(is_dashboard(&command), "{:?} {seen}", command.status());
    let before = applied.lock().unwrap().len();
    for _ in 0..20 {
        let refused = pilot.drive::<Twist>("/cmd_vel").priority(11).timeout(HANG).take();
        let error = refused.map(|_| "it drives").unwrap_err();
        assert!(matches!(error, Error::NotInForce { .. }), "{error}");
    }
    assert_eq!(applied.lock().unwrap().len(), before, "it drives");
    assert!(is_dashboard(&command));
    assert_eq!(page.ask(json!({"op": "command.release", "command": "/cmd_vel"}))["held"], false);
    until("it does not drive again", || applied.lock().unwrap().len() > before);
}

#[test]
fn stop_resumes_after_driver_of_higher_priority() {
    let place = TestDomain::new();
    let base = place.node("base");
    let _command = receiver(&base, "/cmd_vel", &Applied::default());
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let commands = page.sub(what("commands"));
    assert_eq!(page.ask(json!({"op": "command.take_all"}))["held"], json!(["/cmd_vel"]));
    row(&mut page, commands, |row| row["held"] == true);
    let chief = place.node("chief");
    let drive = chief.drive::<Twist>("/cmd_vel").priority(200).lease(Duration::from_secs(60));
    let driver = drive.timeout(HANG).take().unwrap();
    let lost = row(&mut page, commands, |row| row["held"] == false && row["driver"] == "/chief");
    assert_eq!(lost["stop_wanted"], true);
    // A request now gets the error that the dashboard does not hold the command.
    let why = page.ask(json!({"op": "command.take", "command": "/cmd_vel"}));
    assert!(why["error"]["message"].as_str().unwrap().contains("/chief"), "{why}");
    driver.release().unwrap();
    row(&mut page, commands, |row| row["held"] == true);
}

#[test]
fn concurrent_stops_both_succeed() {
    let place = TestDomain::new();
    let base = place.node("base");
    let command = receiver(&base, "/cmd_vel", &Applied::default());
    let dashboard = place.start();
    let (mut one, mut other) = (Page::open(&dashboard), Page::open(&dashboard));
    let take = json!({"op": "command.take", "command": "/cmd_vel"});
    for _ in 0..10 {
        let (of_all, first) = (json!({"op": "command.take_all"}), one.send(take.clone()));
        let (second, third) = (one.send(take.clone()), other.send(of_all));
        assert_eq!(one.answer(first)["held"], true);
        assert_eq!(one.answer(second)["held"], true);
        assert_eq!(other.answer(third)["held"], json!(["/cmd_vel"]));
        assert!(is_dashboard(&command));
        assert_eq!(one.ask(json!({"op": "command.release", "command": "/cmd_vel"}))["held"], false);
    }
}
