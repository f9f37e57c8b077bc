//! May these two talk? The questions that publisher and subscriber ask of each other, the same on
//! both sides.

use rnet_core::{
    CallPart, Error, Lane, Reliability, Result, TypeDesc, TypeMismatch, qos_compatible,
    types_compatible,
};
use rnet_schema::Schema;
use rnet_shm::channel::publisher::PublisherMeta;
use rnet_shm::channel::subscription::{LinkRole, PeerBinding, SubscriptionMeta};
use rnet_shm::ring::binding::HistoryRequest;

/// What an endpoint says of its protobuf type.
pub enum PeerType {
    /// Its type; `None` if it is no protobuf message, or nobody needs to know.
    Type(Option<Schema>),
    /// It names one whose description is no type, in words.
    Unreadable(String),
}

/// Whether a subscriber of one type understands what a publisher of the other sends.
pub fn check_types(
    publisher: (&TypeDesc, &PeerType),
    subscriber: (&TypeDesc, &PeerType),
) -> std::result::Result<(), TypeMismatch> {
    match (publisher, subscriber) {
        ((_, PeerType::Type(Some(writer))), (_, PeerType::Type(Some(reader)))) => {
            let verdict = rnet_schema::check(writer, reader);
            match verdict.first_breaking().filter(|_| !verdict.compatible) {
                None => Ok(()),
                Some(change) => Err(TypeMismatch {
                    field_path: change.path.clone(),
                    publisher: or_nothing(&change.writer),
                    subscriber: or_nothing(&change.reader),
                }),
            }
        }
        // A subscriber of raw bytes takes everything.
        (_, (TypeDesc::Raw, _)) => Ok(()),
        ((p, PeerType::Unreadable(why)), (s, _)) => {
            let publisher = format!("{p}, which cannot be read: {why}");
            Err(TypeMismatch { field_path: String::new(), publisher, subscriber: s.to_string() })
        }
        ((p, _), (s, PeerType::Unreadable(why))) => {
            let subscriber = format!("{s}, which cannot be read: {why}");
            Err(TypeMismatch { field_path: String::new(), publisher: p.to_string(), subscriber })
        }
        ((p, _), (s, _)) => types_compatible(p, s).map(drop),
    }
}

fn or_nothing(text: &str) -> String {
    if text.is_empty() { "nothing".to_owned() } else { text.to_owned() }
}

/// Whether a publisher and a subscription fit, by type and quality of service.
pub fn check_compatible(
    (publisher, writes): (&PublisherMeta, &PeerType),
    (subscriber, reads): (&SubscriptionMeta, &PeerType),
    publisher_node: &str,
    subscriber_node: &str,
) -> Result<()> {
    let (publisher_node, subscriber_node) = (publisher_node.to_owned(), subscriber_node.to_owned());
    let call = CallPart::of_topic(&publisher.topic);
    let topic = call.map_or(&*publisher.topic, |(service, _)| service).to_owned();
    let types = ((&publisher.type_desc, writes), (&subscriber.type_desc, reads));
    if let Err(detail) = check_types(types.0, types.1) {
        let detail = Box::new(detail);
        let part = call.map(|(_, part)| part);
        return Err(Error::IncompatibleType {
            topic,
            part,
            publisher_node,
            subscriber_node,
            detail,
        });
    }
    qos_compatible(&publisher.qos, &subscriber.qos).map_err(|why| Error::IncompatibleQos {
        topic,
        publisher_node,
        subscriber_node,
        why,
    })
}

/// A topic has one lane: `first`, that of the first publisher that a subscription matched.
pub fn check_same_lane(
    first: Option<Lane>,
    publisher: &PublisherMeta,
    publisher_node: &str,
    subscriber_node: &str,
) -> Result<()> {
    let word = |lane| if lane == Lane::Urgent { "urgent" } else { "bulk" };
    match first {
        Some(lane) if lane != publisher.qos.lane => Err(Error::IncompatibleQos {
            topic: publisher.topic.clone(),
            publisher_node: publisher_node.to_owned(),
            subscriber_node: subscriber_node.to_owned(),
            why: format!(
                "another publisher of this topic uses the {} lane, this one uses {}: use one lane \
                 per topic",
                word(lane),
                word(publisher.qos.lane)
            ),
        }),
        _ => Ok(()),
    }
}

/// The binding within what both sides have declared: the page is the subscriber's to write, and
/// must not get more of the publisher than was checked.
pub fn limit_binding(
    publisher: &PublisherMeta,
    subscriber: &SubscriptionMeta,
    binding: PeerBinding,
) -> PeerBinding {
    let reliable = |reliability| reliability == Reliability::Reliable;
    let both = reliable(publisher.qos.reliability) && reliable(subscriber.qos.reliability);
    let history = match HistoryRequest::from_word(binding.history) {
        HistoryRequest::Newest(count) => HistoryRequest::Newest(count.min(publisher.qos.history())),
        HistoryRequest::From(seq) if matches!(subscriber.link, Some(LinkRole::Forwards(_))) => {
            HistoryRequest::From(seq)
        }
        HistoryRequest::From(_) => HistoryRequest::Newest(0),
    };
    let reads = !subscriber.is_passive();
    PeerBinding {
        reliable: reads && binding.reliable && both,
        history: if reads { history.to_word() } else { 0 },
        ..binding
    }
}
