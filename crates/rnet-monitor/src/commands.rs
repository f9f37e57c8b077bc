//! Checks commands: missing, silent, unsafe or conflicting receivers, and drivers without authority.

use std::collections::BTreeSet;

use rnet::inspect::{PublisherInfo, Snapshot};
use rnet::msgs::CommandStatus;
use rnet::msgs::command_status::{Reason, State};

use crate::findings::Findings;
use crate::link::last_message;
use crate::process::Process;
use rnet_format::text::escape_controls;
use rnet_format::value::enum_word;

const CHECK: &str = "command";
/// Names of separate checks for receivers, so that metrics can count them.
const FALLBACK_FAILED: &str = "fallback_failed";
const NO_ANSWER: &str = "no_answer";
/// A driver without authority for this long has lost it, and does not regain it by itself.
const LOST_AUTHORITY_NS: u64 = 10_000_000_000;

/// Checks all commands, or one.
pub fn check_commands(
    findings: &mut Findings,
    snapshot: &Snapshot,
    asked: Option<&str>,
    now_ns: u64,
) {
    let published = snapshot.publishers.iter().map(|publisher| publisher.topic.as_str());
    let subscribed = snapshot.subscriptions.iter().map(|subscription| subscription.topic.as_str());
    let topics: BTreeSet<&str> =
        published.chain(subscribed).filter_map(rnet::command_of_status).collect();
    for topic in topics.into_iter().filter(|topic| asked.is_none_or(|asked| asked == *topic)) {
        let receivers = publishers(snapshot, &rnet::command_status_topic(topic));
        let drivers = drivers(snapshot, topic);
        let last: Vec<_> =
            receivers.iter().map(|receiver| last_message::<CommandStatus>(receiver)).collect();
        for (receiver, last) in receivers.iter().zip(&last) {
            let status = last.as_ref().map(|(status, _)| status);
            check_receiver(findings, snapshot, (topic, receiver), status);
        }
        match receivers.as_slice() {
            [] => drivers.iter().for_each(|driver| report_no_receiver(findings, topic, driver)),
            // The status of a remote receiver names drivers from the perspective of its host, so it is not
            // checked here.
            [receiver] if receiver.via.is_some() => {}
            [_] => {
                if let Some(Some(last)) = last.first() {
                    check_authority(findings, topic, last, &drivers, now_ns);
                }
            }
            many => {
                let nodes: Vec<_> = many.iter().map(|of| of.node.as_str()).collect();
                let (n, nodes) = (nodes.len(), nodes.join(" and "));
                findings.problem(
                    CHECK,
                    format!("{topic} has {n} receivers, in {nodes}: each follows its own driver"),
                    "close all but one; two receivers result if each was opened while the hosts were \
                     disconnected",
                );
            }
        }
    }
}

fn publishers<'a>(snapshot: &'a Snapshot, topic: &str) -> Vec<&'a PublisherInfo> {
    snapshot.publishers.iter().filter(|publisher| publisher.topic == topic).collect()
}

/// Whether the receiver has fallen back, and its fallback, which should make the robot safe, has failed.
pub fn has_failed(status: &CommandStatus) -> bool {
    status.state() == State::Fallback && status.fallback_failed
}

/// A receiver on this host that does not answer.
#[derive(Debug)]
pub struct SilentReceiver<'a> {
    /// The topic of its command.
    pub command: &'a str,
    /// Its node.
    pub node: &'a str,
    /// The id of its stopped process; `None` if it runs, but has sent no status since it was opened.
    stopped: Option<u32>,
}

/// The receivers of the domain that do not answer. Processes of other hosts or containers cannot be checked.
pub fn silent_receivers(snapshot: &Snapshot) -> Vec<SilentReceiver<'_>> {
    let found = snapshot.publishers.iter().filter_map(|receiver| {
        let command = rnet::command_of_status(&receiver.topic)?;
        silent_receiver(snapshot, command, receiver)
    });
    found.collect()
}

fn silent_receiver<'a>(
    snapshot: &Snapshot,
    command: &'a str,
    receiver: &'a PublisherInfo,
) -> Option<SilentReceiver<'a>> {
    if receiver.via.is_some() {
        return None;
    }
    let of_node = |node: &&rnet::inspect::NodeInfo| node.meta.name == receiver.node;
    let node = snapshot.nodes.iter().find(of_node)?;
    let here = Some(node.meta.pid).filter(|_| node.meta.is_in_our_pid_namespace());
    let stopped = here.filter(|pid| Process::read(*pid).is_some_and(Process::is_stopped));
    (stopped.is_some() || receiver.sent == 0).then_some(SilentReceiver {
        command,
        node: &receiver.node,
        stopped,
    })
}

fn check_receiver(
    findings: &mut Findings,
    snapshot: &Snapshot,
    (topic, receiver): (&str, &PublisherInfo),
    status: Option<&CommandStatus>,
) {
    // A status sent since the snapshot counts.
    let is_silent = |of: &SilentReceiver<'_>| of.stopped.is_some() || status.is_none();
    if let Some(SilentReceiver { node, stopped, .. }) =
        silent_receiver(snapshot, topic, receiver).filter(is_silent)
    {
        let (why, advice) = match stopped {
            Some(pid) => (
                format!("its process {pid} is stopped, so it neither follows a driver nor falls back"),
                format!("stop the robot by other means, then resume the process: kill -CONT {pid}"),
            ),
            None => (
                "it has sent no status since it was opened, which happens if its fallback does not return"
                    .to_owned(),
                format!(
                    "stop the robot by other means, then check what the fallback of {topic} waits for"
                ),
            ),
        };
        let what = format!("{node}, the receiver of {topic}, does not answer: {why}");
        findings.problem(NO_ANSWER, what, advice);
    }
    if status.is_some_and(has_failed) {
        let node = &receiver.node;
        findings.problem(
            FALLBACK_FAILED,
            format!(
                "{node} has fallen back on {topic}, and its fallback FAILED: the robot may not be safe"
            ),
            format!(
                "stop the robot by other means, then fix the fallback of {topic}: rnet command log {topic} \
                 shows when it failed"
            ),
        );
    }
}

/// The nodes that publish the command and subscribe to its status, as drivers do.
fn drivers<'a>(snapshot: &'a Snapshot, topic: &str) -> BTreeSet<&'a str> {
    let status = rnet::command_status_topic(topic);
    let subscribes =
        |node: &str| snapshot.subscriptions.iter().any(|s| s.topic == status && s.node == node);
    let sending = publishers(snapshot, topic).into_iter().map(|publisher| publisher.node.as_str());
    sending.filter(|node| subscribes(node)).collect()
}

fn report_no_receiver(findings: &mut Findings, topic: &str, driver: &str) {
    findings.problem(
        CHECK,
        format!("{driver} drives {topic}, which has no receiver"),
        format!("start the node that receives the command {topic}"),
    );
}

fn check_authority(
    findings: &mut Findings,
    topic: &str,
    (status, sent_ns): &(CommandStatus, u64),
    drivers: &BTreeSet<&str>,
    now_ns: u64,
) {
    let since_ns = now_ns.saturating_sub(*sent_ns);
    if since_ns < LOST_AUTHORITY_NS {
        return;
    }
    let (holder, since_s) = (escape_controls(&status.holder), since_ns / 1_000_000_000);
    for driver in drivers.iter().filter(|driver| **driver != status.holder) {
        if holder.is_empty() {
            findings.problem(
                CHECK,
                format!("{driver} drives {topic} without authority; no driver has had authority for \
                         {since_s} s"),
                format!(
                    "let {driver} retake authority, which it does not regain automatically; rnet command \
                     log {topic} shows how it was lost"
                ),
            );
        } else {
            let priority = status.priority;
            findings.note(
                CHECK,
                format!(
                    "{driver} has no authority over {topic}: {holder} has had it with priority {priority} \
                     for {since_s} s"
                ),
            );
        }
    }
}

/// The state of a receiver, in words.
pub fn state_text(status: &CommandStatus) -> String {
    match has_failed(status) {
        true => "FALLBACK FAILED".to_owned(),
        false => enum_word(status.state().as_str_name()),
    }
}

/// Why a receiver is in its state, in words.
pub fn reason_text(status: &CommandStatus) -> &'static str {
    match status.reason() {
        Reason::Unspecified => "",
        Reason::Opened => "it was opened",
        Reason::Granted => "authority was granted",
        Reason::Deadline => "no command came within the deadline",
        Reason::Expired => "the driver's lease expired",
        Reason::Released => "the driver released its authority",
        Reason::DriverLost => "the driver is gone",
        Reason::Preempted => "a driver of a higher priority took authority",
        Reason::Overrun => "a command took longer to apply than the deadline",
        Reason::Panicked => "the receiver's code panicked",
        Reason::Closed => "it was closed",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rnet::FallbackReason;
    use rnet::Node;
    use rnet::inspect::Domain;

    use super::*;
    use crate::findings::Level;

    const SOON: Duration = Duration::from_secs(30);

    struct TestEnv(std::path::PathBuf);

    impl TestEnv {
        fn node(&self, name: &str) -> Node {
            Node::builder(name).dir(&self.0).state_dir(&self.0).domain("c").open().unwrap()
        }

        /// The only finding if it is checked `later_s` seconds from now.
        fn found(&self, later_s: u64) -> Option<(Level, String)> {
            let snapshot =
                Domain::open(Some("c"), Some(self.0.clone()), None).unwrap().snapshot().unwrap();
            let mut findings = Findings::default();
            check_commands(
                &mut findings,
                &snapshot,
                None,
                rnet::now_ns() + later_s * 1_000_000_000,
            );
            assert!(findings.0.len() < 2, "{findings:?}");
            findings.0.into_iter().map(|finding| (finding.level, finding.what)).next()
        }
    }

    impl Drop for TestEnv {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn test_env(name: &str) -> TestEnv {
        let dir = format!("/dev/shm/rnet-monitor-commands-{name}-{}", std::process::id());
        std::fs::create_dir_all(&dir).unwrap();
        TestEnv(dir.into())
    }

    fn wait_for_state(command: &rnet::Command, state: State) {
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while command.status().state() != state {
            assert!(std::time::Instant::now() < until, "{:?}", command.status());
            std::thread::yield_now();
        }
    }

    #[test]
    fn reports_drivers_without_authority_for_long() {
        let env = test_env("drivers");
        let (base, low, high) = (env.node("base"), env.node("low"), env.node("high"));
        let hour = Duration::from_secs(3600);
        let command = base.command::<[u8]>("/cmd").fallback_hold().apply(|_| {}).unwrap();
        let drive = |node: &Node, priority| {
            node.drive::<[u8]>("/cmd").priority(priority).lease(hour).timeout(SOON).take().unwrap()
        };
        let _low = drive(&low, 1);
        assert_eq!(env.found(0), None);
        assert_eq!(env.found(60), None, "it has authority");
        let high = drive(&high, 2);
        assert_eq!(env.found(0), None, "not for long");
        let Some((Level::Note, what)) = env.found(60) else { panic!("a finding") };
        assert!(what.starts_with("/low has no authority over /cmd: /high has"), "{what}");
        high.release().unwrap();
        let Some((Level::Problem, what)) = env.found(60) else { panic!("a finding") };
        assert!(what.starts_with("/low drives /cmd without authority; no driver"), "{what}");
        drop(command);
        let Some((Level::Problem, what)) = env.found(0) else { panic!("a finding") };
        assert_eq!(what, "/low drives /cmd, which has no receiver");
    }

    #[test]
    fn reports_failed_fallback_until_receiver_is_in_force() {
        let env = test_env("failed");
        let (base, pilot) = (env.node("base"), env.node("pilot"));
        let deadline = Duration::from_secs(3600);
        let command = base.command::<[u8]>("/cmd").deadline(deadline);
        let fallback = |why| assert!(why == FallbackReason::Opened, "on purpose");
        let command = command.fallback_handler(fallback).apply(|_| {}).unwrap();
        let mut driver = pilot.drive::<[u8]>("/cmd").lease(deadline).timeout(SOON).take().unwrap();
        driver.send(b"go").unwrap();
        wait_for_state(&command, State::InForce);
        driver.release().unwrap();
        // Its status follows shortly after the fallback.
        let fails = "/base has fallen back on /cmd, and its fallback FAILED";
        let until = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            let found = env.found(0);
            if found.as_ref().is_some_and(|(_, what)| what.starts_with(fails)) {
                break;
            }
            assert!(std::time::Instant::now() < until, "{found:?} {:?}", command.status());
        }
        let mut driver = pilot.drive::<[u8]>("/cmd").lease(deadline).timeout(SOON).take().unwrap();
        driver.send(b"go").unwrap();
        wait_for_state(&command, State::InForce);
        assert_eq!(env.found(0), None, "the command that is applied now is the driver's");
    }

    #[test]
    fn reports_silent_receiver() {
        let env = test_env("mute");
        let base = env.node("base");
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let command = base.command::<[u8]>("/cmd").fallback_handler(move |_| {
            let _ = ended.recv();
        });
        let command = command.apply(|_| {}).unwrap();
        let Some((Level::Problem, what)) = env.found(0) else { panic!("a finding") };
        assert!(what.starts_with("/base, the receiver of /cmd, does not answer"), "{what}");
        drop(end);
        wait_for_state(&command, State::Fallback);
        assert_eq!(env.found(0), None);
    }

    #[test]
    fn reports_two_receivers() {
        let env = test_env("receivers");
        let (base, other) = (env.node("base"), env.node("other"));
        let command = base.command::<[u8]>("/cmd").fallback_hold().apply(|_| {}).unwrap();
        wait_for_state(&command, State::Fallback);
        // Like a receiver that was opened while the link was cut.
        let status = rnet::command_status_topic("/cmd");
        let mut status =
            other.publisher::<CommandStatus>(&status).urgent().transient_local(1).open().unwrap();
        status.send(&CommandStatus::default()).unwrap();
        let Some((Level::Problem, what)) = env.found(0) else { panic!("a finding") };
        assert!(what.starts_with("/cmd has 2 receivers, in /"), "{what}");
    }
}
