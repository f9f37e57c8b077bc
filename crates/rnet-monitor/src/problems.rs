//! What is wrong now, in words.

use crate::figures::{Figures, Look, TopicRow};
use crate::findings::{Finding, Findings, Level};
use crate::text::tame;
use crate::{health, link, recorders, talk};

/// What is wrong at a look, or has gone wrong since the look before, each with a remedy. What went wrong earlier and is
/// over is not among it: counters say that.
///
/// `rnet status`, `rnet top`, `rnet metrics`, the dashboard and its `/healthz` go by these and no others. What is lost of calls and
/// commands is lost as well, whether or not their topics are shown: `figures` are all that there are between the two.
pub fn problems(before: &Look, look: &Look, figures: &Figures) -> Vec<Finding> {
    let mut findings = Findings::default();
    // A probe that asks about a domain whose name is mistyped must not hear that all is well.
    if let Some(path) = &look.never_made {
        findings.problem(
            "domain",
            format!("no node has joined this domain yet: there is no {}", path.display()),
            "start its nodes, or name another domain; rnet domain list shows those that are there",
        );
    }
    talk::everything(&mut findings, &look.snapshot, None, None);
    if let Some(pid) = look.killed_link {
        link::killed(&mut findings, pid);
    }
    if let Some(status) = &look.link {
        link::moves(&mut findings, status);
        link::peers(&mut findings, status);
        health::clocks(&mut findings, status);
    }
    health::launched(&mut findings, &look.launched);
    for problem in &look.snapshot.problems {
        findings.problem("unreadable", problem.clone(), "restart that node");
    }
    let lasting = |f: &Finding| f.level == Level::Problem || f.check == "lag";
    findings.0.retain(lasting);
    recorders::judge(&mut findings, Some(&before.recorders), &look.recorders, rnet::now_ns());
    for topic in &figures.topics {
        of_topic(&mut findings, topic, figures.interval_s);
    }
    for host in figures.hosts.iter().filter(|host| !host.held_back.is_empty()) {
        let waits = host.held_back.join(", ");
        findings.problem(
            "held_back",
            format!("the way to host {} is full: {} wait", tame(&host.host), tame(&waits)),
            "let less cross (network.topics in robot.toml: rate, newest_only, compression), or read faster there; rnet \
             link status shows what waits for what",
        );
    }
    for node in figures.nodes.iter().filter(|node| node.state == "stopped") {
        findings.problem(
            "stopped",
            format!("the process of {} is stopped (pid {})", node.node, node.pid.unwrap_or(0)),
            "a debugger or SIGSTOP holds it; SIGCONT lets it go on",
        );
    }
    findings.0
}

fn of_topic(findings: &mut Findings, topic: &TopicRow, interval_s: f64) {
    let name = &topic.topic;
    if topic.lost_in_interval > 0 {
        findings.problem(
            "loss",
            format!(
                "{} messages of {name} were lost in {interval_s:.1} s; so far: {}",
                topic.lost_in_interval, topic.lost
            ),
            format!("rnet topic info {name} shows which subscriber lost them, and by which cause"),
        );
    }
    if topic.missed_in_interval > 0 {
        findings.problem(
            "deadline",
            format!(
                "nothing came on {name} in {} periods of its deadline in {interval_s:.1} s",
                topic.missed_in_interval
            ),
            "look whether the publisher is slowed or stopped, or give the topic a longer deadline",
        );
    }
}
