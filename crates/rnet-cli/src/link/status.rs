//! `rnet link status`.

use std::time::{Duration, Instant};

use rnet::MessageType;
use rnet::inspect::is_internal;
use rnet::msgs::link_status::{Cause, Peer, Topic};
use rnet::msgs::{LinkStatus, duration_to_ns};
use rnet::schema::Dynamic;
use serde_json::json;

use super::LinkOptions;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::snapshot::take_snapshot;
use crate::{signal, table};
use rnet_format::text::escape_controls;
use rnet_format::value::{Message, enum_word};
use rnet_monitor::link::{
    INSECURE, STATUS_TOPIC, check_alive, elapsed_since, expiring, last_status, missing_rights,
};
use rnet_monitor::link_program::{Settings, settings};
use rnet_monitor::{Finding, Findings, Level};

/// How long to wait for the first status of a link that has just started.
const FIRST_STATUS_TIMEOUT: Duration = Duration::from_secs(3);

pub fn run(context: &mut Context, options: &LinkOptions, all: bool) -> Outcome {
    let begun = Instant::now();
    let status = loop {
        let (_, snapshot) = take_snapshot(context)?;
        let found = last_status(&snapshot);
        let begins = snapshot.publishers.iter().any(|p| p.topic == STATUS_TOPIC);
        if found.is_some() || !begins || begun.elapsed() > FIRST_STATUS_TIMEOUT {
            break found;
        }
        signal::check()?;
        std::thread::sleep(Duration::from_millis(20)); // sleep: between two looks at a condition
    };
    let Some(mut status) = status else {
        let why = why_none(context, options);
        if context.json() {
            context.document(&json!({"running": false, "why": why}))?;
            return Err(Failure::AlreadyReported);
        }
        return Err(Failure::Failed(why));
    };
    if context.json() {
        let mut document = as_json(&status)?;
        document["running"] = true.into();
        return context.document(&document);
    }
    if !all {
        status.peers.iter_mut().for_each(|peer| peer.topics.retain(|t| !is_internal(&t.name)));
    }
    print(context, &status)?;
    let mut findings = Findings::default();
    check_alive(&mut findings, &status);
    findings.0.retain(|finding| finding.level == Level::Problem);
    let said = status.problems.iter().map(|problem| Finding {
        level: Level::Problem,
        check: "link",
        what: escape_controls(problem).into_owned(),
        advice: None,
    });
    for finding in said.chain(findings.0) {
        context.line(format_args!(""))?;
        context.findings([&finding])?;
    }
    Ok(())
}

/// A text with the reason why no link runs.
fn why_none(context: &Context, options: &LinkOptions) -> String {
    let id = context.location().map(|location| location.id().to_string()).unwrap_or_default();
    let none = format!("no link is running in domain {id}");
    let program = match rnet::link::find_program(None) {
        Ok(program) => program,
        Err(why) => return format!("{none}: {why}"),
    };
    match settings(program, options.config.as_deref(), options.network.as_deref()) {
        Err(why) => format!("{none}, and it cannot start: {why}"),
        Ok(settings) if settings.mode == "off" && settings.mode_from == "default" => {
            format!(
                "{none}: the network is off because none is configured ({})",
                settings.mode_source()
            )
        }
        Ok(settings) if settings.mode == "off" => {
            format!("{none}: the network is off ({})", settings.mode_from)
        }
        Ok(Settings { refused: Some(why), .. }) => format!("{none}, and it cannot start: {why}"),
        Ok(settings) => format!(
            "{none}, but the network is {:?} ({}): it starts with the next node or with rnet link start; if it \
             exits, run rnet link to see why",
            settings.mode, settings.mode_from
        ),
    }
}

fn as_json(status: &LinkStatus) -> Outcome<serde_json::Value> {
    let bytes = prost::Message::encode_to_vec(status);
    let MessageType::Protobuf(schema) = <LinkStatus as rnet::Message>::message_type()? else {
        return Err(Failure::Failed(format!("the type of {STATUS_TOPIC} is not protobuf")));
    };
    let failed = |e| Failure::Failed(format!("{STATUS_TOPIC}: {e}"));
    let dynamic = Dynamic::decode(&schema, &bytes).map_err(failed)?;
    Message::Protobuf(dynamic, None).json()
}

fn print(context: &mut Context, status: &LinkStatus) -> Outcome {
    let LinkStatus { host, id, term, pid, version, mode, listen, connect, interfaces, .. } = status;
    context.heading(&format!("host {}", escape_controls(host)))?;
    context.line(format_args!(
        "id {}, term {term}, process {pid}, rnet {}",
        escape_controls(id),
        escape_controls(version)
    ))?;
    let listen = match listen.is_empty() {
        true => "not listening".to_owned(),
        false => format!("listens on {}", listen.join(", ")),
    };
    context.line(format_args!(
        "network {}, {}",
        escape_controls(mode),
        escape_controls(&listen)
    ))?;
    for (what, all) in [("connects to", connect), ("on", interfaces)] {
        if !all.is_empty() {
            context.line(format_args!("{what} {}", escape_controls(&all.join(", "))))?;
        }
    }
    if status.insecure {
        context.line(format_args!("{INSECURE}"))?;
    }
    if !status.authority.is_empty() {
        let authority = escape_controls(&status.authority);
        context.line(format_args!("secured by keys of authority {authority}"))?;
    }
    for (text, _) in expiring(status) {
        context.line(format_args!("{text}"))?;
    }
    if status.peers.is_empty() {
        return context.line(format_args!("\nno other hosts are known"));
    }
    context.line(format_args!(""))?;
    let titles =
        ["HOST", "STATE", "SINCE ", "ADDRESS", "VERSION", "NODES ", "RTT ", "CLOCK OFFSET "];
    let rows: Vec<Vec<String>> = status.peers.iter().map(peer_row).collect();
    table::print(context, &titles, &rows)?;
    for peer in &status.peers {
        if !peer.text.is_empty() {
            context.line(format_args!("{}: {}", name(peer), escape_controls(&peer.text)))?;
        }
        for step in &peer.clock_steps {
            let by = step.step.as_ref().and_then(duration_to_ns).map_or("-".into(), signed);
            let ago = elapsed_since(step.timestamp.as_ref()).map_or("-".into(), table::uptime);
            context.line(format_args!("{}: clock stepped by {by}, {ago} ago", name(peer)))?;
        }
        if peer.clock_drift_uncertainty > 0.0 {
            let (gains, about) = (peer.clock_drift * 1e6, peer.clock_drift_uncertainty * 1e6);
            context.line(format_args!(
                "{}: clock drift {gains:+.1} ± {about:.1} us per second",
                name(peer)
            ))?;
        }
    }
    let topics = status.peers.iter().flat_map(|peer| peer.topics.iter().map(move |t| (peer, t)));
    // Topics of robot-net itself come last: calls and state.
    let (internal, users): (Vec<_>, Vec<_>) =
        topics.partition(|(_, topic)| is_internal(&topic.name));
    let rows = users.into_iter().chain(internal).map(|(peer, topic)| topic_row(peer, topic));
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return context.line(format_args!("\nno topics are forwarded"));
    }
    context.line(format_args!(""))?;
    let titles =
        ["HOST", "DIR", "TOPIC", "RATE ", "PER S ", "MESSAGES ", "LOST", "SKIPPED ", "HELD BACK"];
    table::print(context, &titles, &rows)?;
    for text in missing_rights(&status.peers) {
        context.line(format_args!("{}", escape_controls(text)))?;
    }
    Ok(())
}

fn name(peer: &Peer) -> String {
    let known = [&peer.host, &peer.id, &peer.address].into_iter().find(|name| !name.is_empty());
    known.map_or_else(|| "?".to_owned(), |name| escape_controls(name).into_owned())
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { escape_controls(text).into_owned() }
}

fn peer_row(peer: &Peer) -> Vec<String> {
    let ns = |time: &Option<rnet::msgs::Duration>| time.as_ref().and_then(duration_to_ns);
    let offset = ns(&peer.clock_offset).map(|offset| {
        table::offset(offset, ns(&peer.clock_offset_uncertainty).map(i64::unsigned_abs))
    });
    vec![
        name(peer),
        enum_word(peer.state().as_str_name()),
        elapsed_since(peer.since.as_ref()).map_or("-".into(), table::uptime),
        or_dash(&peer.address),
        or_dash(&peer.version),
        peer.nodes.to_string(),
        ns(&peer.round_trip).map_or("-".into(), |ns| table::latency(ns.unsigned_abs())),
        offset.unwrap_or_else(|| "-".to_owned()),
    ]
}

fn signed(ns: i64) -> String {
    format!("{}{}", if ns < 0 { '-' } else { '+' }, table::latency(ns.unsigned_abs()))
}

fn topic_row(peer: &Peer, topic: &Topic) -> Vec<String> {
    let lost = topic.lost.unwrap_or_default();
    let by_cause = [
        (lost.link, "link"),
        (lost.overrun, "overrun"),
        (lost.restart, "restart"),
        (lost.detached, "detached"),
    ];
    let lost = by_cause.iter().filter(|(n, _)| *n > 0).map(|(n, cause)| format!("{n} {cause}"));
    let lost = lost.collect::<Vec<_>>().join(", ");
    let held_back = match topic.held_back_text.as_str() {
        text if text.is_empty() || topic.held_back() == Cause::Rights => {
            enum_word(topic.held_back().as_str_name())
        }
        text => escape_controls(text).into_owned(),
    };
    vec![
        name(peer),
        enum_word(topic.direction().as_str_name()),
        escape_controls(&topic.name).into_owned(),
        format!("{:.1} Hz", topic.rate_hz),
        table::bytes(topic.bytes_per_s),
        topic.messages.to_string(),
        if lost.is_empty() { "0".to_owned() } else { lost },
        topic.skipped.to_string(),
        held_back,
    ]
}
