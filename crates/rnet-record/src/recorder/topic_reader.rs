//! The reader thread: reads published messages into the queue. It does nothing else, because a log has
//! limited capacity.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet::Node;
use rnet::inspect::{
    Domain, FollowEvent, Follower, Location, Observed, ObservedMessage, UnreadPublisher,
};

use super::item::{Item, MissedMessages, Publisher, ReceivedMessage};
use super::loss::RecordLossCause;
use super::options::{RecordOptions, resolve_location};
use super::progress::Shared;
use super::queue::{LARGE_LEN_BYTES, Queue};
use super::remote_subscriptions::RemoteSubscriptions;
use super::selection::host_and_node;
use super::state_follower;
use super::status_report::StatusReport;
use crate::error::Result;
use crate::source::Source;

/// Interval between two checks for new nodes, gone publishers and a new state store.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between two checks whether the topic of `--while` has a publisher.
const GATE_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between two checks while the queue is full.
const FULL_PAUSE: Duration = Duration::from_millis(1);
/// Maximum time after the end for reading messages sent before the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Messages between two checks of the clock at a high rate.
const MESSAGES_PER_CLOCK: u32 = 256;
/// Maximum entries and bytes of a batch.
const MAX_BATCH_ENTRIES: usize = 256;
const MAX_BATCH_BYTES: usize = 256 << 10;

pub struct TopicReader {
    follow: Follower,
    location: Location,
    own_host: String,
    publishers: HashMap<u64, Arc<Publisher>>,
    queue: Arc<Queue<Item>>,
    /// The next entries to queue, and their bytes: the result of a poll, or a part of it.
    batch: (Vec<Item>, usize),
    shared: Arc<Shared>,
    options: RecordOptions,
    /// Followed topics of other hosts that are not subscribed to yet.
    remote: Arc<Mutex<BTreeSet<String>>>,
    remote_subscriptions: RemoteSubscriptions,
    node: Option<Arc<Node>>,
    state_thread: Option<JoinHandle<()>>,
    is_state_ended: Arc<AtomicBool>,
    /// The domain and topic of `--while`, and when they were last checked.
    gate: Option<(Domain, String, Instant)>,
    /// Whether the queue was full since the log was last read completely.
    was_queue_full: bool,
    checked_at: Option<Instant>,
    nodes: BTreeMap<String, String>,
    status_report: StatusReport,
}

impl TopicReader {
    pub fn new(
        options: RecordOptions,
        queue: Arc<Queue<Item>>,
        shared: Arc<Shared>,
    ) -> Result<Self> {
        let location = resolve_location(&options.location)?;
        let own_host = options.host();
        let remote = Arc::new(Mutex::new(BTreeSet::new()));
        let (selection, host, found) =
            (options.selection.clone(), own_host.clone(), remote.clone());
        let follow = Follower::matching(location.domain()?, true, move |publisher| {
            let takes = selection.includes(publisher, &host);
            if takes && publisher.via.is_some() {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.insert(publisher.topic.clone());
            }
            takes
        });
        let gate = match &options.while_topic {
            None => None,
            Some(topic) => Some((location.domain()?, topic.clone(), Instant::now())),
        };
        Ok(Self {
            status_report: StatusReport::new(&options.command_line, options.buffer_len_bytes),
            follow,
            location,
            own_host,
            publishers: HashMap::new(),
            queue,
            batch: Default::default(),
            shared,
            options,
            remote,
            remote_subscriptions: RemoteSubscriptions::default(),
            node: None,
            state_thread: None,
            is_state_ended: Arc::default(),
            gate,
            was_queue_full: false,
            checked_at: None,
            nodes: BTreeMap::new(),
        })
    }

    /// Starts following: messages sent from now on are seen.
    pub fn begin(&mut self) -> Result<()> {
        // The first poll finds the existing publishers and the messages that they keep, and must not lose a
        // message it finds.
        let mut bytes = Vec::new();
        self.enqueue_next(&mut bytes, None)?;
        self.check_domain()?;
        self.update_gate(true)?;
        self.flush_batch();
        Ok(())
    }

    /// Follows until it is stopped, or the time is over.
    pub fn run(mut self) -> Result<()> {
        let followed = self.follow_all();
        self.handle_events();
        // Publishers that cannot be followed yet will not become readable any more.
        let never: Vec<UnreadPublisher> = self.follow.unread().cloned().collect();
        never.into_iter().for_each(|unheard| self.unheard(unheard));
        self.flush_batch();
        if self.shared.progress().followed == 0 {
            let asked = self.options.selection.to_string();
            let seen = self.shared.progress().unheard.total();
            self.shared.note(match seen {
                0 => format!("no publisher was followed: none {asked}was found"),
                // The topic of an unreadable publisher is unknown.
                seen => format!("no publisher was followed; found but not received: {seen}"),
            });
        }
        self.is_state_ended.store(true, Ordering::Release);
        // It exits within about a second, unless it has panicked; then its keys are no longer recorded.
        if let Some(Err(_)) = self.state_thread.take().map(JoinHandle::join) {
            self.shared.note("the state is no longer recorded: its thread panicked".to_owned());
        }
        let skipped = self.shared.progress().skipped_values;
        if skipped > 0 {
            self.shared.note(format!(
                "{skipped} state values are not recorded: they were overwritten before they were read"
            ));
        }
        followed
    }

    fn follow_all(&mut self) -> Result<()> {
        let ends = self.options.duration.and_then(|time| Instant::now().checked_add(time));
        let (mut bytes, mut until_clock) = (Vec::new(), 0);
        let mut stopped: Option<(Instant, u64)> = None;
        loop {
            if self.queue.is_full(self.batch.1) {
                self.was_queue_full = true;
                self.flush_batch();
                std::thread::sleep(FULL_PAUSE);
            } else if self.enqueue_next(&mut bytes, stopped.map(|(_, at_ns)| at_ns))? {
                until_clock += 1;
                if until_clock < MESSAGES_PER_CLOCK {
                    continue;
                }
            } else {
                self.was_queue_full = false;
                self.flush_batch();
                if stopped.is_some() {
                    return Ok(());
                }
                self.follow.wait(CHECK_INTERVAL);
            }
            until_clock = 0;
            match stopped {
                Some((since, _)) if since.elapsed() >= DRAIN_TIMEOUT => {
                    let what = "the recording ended before all sent messages were read: the disk is too slow";
                    self.shared.note(what.to_owned());
                    return Ok(());
                }
                // A slow disk delays the end; progress is still published.
                Some(_) if self.checked_at.is_none_or(|at| at.elapsed() >= CHECK_INTERVAL) => {
                    self.checked_at = Some(Instant::now());
                    self.publish_status();
                }
                Some(_) => {}
                None if self.shared.is_stopped()
                    || ends.is_some_and(|end| Instant::now() >= end) =>
                {
                    stopped = Some((Instant::now(), rnet::now_ns()));
                }
                None => {
                    self.check_domain()?;
                    self.update_gate(false)?;
                }
            }
        }
    }

    /// Queues the next message, unless it was sent after the end. Returns whether there was one.
    fn enqueue_next(&mut self, bytes: &mut Vec<u8>, end_ns: Option<u64>) -> Result<bool> {
        let mut opens = false;
        let gate = self.gate.as_ref().map(|(_, topic, _)| topic);
        let passed = self.follow.poll_all(bytes)?;
        let item = match passed {
            None => return Ok(false),
            Some(Observed::Message(observed)) => {
                if end_ns.is_some_and(|end| observed.stamp.sent_ns > end) {
                    return Ok(true);
                }
                let id = observed.stamp.publisher;
                let host = &self.own_host;
                let publisher = self.publishers.entry(id).or_insert_with(|| {
                    // Its node may be new, and may not live for a second.
                    self.checked_at = None;
                    opens = gate.is_some_and(|topic| topic == observed.topic);
                    publisher_of(&observed, host)
                });
                if let Some(message_hook) = &self.options.message_hook {
                    message_hook.on_message(publisher, observed.stamp.sent_ns, bytes);
                }
                Item::Message(ReceivedMessage {
                    publisher: publisher.clone(),
                    seq: observed.stamp.seq,
                    sent_ns: observed.stamp.sent_ns,
                    received_ns: observed.stamp.taken_ns,
                    meta: observed.meta,
                    bytes: match bytes.len() >= LARGE_LEN_BYTES {
                        true => std::mem::replace(bytes, self.queue.spare()),
                        false => bytes.as_slice().to_vec(),
                    },
                })
            }
            Some(Observed::Missed { missed, topic, node }) => {
                let cause =
                    if self.was_queue_full { RecordLossCause::Queue } else { missed.cause.into() };
                Item::Missed(MissedMessages {
                    topic: topic.to_owned(),
                    node: node.to_owned(),
                    publisher: missed.publisher,
                    first_seq: missed.first_seq,
                    count: missed.count,
                    cause,
                    at_ns: rnet::now_ns(),
                })
            }
        };
        // The next check of the gate would come after the first messages.
        if opens && self.shared.set_gate_open(true) {
            self.put(Item::Gate(true));
        }
        self.put(item);
        Ok(true)
    }

    fn put(&mut self, item: Item) {
        self.batch.1 += item.len_bytes();
        self.batch.0.push(item);
        if self.batch.0.len() >= MAX_BATCH_ENTRIES || self.batch.1 >= MAX_BATCH_BYTES {
            self.flush_batch();
        }
    }

    fn flush_batch(&mut self) {
        let (items, bytes) = &mut self.batch;
        self.queue.put_all(items, std::mem::take(bytes));
    }

    /// Checks the domain once a second.
    fn check_domain(&mut self) -> Result<()> {
        if self.checked_at.is_some_and(|at| at.elapsed() < CHECK_INTERVAL) {
            return Ok(());
        }
        self.checked_at = Some(Instant::now());
        self.handle_events();
        let followed: BTreeSet<u64> = self.follow.followed().collect();
        let gone: Vec<u64> =
            self.publishers.keys().copied().filter(|id| !followed.contains(id)).collect();
        for id in gone {
            self.publishers.remove(&id);
            if let Some(message_hook) = &self.options.message_hook {
                message_hook.on_publisher_gone(id);
            }
            self.put(Item::PublisherGone(id));
        }
        let nodes: BTreeMap<String, String> = self
            .follow
            .domain()
            .nodes()
            .map(|node| {
                let said = serde_json::json!({
                    "host": self.own_host,
                    "pid": node.pid,
                    "program": node.program,
                    "language": node.language,
                    "version": node.version,
                });
                (node.name.clone(), said.to_string())
            })
            .collect();
        if nodes != self.nodes {
            self.put(Item::Nodes(nodes.clone()));
            self.nodes = nodes;
        }
        self.start_state_follower();
        self.subscribe_remote();
        self.shared.progress().publishers = followed.len();
        self.publish_status();
        Ok(())
    }

    /// Notes new publishers, and publishers that cannot be read.
    fn handle_events(&mut self) {
        for event in self.follow.take_events() {
            match event {
                FollowEvent::Joined(_) => self.shared.progress().followed += 1,
                FollowEvent::Unreadable(..) | FollowEvent::Untyped(..) => {
                    self.shared.note(event.to_string());
                }
                FollowEvent::Unread(unheard) => self.unheard(unheard),
                _ => {}
            }
        }
    }

    fn unheard(&mut self, unheard: UnreadPublisher) {
        if !self.options.selection.may_include(&unheard, &self.own_host) {
            return;
        }
        self.shared.note(format!("{unheard}; it is counted as unread"));
        let UnreadPublisher { topic, node, why, .. } = &unheard;
        self.shared.progress().unheard.add_publisher(topic.as_deref(), node, *why);
        self.put(Item::Unheard(unheard));
    }

    /// Publishes the progress.
    fn publish_status(&mut self) {
        let text = self.status_report.text(&self.shared.progress(), self.queue.len_bytes() as u64);
        // If the status cannot be published, it records all the same.
        self.follow.set_status(&text);
    }

    /// Follows the state as soon as a state store exists; does not create one.
    fn start_state_follower(&mut self) {
        if !self.options.state || self.state_thread.is_some() {
            return;
        }
        let begun = self.follow.domain().has_state().and_then(|has_state| {
            if !has_state {
                return Ok(());
            }
            let (node, queue, ended) =
                (self.node()?, self.queue.clone(), self.is_state_ended.clone());
            let shared = self.shared.clone();
            let follow = move || {
                if let Err(error) = state_follower::follow(&node, &queue, &shared, &ended) {
                    shared.note(format!("the state is not recorded: {error}"));
                }
            };
            let builder = std::thread::Builder::new().name("rnet-rec-state".to_owned());
            match builder.spawn(follow) {
                Ok(thread) => self.state_thread = Some(thread),
                Err(error) => self.shared.note(format!("the state is not recorded: {error}")),
            }
            Ok(())
        });
        if let Err(error) = begun {
            self.shared.note(format!("the state is not recorded: {error}"));
        }
    }

    fn subscribe_remote(&mut self) {
        let found =
            std::mem::take(&mut *self.remote.lock().unwrap_or_else(PoisonError::into_inner));
        for topic in found {
            let shown =
                self.node().and_then(|node| self.remote_subscriptions.subscribe(&node, &topic));
            if let Err(error) = shown {
                self.shared
                    .note(format!("messages from other hosts may be missing on {topic}: {error}"));
            }
        }
    }

    /// The recorder's own node, opened on first use.
    fn node(&mut self) -> rnet::Result<Arc<Node>> {
        if let Some(node) = &self.node {
            return Ok(node.clone());
        }
        let name = format!("/rnet_record_{}", std::process::id());
        let location = &self.location;
        let mut builder =
            Node::builder(&name).tool().domain(location.id().as_str()).dir(location.base());
        if let Some(group) = location.group() {
            builder = builder.group(group);
        }
        if let Some(dir) = &self.options.state_dir {
            builder = builder.state_dir(dir);
        }
        let node = Arc::new(builder.open()?);
        self.node = Some(node.clone());
        Ok(node)
    }

    /// Reports when the topic of `--while` gets its first publisher, and when it loses the last one.
    fn update_gate(&mut self, at_once: bool) -> Result<()> {
        let Some((domain, topic, polled_at)) = &mut self.gate else { return Ok(()) };
        if !at_once && polled_at.elapsed() < GATE_INTERVAL {
            return Ok(());
        }
        *polled_at = Instant::now();
        let is_gate_open = !domain.topic_snapshot(topic)?.publishers.is_empty();
        if self.shared.set_gate_open(is_gate_open) || at_once {
            self.put(Item::Gate(is_gate_open));
        }
        Ok(())
    }
}

impl Drop for TopicReader {
    /// Closes the queue however the thread ends; the writer then exits after writing what was queued.
    fn drop(&mut self) {
        self.flush_batch();
        self.queue.close();
    }
}

fn publisher_of(observed: &ObservedMessage<'_>, own_host: &str) -> Arc<Publisher> {
    let (host, node) = host_and_node(observed.node, own_host);
    let source =
        Source::new(node, host, observed.stamp.publisher, observed.type_desc, observed.qos);
    Arc::new(Publisher {
        topic: observed.topic.to_owned(),
        source,
        type_desc: observed.type_desc.clone(),
        schema: observed.schema.cloned(),
    })
}
