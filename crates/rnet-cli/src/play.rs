//! `rnet play`: publishes the messages of a recording again. Keys and services control it.

pub mod args;
mod keyboard;
mod services;

use std::fmt::Display;
use std::io::IsTerminal;

use rnet::NamePattern;
use rnet::inspect::Domain;
use rnet_record::names;
use rnet_record::play::{
    ExistingEndpoints, INTERNAL_TOPICS, PlayOptions, PlaybackCommand, PlaybackController,
    PlaybackReport, Position, QosOverride, play,
};
use rnet_record::read::{Recording, Select};
use serde_json::json;

use self::args::{PlayArgs, QosArg};
use self::keyboard::Keyboard;
use self::services::Services;
use crate::bag::args::SelectArgs;
use crate::bag::file;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use crate::table;
use crate::topic::publish::wait_until_drained;
use rnet_record::tools;

pub fn run(context: &mut Context, args: &PlayArgs) -> Outcome {
    let recording = file::open(context, &args.file)?;
    let remap = tools::remap(&recording, &args.remap)?;
    let options = PlayOptions {
        select: select(&recording, &args.select)?,
        rate: args.rate.0,
        looped: args.r#loop,
        clock_hz: args.clock.then_some(args.clock_rate),
        remap,
        qos: qos(&recording, &args.qos)?,
        force: args.force,
        paused: args.paused,
        ..PlayOptions::default()
    };
    let node = context.node("play", &args.own_node)?;
    let mut domain = context.domain()?;
    let existing = ExistingEndpoints::of(&domain.snapshot()?);
    let keyboard = match args.no_keys || !std::io::stdin().is_terminal() {
        true => None,
        false => Keyboard::open().unwrap_or_else(|failure| {
            context.eprintln(format_args!("keys are not available: {failure}"));
            None
        }),
    };
    if keyboard.is_some() {
        context.eprintln(format_args!(
            "space: pause and resume, s: step one message, left and right: seek 5 s, up and down: faster and \
             slower, l: toggle looping, q: quit"
        ));
    }
    let start_ns = recording.info().times.map_or(0, |times| times.0);
    let services = Services::open(&node, start_ns)?;
    let mut frontend = PlayFrontend { context, domain, keyboard, services, start_ns };
    let played = play(&recording, &node, &existing, &options, &mut frontend);
    drop(frontend);
    let played = played.map_err(|error| Failure::Failed(error.to_string()))?;
    print_summary(context, &played)?;
    signal::check()?;
    let failed =
        (played.failed > 0).then(|| format!("{} messages could not be published", played.failed));
    let is_damaged = recording.info().is_damaged() || played.damaged > 0;
    let damaged = is_damaged.then(|| "unreadable data was not played".to_owned());
    let wrong: Vec<String> = failed.into_iter().chain(damaged).collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(wrong.join("; "))),
    }
}

/// The messages to play. Topics of the library are selected only if a pattern begins with their prefix: `/**`
/// does not repeat requests of services.
fn select(recording: &Recording, args: &SelectArgs) -> Outcome<Select> {
    let mut select = file::select(recording, args)?;
    let plays = |pattern: &NamePattern, topic: &str| {
        let is_named =
            !topic.starts_with(INTERNAL_TOPICS) || pattern.as_str().starts_with(INTERNAL_TOPICS);
        is_named
            && !topic.starts_with(names::RESERVED_TOPICS)
            && tools::topic_matches(pattern, topic)
    };
    for pattern in &args.topic {
        if !select.topics.iter().any(|topic| plays(pattern, topic)) {
            let found = select.topics.iter().find(|topic| tools::topic_matches(pattern, topic));
            let found = found.map_or("", String::as_str);
            let why = if found.starts_with(names::RESERVED_TOPICS) {
                format!("{found} was written by the recorder itself, not published by a node")
            } else {
                let own = INTERNAL_TOPICS.trim_end_matches('/');
                format!(
                    "{found} is internal to robot-net: to play it, use a pattern that starts with {own}"
                )
            };
            return Err(Failure::Failed(format!("--topic {pattern} plays nothing: {why}")));
        }
    }
    select.topics.retain(|topic| args.topic.iter().any(|pattern| plays(pattern, topic)));
    Ok(select)
}

/// The topics of the file whose QoS is overridden. The last override of a topic applies.
fn qos(recording: &Recording, asked: &[QosArg]) -> Outcome<Vec<(String, QosOverride)>> {
    let mut all = Vec::new();
    for QosArg { topics, qos } in asked {
        let of =
            recording.channels().filter(|channel| tools::topic_matches(topics, &channel.topic));
        let before = all.len();
        all.extend(of.map(|channel| (channel.topic.clone(), *qos)));
        if all.len() == before {
            return Err(tools::no_topic(recording, topics.as_str()));
        }
    }
    Ok(all)
}

/// The controls during playback: the keyboard, and signals.
struct PlayFrontend<'a> {
    context: &'a Context,
    domain: Domain,
    keyboard: Option<Keyboard>,
    services: Services,
    start_ns: u64,
}

impl PlaybackController for PlayFrontend<'_> {
    fn next_command(&mut self, position: &Position) -> Option<PlaybackCommand> {
        if signal::stop_requested() {
            return Some(PlaybackCommand::Quit);
        }
        let pressed = self.keyboard.as_mut().and_then(Keyboard::control);
        let control = pressed.or_else(|| self.services.control(position))?;
        if control != PlaybackCommand::Quit {
            let at = position.now_ns.saturating_sub(self.start_ns) as f64 / 1e9;
            let what = match control {
                PlaybackCommand::TogglePause if position.paused => "resumed".to_owned(),
                PlaybackCommand::TogglePause => "paused".to_owned(),
                PlaybackCommand::Step => "one message".to_owned(),
                PlaybackCommand::Seek(by) => format!("seek {:+} s", by as f64 / 1e9),
                PlaybackCommand::ScaleRate(times) => position.rate.map_or_else(
                    || "rate max".to_owned(),
                    |rate| format!("rate {:.2}", rate * times),
                ),
                PlaybackCommand::ToggleLoop if position.looped => "looping off".to_owned(),
                PlaybackCommand::ToggleLoop => "looping on".to_owned(),
                PlaybackCommand::Quit => String::new(),
            };
            self.context.eprintln(format_args!("at {at:.3} s: {what}"));
        }
        Some(control)
    }

    fn on_problem(&mut self, problem: &dyn Display) {
        let text = problem.to_string();
        self.context.note(&text);
    }

    fn on_finished(&mut self, publishers: &mut dyn Iterator<Item = (&str, u64)>) {
        for (topic, id) in publishers {
            wait_until_drained(self.context, &mut self.domain, topic, id);
        }
    }
}

fn print_summary(context: &mut Context, played: &PlaybackReport) -> Outcome {
    let late = &played.late_ns;
    let is_timed = !late.is_empty();
    let at = |quantile| late.value_at_quantile(quantile);
    if context.json() {
        let late =
            is_timed.then(|| json!({"p50_ns": at(0.5), "p99_ns": at(0.99), "max_ns": late.max()}));
        return context.document(&json!({
            "messages": played.messages,
            "bytes": played.bytes,
            "failed": played.failed,
            "damaged": played.damaged,
            "rounds": played.rounds,
            "seconds": played.took.as_secs_f64(),
            "late": late,
        }));
    }
    let (messages, bytes) = (played.messages, table::bytes(played.bytes as f64));
    let seconds = played.took.as_secs_f64();
    context.line(format_args!("played {messages} messages, {bytes}, in {seconds:.3} s"))?;
    if is_timed {
        let [p50, p99] = [0.5, 0.99].map(|quantile| table::latency(at(quantile)));
        let max = table::latency(late.max());
        context.line(format_args!("delay behind schedule: p50 {p50}, p99 {p99}, max {max}"))?;
    }
    Ok(())
}
