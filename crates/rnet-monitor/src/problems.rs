//! The current problems of a domain.

use rnet::inspect::{Snapshot, is_internal};

use crate::figures::{DomainSnapshot, Figures, TopicRow};
use crate::findings::{Finding, Findings, Level};
use crate::{health, link, matching, recorders};
use rnet_format::text::{count_text, escape_controls};

/// Current problems, and those that occurred since the previous snapshot, each with advice. Earlier problems
/// that are over are not included; counters show them.
///
/// `rnet status`, `rnet top`, `rnet metrics`, the dashboard and its `/healthz` share this check; `rnet
/// doctor` adds its findings about the machine. Internal topics are not checked: a caller gets the errors of
/// its calls.
pub fn problems(before: &DomainSnapshot, now: &DomainSnapshot, figures: &Figures) -> Vec<Finding> {
    let mut findings = Findings::default();
    // A probe with a mistyped domain name must not report success.
    if let Some(path) = &now.missing_dir {
        findings.problem(
            "domain",
            format!("no node has joined this domain yet: {} does not exist", path.display()),
            "start its nodes, or specify another domain; rnet domain list shows the existing ones",
        );
    }
    for node in &now.snapshot.died {
        findings.problem(
            "dead",
            format!("node {} has died: its process exited without leaving the domain", escape_controls(node)),
            "check its output for the reason, and restart it; rnet launch does both automatically, and rnet \
             domain clean removes it from the list",
        );
    }
    matching::check_topics(&mut findings, &now.snapshot, None, None);
    if let Some(pid) = now.killed_link {
        link::report_killed(&mut findings, pid);
    }
    if let Some(status) = &now.link {
        link::check_alive(&mut findings, status);
        link::check_peers(&mut findings, status);
        health::clocks(&mut findings, status);
    }
    health::launched(&mut findings, &now.launched);
    for problem in &now.snapshot.problems {
        findings.problem("unreadable", problem.clone(), "restart that node");
    }
    let lasting = |f: &Finding| f.level == Level::Problem || f.check == "lag";
    findings.0.retain(lasting);
    recorders::diagnose(&mut findings, Some(&before.recorders), &now.recorders, rnet::now_ns());
    for topic in figures.topics.iter().filter(|topic| !is_internal(&topic.topic)) {
        topic_problems(&mut findings, topic, figures.interval_s);
    }
    callback_problems(&mut findings, &before.snapshot, &now.snapshot, figures.interval_s);
    for host in figures.hosts.iter().filter(|host| !host.held_back.is_empty()) {
        let waits = host.held_back.join(", ");
        findings.problem(
            "held_back",
            format!("the link to host {} is saturated: {} wait", escape_controls(&host.host), escape_controls(&waits)),
            "send less over the link (network.topics in robot.toml: rate, newest_only, compression), or \
             read faster on that host; rnet link status shows what each topic waits for",
        );
    }
    for node in figures.nodes.iter().filter(|node| node.state == "stopped") {
        let pid = node.pid.unwrap_or_default();
        findings.problem(
            "stopped",
            format!(
                "the process of {} (pid {pid}) is stopped, by SIGSTOP or a debugger: it neither sends nor reads",
                node.node
            ),
            format!("resume it: kill -CONT {pid}"),
        );
    }
    findings.0
}

/// Reports nodes with callbacks that panicked and are disabled until the node exits, and nodes whose
/// callbacks, timers or handlers failed between the two snapshots and continue.
fn callback_problems(findings: &mut Findings, before: &Snapshot, now: &Snapshot, interval_s: f64) {
    for node in &now.nodes {
        let earlier = before.nodes.iter().find(|earlier| earlier.incarnation == node.incarnation);
        let name = escape_controls(&node.meta.name);
        let dropped = node.dropped_callbacks;
        if dropped > 0 {
            findings.problem(
                "callbacks",
                format!(
                    "{} of {name} panicked and {} not called again",
                    count_text(dropped, "callback"),
                    if dropped == 1 { "is" } else { "are" }
                ),
                format!("rnet log --node {name} shows each panic; restart the node after fixing the cause"),
            );
        }
        let before = earlier.map_or((0, 0), |n| (n.callback_errors, n.dropped_callbacks));
        let failed = (node.callback_errors.saturating_sub(before.0))
            .saturating_sub(dropped.saturating_sub(before.1));
        if failed > 0 {
            findings.problem(
                "callbacks",
                format!(
                    "callbacks of {name} failed {} in {interval_s:.1} s, {} so far, with an exception or a panic",
                    count_text(failed, "time"),
                    node.callback_errors
                ),
                format!("rnet log --node {name} shows each one with its traceback"),
            );
        }
    }
}

fn topic_problems(findings: &mut Findings, topic: &TopicRow, interval_s: f64) {
    let name = &topic.topic;
    if topic.lost_in_interval > 0 {
        findings.problem(
            "loss",
            format!(
                "{} of {name} {} lost in {interval_s:.1} s; so far: {}",
                count_text(topic.lost_in_interval, "message"),
                if topic.lost_in_interval == 1 { "was" } else { "were" },
                topic.lost
            ),
            format!("rnet topic info {name} shows which subscriber lost them, and why"),
        );
    }
    if topic.missed_in_interval > 0 {
        findings.problem(
            "deadline",
            format!(
                "no message arrived on {name} in {} deadline periods in {interval_s:.1} s",
                topic.missed_in_interval
            ),
            "check whether the publisher is slow or stopped, or set a longer deadline for the topic",
        );
    }
}
