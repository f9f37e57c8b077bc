//! Playback with controller commands.

use crate::files;

use std::fmt::Display;
use std::time::Duration;

use files::{Dir, START_NS, STEP_NS, chunked, write};
use rnet::{Node, Subscriber};
use rnet_record::play::{
    ExistingEndpoints, PlayOptions, PlaybackCommand, PlaybackController, Position, play,
};
use rnet_record::read::Recording;

/// Returns commands one after the other, each at its time.
struct Script<F>(F);

impl<F: FnMut(&Position) -> Option<PlaybackCommand>> PlaybackController for Script<F> {
    fn next_command(&mut self, position: &Position) -> Option<PlaybackCommand> {
        (self.0)(position)
    }

    fn on_problem(&mut self, problem: &dyn Display) {
        panic!("{problem}");
    }

    fn on_finished(&mut self, publishers: &mut dyn Iterator<Item = (&str, u64)>) {
        assert_eq!(publishers.count(), 2);
    }
}

fn nodes(dir: &Dir) -> (Node, Subscriber<[u8]>) {
    let open = |name: &str| Node::builder(name).dir(dir.path("")).domain("play").open().unwrap();
    let node = open("player");
    let subscriber = open("listener").subscriber("/raw").keep_all().open().unwrap();
    (node, subscriber)
}

/// The messages received so far.
fn texts(subscriber: &mut Subscriber<[u8]>) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(sample) = subscriber.try_recv().unwrap() {
        texts.push(String::from_utf8(sample.bytes().to_vec()).unwrap());
    }
    texts
}

#[test]
fn steps_and_resumes_while_paused() {
    let dir = Dir::new();
    let file = dir.write("run.mcap", &write(chunked(None), 100));
    let recording = Recording::open(&file).unwrap();
    let (node, mut subscriber) = nodes(&dir);
    let mut orders = vec![
        None,
        Some(PlaybackCommand::Step),
        Some(PlaybackCommand::Step),
        None,
        Some(PlaybackCommand::Quit),
    ];
    orders.reverse();
    let mut seen = Vec::new();
    let mut script = Script(|position: &Position| {
        seen.push(*position);
        orders.pop().unwrap()
    });
    let options = PlayOptions { paused: true, ..PlayOptions::default() };
    let played =
        play(&recording, &node, &ExistingEndpoints::default(), &options, &mut script).unwrap();
    assert_eq!(played.messages, 2);
    assert_eq!(texts(&mut subscriber), ["message 1"]);
    assert!(seen.iter().all(|position| position.paused));
    // It is due at its send time.
    assert_eq!(seen[4].now_ns, START_NS + STEP_NS - 1000);
}

#[test]
fn seeks_forward_and_back_and_plays_faster() {
    let dir = Dir::new();
    let file = dir.write("run.mcap", &write(chunked(None), 100));
    let recording = Recording::open(&file).unwrap();
    let (node, mut subscriber) = nodes(&dir);
    // From its 90th message, twice.
    let mut orders = vec![
        Some(PlaybackCommand::Seek(90 * STEP_NS as i64)),
        Some(PlaybackCommand::Step),
        Some(PlaybackCommand::Step),
        Some(PlaybackCommand::Seek(-1_000_000_000)),
        Some(PlaybackCommand::Seek(90 * STEP_NS as i64)),
        Some(PlaybackCommand::ScaleRate(2.0)),
        Some(PlaybackCommand::TogglePause),
    ];
    orders.reverse();
    let mut rate = None;
    let mut script = Script(|position: &Position| {
        rate = position.rate;
        orders.pop().flatten()
    });
    let options = PlayOptions { paused: true, ..PlayOptions::default() };
    let played =
        play(&recording, &node, &ExistingEndpoints::default(), &options, &mut script).unwrap();
    assert_eq!(played.messages, 12);
    let texts = texts(&mut subscriber);
    assert_eq!(
        texts,
        ["message 91", "message 91", "message 93", "message 95", "message 97", "message 99"]
    );
    assert_eq!(rate, Some(2.0));
    assert_eq!(played.late_ns.len(), 10, "no message is due while paused");
}

#[test]
fn reports_lateness_of_messages() {
    let dir = Dir::new();
    let file = dir.write("run.mcap", &write(chunked(None), 200));
    let recording = Recording::open(&file).unwrap();
    let (node, _heard) = nodes(&dir);
    let mut asked = 0;
    let mut script = Script(|_: &Position| {
        asked += 1;
        if asked == 2 {
            std::thread::sleep(Duration::from_millis(60)); // sleep: messages due meanwhile are late
        }
        None
    });
    let options = PlayOptions::default();
    let played =
        play(&recording, &node, &ExistingEndpoints::default(), &options, &mut script).unwrap();
    assert_eq!((played.messages, played.late_ns.len()), (200, 200));
    let max = played.late_ns.max();
    assert!(max >= 50_000_000, "{max}");
    assert!(played.late_ns.value_at_quantile(0.1) < max, "only some of them are late");
}
