//! Commands: receivers that are too many or missing, and drivers that nobody obeys.

use std::collections::BTreeSet;

use prost::Message;
use rnet::inspect::{Observer, PublisherInfo, Seen, Snapshot};
use rnet::msgs::CommandStatus;

use crate::findings::Findings;
use crate::text::tame;

const CHECK: &str = "command";
/// A driver that has had no authority for so long has lost it, and does not get it back by itself.
const LONG_NS: u64 = 10_000_000_000;

/// Looks at all commands, or at one.
pub fn commands(findings: &mut Findings, snapshot: &Snapshot, asked: Option<&str>, now_ns: u64) {
    let said = snapshot.publishers.iter().map(|publisher| publisher.topic.as_str());
    let heard = snapshot.subscriptions.iter().map(|subscription| subscription.topic.as_str());
    let topics: BTreeSet<&str> = said.chain(heard).filter_map(rnet::command_of_status).collect();
    for topic in topics.into_iter().filter(|topic| asked.is_none_or(|asked| asked == *topic)) {
        let receivers = publishers(snapshot, &rnet::command_status_topic(topic));
        let drivers = drivers(snapshot, topic);
        match receivers.as_slice() {
            [] => drivers.iter().for_each(|driver| no_receiver(findings, topic, driver)),
            [receiver] => authority(findings, (topic, receiver), &drivers, now_ns),
            many => {
                let nodes: Vec<_> = many.iter().map(|of| of.node.as_str()).collect();
                let (n, nodes) = (nodes.len(), nodes.join(" and "));
                findings.problem(
                    CHECK,
                    format!("{topic} has {n} receivers, in {nodes}: each obeys a driver of its own"),
                    "close all but one; both stay where they were opened on two sides of a cut cable",
                );
            }
        }
    }
}

fn publishers<'a>(snapshot: &'a Snapshot, topic: &str) -> Vec<&'a PublisherInfo> {
    snapshot.publishers.iter().filter(|publisher| publisher.topic == topic).collect()
}

/// The nodes that send commands and hear what the receiver says of itself, as drivers do.
fn drivers<'a>(snapshot: &'a Snapshot, topic: &str) -> BTreeSet<&'a str> {
    let status = rnet::command_status_topic(topic);
    let hears = |node: &str| {
        snapshot.subscriptions.iter().any(|heard| heard.topic == status && heard.node == node)
    };
    let sending = publishers(snapshot, topic).into_iter().map(|publisher| publisher.node.as_str());
    sending.filter(|node| hears(node)).collect()
}

fn no_receiver(findings: &mut Findings, topic: &str, driver: &str) {
    findings.problem(
        CHECK,
        format!("{driver} is to drive {topic}, which has no receiver"),
        format!("start the node that receives the command {topic}"),
    );
}

fn authority(
    findings: &mut Findings,
    (topic, receiver): (&str, &PublisherInfo),
    drivers: &BTreeSet<&str>,
    now_ns: u64,
) {
    // Of another host it names the driver as that host does.
    let Some((status, sent_ns)) = last(receiver).filter(|_| receiver.via.is_none()) else { return };
    let since_ns = now_ns.saturating_sub(sent_ns);
    if since_ns < LONG_NS {
        return;
    }
    let (holder, since_s) = (tame(&status.holder), since_ns / 1_000_000_000);
    for driver in drivers.iter().filter(|driver| **driver != status.holder) {
        if holder.is_empty() {
            findings.problem(
                CHECK,
                format!("{driver} drives {topic} without authority, which nobody has had for {since_s} s"),
                format!(
                    "let {driver} take authority again, which it does not get back by itself; rnet command log {topic} \
                     says how it was lost"
                ),
            );
        } else {
            let priority = status.priority;
            findings.note(
                CHECK,
                format!(
                    "{driver} has no authority over {topic}, which {holder} has with priority {priority}, for {since_s} s"
                ),
            );
        }
    }
}

/// What a receiver has said last, and when.
fn last(receiver: &PublisherInfo) -> Option<(CommandStatus, u64)> {
    let mut observer = Observer::open(receiver.path.clone(), receiver.id, true).ok()?;
    let (mut bytes, mut last) = (Vec::new(), None);
    loop {
        match observer.poll(&mut bytes) {
            Seen::Message(stamp) => {
                let status = CommandStatus::decode(bytes.as_slice()).ok();
                last = status.map(|status| (status, stamp.sent_ns)).or(last);
            }
            Seen::Missed(_) => {}
            _ => return last,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rnet::inspect::Domain;
    use rnet::{Node, PublisherOptions};

    use super::*;
    use crate::findings::Level;

    const SOON: Option<Duration> = Some(Duration::from_secs(30));

    struct Place(std::path::PathBuf);

    impl Place {
        fn node(&self, name: &str) -> Node {
            Node::builder(name).dir(&self.0).state_dir(&self.0).domain("c").open().unwrap()
        }

        /// What alone is found so many seconds from now.
        fn found(&self, later_s: u64) -> Option<(Level, String)> {
            let snapshot =
                Domain::open(Some("c"), Some(self.0.clone()), None).unwrap().snapshot().unwrap();
            let mut findings = Findings::default();
            commands(&mut findings, &snapshot, None, rnet::now_ns() + later_s * 1_000_000_000);
            assert!(findings.0.len() < 2, "{findings:?}");
            findings.0.into_iter().map(|finding| (finding.level, finding.what)).next()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn place(name: &str) -> Place {
        let dir = format!("/dev/shm/rnet-monitor-commands-{name}-{}", std::process::id());
        std::fs::create_dir_all(&dir).unwrap();
        Place(dir.into())
    }

    #[test]
    fn drivers_without_authority_for_long_are_found() {
        let place = place("drivers");
        let (base, low, high) = (place.node("base"), place.node("low"), place.node("high"));
        let hour = Duration::from_secs(3600);
        let command = base.command::<[u8]>("/cmd").fallback_hold().apply(|_| {}).unwrap();
        let drive = |node: &Node, priority| {
            node.drive::<[u8]>("/cmd").priority(priority).lease(hour).take(SOON).unwrap()
        };
        let _low = drive(&low, 1);
        assert_eq!(place.found(0), None);
        assert_eq!(place.found(60), None, "it has authority");
        let high = drive(&high, 2);
        assert_eq!(place.found(0), None, "not for long");
        let Some((Level::Note, what)) = place.found(60) else { panic!("a finding") };
        assert!(what.starts_with("/low has no authority over /cmd, which /high has"), "{what}");
        high.release().unwrap();
        let Some((Level::Problem, what)) = place.found(60) else { panic!("a finding") };
        assert!(what.starts_with("/low drives /cmd without authority, which nobody"), "{what}");
        drop(command);
        let Some((Level::Problem, what)) = place.found(0) else { panic!("a finding") };
        assert_eq!(what, "/low is to drive /cmd, which has no receiver");
    }

    #[test]
    fn two_receivers_are_found() {
        let place = place("receivers");
        let (base, other) = (place.node("base"), place.node("other"));
        let _command = base.command::<[u8]>("/cmd").fallback_hold().apply(|_| {}).unwrap();
        // As one that was opened beyond a cut cable.
        let options = PublisherOptions::new().urgent().transient_local(1);
        let status = rnet::command_status_topic("/cmd");
        let _status = other.publisher_with::<CommandStatus>(&status, options).unwrap();
        let Some((Level::Problem, what)) = place.found(0) else { panic!("a finding") };
        assert!(what.starts_with("/cmd has 2 receivers, in /"), "{what}");
    }
}
