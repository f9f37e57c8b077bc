//! Data read from topics that a page shows.
//!
//! One thread follows all of them as an observer. It polls a few hundred times a second, and no publisher
//! wakes it. Topics without subscriptions are not read. Each subscription is a [`TopicSink`], which extracts
//! what it needs from a message.

mod buckets;
mod cloud;
mod commands;
mod image;
mod logs;
mod messages;
mod picture;
mod pixels;
mod plot;
mod ros2;
mod scan;
mod sink;
mod tf;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rnet::inspect::{Follower, Observed, ObservedMessage, PublisherInfo, Stamp};
use rnet::{Durability, Subscription, TypeDesc};
use rnet_monitor::link::host_of;

pub use buckets::Buckets;
pub use cloud::cloud;
pub use commands::{CommandLogSink, CommandsSink, is_status};
pub use image::image;
pub use logs::{Filter, LogsSink};
pub use messages::MessagesSink;
pub use picture::{EncodePicture, PictureSink};
pub use plot::PlotSink;
pub use scan::scan;
pub use sink::{TopicFilter, TopicSink};
pub use tf::{TfSink, is_transform};

use crate::app_state::{AppState, Registration, Registrations, lock};
use crate::operations::{Operations, OperatorNode};
use crate::times::unix_s;
use sink::RateLimiter;

/// Interval between two calls in which sinks may send data.
const TICK_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of messages read before sinks are called, at a high rate.
const MESSAGES_PER_BATCH: u32 = 4_096;
/// Maximum number of publishers whose last message a subscription remembers.
const MAX_PUBLISHERS: usize = 256;
/// Delay before the domain is opened again after an error.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Checks per second for new topics of other hosts.
const SUBSCRIBE_HZ: f64 = 5.0;

/// A subscription of a page to topics.
pub struct TopicSubscription {
    wants: TopicFilter,
    sink: Box<dyn TopicSink>,
    /// The number of the last message by publisher. Messages kept for late joiners are read again for each
    /// new subscription, and must not be repeated to the others.
    seen: Vec<(u64, u64)>,
}

impl TopicSubscription {
    pub fn new(wants: TopicFilter, sink: Box<dyn TopicSink>) -> TopicSubscription {
        TopicSubscription { wants, sink, seen: Vec::new() }
    }

    fn message(&mut self, observed: &ObservedMessage<'_>, bytes: &[u8], sent_s: f64) {
        let Stamp { publisher, seq, .. } = observed.stamp;
        match self.seen.iter_mut().find(|(of, _)| *of == publisher) {
            Some((_, last)) if seq <= *last => return,
            Some((_, last)) => {
                let missed = seq - std::mem::replace(last, seq) - 1;
                if missed > 0 {
                    self.sink.missed(missed);
                }
            }
            None => {
                if self.seen.len() == MAX_PUBLISHERS {
                    self.seen.remove(0);
                }
                self.seen.push((publisher, seq));
            }
        }
        self.sink.message(observed, bytes, sent_s);
    }
}

/// Topics that are read until the guard is dropped.
pub type TopicReader = Registrations<TopicSubscription>;

type Sinks = Vec<Registration<TopicSubscription>>;
type SharedFilters = Arc<Mutex<Vec<TopicFilter>>>;

/// Topics with publishers of other hosts, whose messages cross only if a subscriber exists: their types and
/// subscriptions.
type RemoteTopics = Arc<Mutex<BTreeMap<String, (TypeDesc, Option<Subscription>)>>>;

/// The reading thread.
pub fn run(reader: &TopicReader, operations: &Operations) {
    let app = operations.app();
    let mut sinks = Sinks::new();
    let (wants, remote) = (SharedFilters::default(), RemoteTopics::default());
    let mut follow: Option<Follower> = None;
    let mut rate_limiter = RateLimiter::new(SUBSCRIBE_HZ);
    while !app.is_stopped() {
        let known = sinks.len();
        if reader.take(app, &mut sinks) || !sinks.iter().all(Registration::is_active) {
            let new: Vec<TopicFilter> =
                sinks[known..].iter().map(|of| of.item.wants.clone()).collect();
            sinks.retain(Registration::is_active);
            *lock(&wants) = sinks.iter().map(|of| of.item.wants.clone()).collect();
            if sinks.is_empty() {
                // Without subscriptions, nothing is followed.
                follow = None;
                lock(&remote).clear();
                continue;
            }
            if let Some(follow) = &mut follow {
                let wants = lock(&wants);
                let takes =
                    |topic: &str, desc: &TypeDesc| wants.iter().any(|w| w.matches(topic, desc));
                follow.reselect(|topic, desc, qos| {
                    // Follows the publisher again from its kept messages, for new subscriptions.
                    let keeps = matches!(qos.durability, Durability::TransientLocal { .. });
                    takes(topic, desc) && !(keeps && new.iter().any(|w| w.matches(topic, desc)))
                });
                lock(&remote).retain(|topic, (desc, _)| takes(topic, desc));
            }
        }
        if follow.is_none() {
            follow = open(app, &wants, &remote);
        }
        let Some(following) = &mut follow else {
            tick(&mut sinks);
            std::thread::sleep(TICK_INTERVAL);
            continue;
        };
        match read_messages(following, &mut sinks) {
            Ok(true) => {}
            Ok(false) => following.wait(TICK_INTERVAL),
            Err(_) => {
                follow = None;
                reader.pause(app, RETRY_DELAY);
            }
        }
        if rate_limiter.take(Instant::now()) {
            subscribe_remote_topics(&operations.operator, &remote);
        }
    }
}

fn open(app: &AppState, wants: &SharedFilters, remote: &RemoteTopics) -> Option<Follower> {
    let (wants, remote) = (wants.clone(), remote.clone());
    let takes = move |info: &PublisherInfo| {
        let takes = lock(&wants).iter().any(|w| w.matches(&info.topic, &info.type_desc));
        if takes && host_of(&info.node).0.is_some() {
            lock(&remote).entry(info.topic.clone()).or_insert((info.type_desc.clone(), None));
        }
        takes
    };
    let domain = app.options.location.domain().ok()?;
    Some(Follower::matching(domain, true, takes))
}

/// Subscribes to topics of other hosts; pages show what the observer sees.
fn subscribe_remote_topics(operator: &OperatorNode, remote: &RemoteTopics) {
    for (topic, (_, held)) in lock(remote).iter_mut().filter(|(_, (_, held))| held.is_none()) {
        *held = operator.subscribe_remote(topic).ok();
    }
}

/// Reads available messages, up to a limit; returns whether there may be more.
fn read_messages(follow: &mut Follower, sinks: &mut Sinks) -> rnet::Result<bool> {
    let offset_ns = rnet::wall_offset().offset_ns;
    let mut bytes = Vec::new();
    let mut left = MESSAGES_PER_BATCH;
    while left > 0 {
        left -= 1;
        match follow.poll_all(&mut bytes)? {
            None => break,
            Some(Observed::Message(observed)) => {
                let sent_s = unix_s(observed.stamp.sent_ns, offset_ns);
                for of in sinks.iter_mut().map(|of| &mut of.item) {
                    if of.wants.matches(observed.topic, observed.type_desc) {
                        of.message(&observed, &bytes, sent_s);
                    }
                }
            }
            // The sequence number of the next message reveals the loss.
            Some(Observed::Missed { .. }) => {}
        }
    }
    follow.take_events();
    tick(sinks);
    Ok(left == 0)
}

fn tick(sinks: &mut Sinks) {
    let (now, now_s) = (Instant::now(), unix_s(rnet::now_ns(), rnet::wall_offset().offset_ns));
    sinks.iter_mut().for_each(|of| of.item.sink.tick(now, now_s));
}
