//! Short texts for quality of service.

use rnet::{Durability, Lane, Liveliness, PublisherQos, Reliability, SubscriberQos};

/// `reliable, urgent, keeps 1, deadline 5ms`.
pub fn of_publisher(qos: &PublisherQos) -> String {
    let mut words = vec![reliability(qos.reliability).to_owned(), lane(qos.lane).to_owned()];
    if let Durability::TransientLocal { depth } = qos.durability {
        words.push(format!("keeps {depth}"));
    }
    words.extend(qos.lifespan.map(|lifespan| format!("lifespan {lifespan:?}")));
    promises(&mut words, qos.deadline, qos.liveliness);
    words.join(", ")
}

/// `reliable, newest 1, with history, deadline 5ms`.
pub fn of_subscriber(qos: &SubscriberQos) -> String {
    let mut words = vec![reliability(qos.reliability).to_owned()];
    words.extend(qos.lane.map(|of| lane(of).to_owned()));
    words.extend(qos.depth().map(|depth| format!("newest {depth}")));
    if qos.transient_local {
        words.push("with history".to_owned());
    }
    promises(&mut words, qos.deadline, qos.liveliness);
    words.join(", ")
}

fn reliability(of: Reliability) -> &'static str {
    match of {
        Reliability::BestEffort => "best effort",
        Reliability::Reliable => "reliable",
    }
}

fn lane(of: Lane) -> &'static str {
    match of {
        Lane::Urgent => "urgent",
        Lane::Bulk => "bulk",
    }
}

fn promises(
    words: &mut Vec<String>,
    deadline: Option<std::time::Duration>,
    liveliness: Liveliness,
) {
    words.extend(deadline.map(|deadline| format!("deadline {deadline:?}")));
    words.extend(liveliness.lease().map(|lease| format!("lease {lease:?}")));
}
