//! The node under test: its process, its endpoints, and whether it is idle.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::inspect::{Domain, Follower, Location, Observed, Snapshot};
use rnet::{Node, Subscriber};
use rnet_shm::os::process::ChildSettings;
use rustix::process::{Pid, Signal, kill_process_group};

use super::RerunOptions;
use super::calls::{CallTopic, CallTopicKind, Calls, RecordedCalls, driven, is_by};
use super::error::RerunError;
use super::quiescence::{ProcessState, inspect_process};
use super::simulated_clients::SimulatedClients;
use super::simulated_servers::{NodeRequest, SimulatedServers};
use super::state;
use crate::names;
use crate::play::{ClockPublisher, ExistingEndpoints, PlayOptions, Publishers};
use crate::read::{Recording, Select};

/// Prefix of the library's topics: logs, calls, the graph.
const INTERNAL_TOPICS: &str = "/_rnet/";
pub const CLOCK_TOPIC: &str = "/clock";
/// Interval between two polls of a node that starts, or is not idle.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Polls without a pause between them: most inputs are answered by then.
const SPIN_CHECKS: u32 = 20;
/// Time limit for a node to exit on SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_secs(3);

/// The node under test, its process, and the re-run's own node.
pub struct TestedNode {
    process: Process,
    domain: Domain,
    pub node: Node,
    /// State written before `start_ns` was set before the node started: `keys` keys.
    pub start_ns: u64,
    pub keys: u64,
    /// Its name in the domain.
    pub name: String,
    /// Its name in the recording.
    pub recorded: String,
    pid: u32,
    stop: fn() -> bool,
    pub publishers: Vec<Publishers>,
    /// Topics that are fed to it.
    pub input_topics: BTreeSet<String>,
    pub clock: Option<ClockPublisher>,
    /// Reads the messages that it publishes.
    pub follow: Follower,
    /// Its recorded calls, and the simulated servers and clients.
    pub calls: Arc<RecordedCalls>,
    pub servers: SimulatedServers,
    pub clients: SimulatedClients,
    /// A node may wait for a subscriber. These are never read.
    _listeners: Vec<Subscriber<[u8]>>,
}

/// Dropping it terminates the process group.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        // A process that has exited cannot be signalled; without a signal, waiting would be pointless.
        let signal = |signal| group.map(|group| kill_process_group(group, signal));
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            signal(Signal::TERM);
            let end = Instant::now() + TERM_TIMEOUT;
            while Instant::now() < end && matches!(self.0.try_wait(), Ok(None)) {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        signal(Signal::KILL);
        let _ = self.0.wait();
    }
}

impl TestedNode {
    /// Starts the node, and waits until its endpoints exist and are connected.
    pub fn join(
        recording: &Recording,
        location: &Location,
        command: &mut Command,
        options: &RerunOptions,
    ) -> Result<Self, RerunError> {
        let own_name = format!("/rnet_rerun_{}", std::process::id());
        let node = Node::builder(&own_name)
            .tool()
            .domain(location.id().as_str())
            .dir(location.base())
            // Durable state of the robot is neither read nor written.
            .state_dir(location.base().join("durable"))
            .open()?;
        let start_ns = options.start_ns.or(recording.info().times.map(|times| times.0));
        let start_ns = start_ns.unwrap_or(0);
        let keys = state::restore(recording, &node, start_ns)?;
        // Follows before the node starts, so that no message is missed.
        let with_calls = !options.without_calls;
        let mut follow = Follower::matching(location.domain()?, true, move |publisher| {
            publisher.node != own_name && is_output_topic(&publisher.topic, with_calls)
        });
        follow.wait(Duration::ZERO);
        follow.poll(&mut Vec::new())?;
        ChildSettings::default().apply_to(command);
        let child = command.process_group(0).spawn().map_err(|source| RerunError::Command {
            program: command.get_program().to_string_lossy().into_owned(),
            source,
        })?;
        let process = Process(child);
        let mut tested = Self {
            process,
            domain: location.domain()?,
            node,
            start_ns,
            keys,
            name: "the node".to_owned(),
            recorded: String::new(),
            pid: 0,
            stop: options.stop,
            publishers: Vec::new(),
            input_topics: BTreeSet::new(),
            clock: None,
            follow,
            calls: Arc::default(),
            servers: SimulatedServers::default(),
            clients: SimulatedClients::default(),
            _listeners: Vec::new(),
        };
        tested.wait_for_join(options)?;
        tested.check_recorded(recording)?;
        check_inputs(recording, options, &tested.own_channels(recording))?;
        if with_calls {
            let calls = Calls::of(recording, &tested.recorded);
            let calls = RecordedCalls::read(recording, &tested.recorded, &calls)?;
            tested.servers = SimulatedServers::open(&calls, &tested.node)?;
            tested.calls = Arc::new(calls);
        }
        for command in driven(recording, &tested.recorded) {
            tested.servers.open_command(&command, &tested.node)?;
        }
        tested.listen(recording)?;
        tested.connect(recording, options)?;
        Ok(tested)
    }

    /// Waits for the node to join the domain.
    fn wait_for_join(&mut self, options: &RerunOptions) -> Result<(), RerunError> {
        let end = Instant::now() + options.timeout;
        let own = self.node.name().to_owned();
        loop {
            let snapshot = self.domain.snapshot()?;
            let others: Vec<_> = snapshot.nodes.iter().filter(|n| n.meta.name != own).collect();
            let named = others.iter().find(|n| options.name.as_ref() == Some(&n.meta.name));
            match (named, others.as_slice()) {
                (Some(node), _) | (None, [node]) => {
                    self.name.clone_from(&node.meta.name);
                    self.recorded = options.name.clone().unwrap_or_else(|| self.name.clone());
                    self.pid = node.meta.pid;
                    return Ok(());
                }
                (None, []) => {}
                (None, several) => {
                    let names: Vec<&str> = several.iter().map(|n| n.meta.name.as_str()).collect();
                    let text = format!(
                        "{} have joined; a re-run tests one node: specify it with --name",
                        names.join(", ")
                    );
                    return Err(RerunError::failed("several_nodes", text));
                }
            }
            self.check_alive(&|| "before it joined".to_owned())?;
            if Instant::now() >= end {
                let text = format!(
                    "no node joined the domain of the re-run within {:?}; a node whose code sets the domain \
                     cannot join it",
                    options.timeout
                );
                return Err(RerunError::TimedOut { code: "not_joined", text });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn check_recorded(&self, recording: &Recording) -> Result<(), RerunError> {
        let nodes: BTreeSet<&str> = recording
            .channels()
            .filter_map(|channel| channel.metadata.get(names::NODE_KEY))
            .map(String::as_str)
            .collect();
        let node = self.recorded.as_str();
        if nodes.contains(node) {
            return Ok(());
        }
        let known = match nodes.is_empty() {
            true => "no other node did".to_owned(),
            false => format!("nodes that did: {}", Vec::from_iter(nodes).join(", ")),
        };
        let text = format!(
            "{node} published nothing in the recording; {known}; specify its recorded name with --name"
        );
        Err(RerunError::failed("not_recorded", text))
    }

    /// Ids of the channels that the node itself published in the recording.
    pub fn own_channels(&self, recording: &Recording) -> BTreeSet<u16> {
        let channels = recording.channels();
        channels.filter(|c| is_by(c, &self.recorded)).map(|c| c.id).collect()
    }

    /// Whether the recording has a topic of another node.
    fn is_recorded(&self, recording: &Recording, topic: &str) -> bool {
        recording.channels().any(|c| c.topic == topic && !is_by(c, &self.recorded))
    }

    fn listen(&mut self, recording: &Recording) -> Result<(), RerunError> {
        let mut topics = BTreeSet::new();
        for channel in recording.channels() {
            let is_new = is_by(channel, &self.recorded)
                && !channel.topic.starts_with(INTERNAL_TOPICS)
                && topics.insert(&channel.topic);
            if let (true, Ok(source)) = (is_new, channel.source()) {
                let listener = self
                    .node
                    .subscriber::<[u8]>(&channel.topic)
                    .lane(source.lane)
                    .keep_last(1)
                    .open()?;
                self._listeners.push(listener);
            }
        }
        Ok(())
    }

    /// Opens a publisher for each recorded topic to which it subscribes, until its endpoints no longer
    /// change.
    fn connect(&mut self, recording: &Recording, options: &RerunOptions) -> Result<(), RerunError> {
        let end = Instant::now() + options.timeout;
        let (mut endpoints, mut changed) = (BTreeSet::new(), Instant::now());
        let at = || "when it started".to_owned();
        loop {
            self.check_alive(&at)?;
            self.answer_early(recording, options.timeout)?;
            let snapshot = self.domain.snapshot()?;
            let subscribed = self.subscribed(&snapshot);
            self.receive_commands(&snapshot, &subscribed)?;
            for topic in &subscribed {
                self.open_inputs(recording, topic, options)?;
            }
            let now: BTreeSet<u64> = endpoint_ids(&snapshot, &self.name).collect();
            if now != endpoints {
                (endpoints, changed) = (now, Instant::now());
            }
            let lacks = options.inputs.iter().find(|topic| !self.input_topics.contains(*topic));
            let is_quiet = changed.elapsed() >= options.settle;
            if lacks.is_none()
                && is_quiet
                && self.is_connected(&snapshot)?
                && self.check_idle(&at)?.is_ok()
            {
                self.clients.find_servers(&self.calls, &snapshot, &self.name)?;
                if !self.input_topics.is_empty() || !self.calls.served.is_empty() {
                    return Ok(());
                }
                let (node, topics) = (&self.name, Vec::from_iter(subscribed).join(", "));
                let text = format!(
                    "{node} subscribes to {topics}, which the recording does not contain, so it has no input"
                );
                return Err(RerunError::failed("no_inputs", text));
            }
            if Instant::now() >= end {
                let limit = options.timeout;
                if let Some(topic) = lacks {
                    let text =
                        format!("{} did not subscribe to {topic} within {limit:?}", self.name);
                    return Err(RerunError::TimedOut { code: "not_subscribed", text });
                }
                let why = self
                    .check_idle(&at)?
                    .err()
                    .unwrap_or_else(|| "it is still connecting".to_owned());
                return Err(RerunError::not_idle(&self.name, &at(), &why, limit));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Opens a receiver for each command that the node is about to drive. The node that receives the command
    /// itself is skipped.
    fn receive_commands(
        &mut self,
        snapshot: &Snapshot,
        subscribed: &BTreeSet<String>,
    ) -> Result<(), RerunError> {
        for (topic, command) in
            subscribed.iter().filter_map(|topic| Some((topic, rnet::command_of_status(topic)?)))
        {
            let mut own = snapshot.publishers.iter().filter(|p| p.node == self.name);
            if !own.any(|p| p.topic == *topic) && !self.input_topics.contains(topic) {
                self.servers.open_command(command, &self.node)?;
            }
        }
        Ok(())
    }

    /// Answers the requests of the node before its first input. Its other messages before that are discarded.
    pub fn answer_early(
        &mut self,
        recording: &Recording,
        limit: Duration,
    ) -> Result<(), RerunError> {
        let at = || "when it started".to_owned();
        let mut bytes = Vec::new();
        while let Some(passed) = self.follow.poll_all(&mut bytes)? {
            let Observed::Message(observed) = passed else { continue };
            let of = CallTopic::parse(observed.topic).filter(|of| self.servers.serves(of));
            let (Some(of), Some(correlation)) = (of, observed.meta.correlation) else { continue };
            let request =
                NodeRequest { service: of.service.to_owned(), correlation, content: bytes.clone() };
            let answers = self.servers.answer_early(recording, &self.node, &request, limit)?;
            for topic in answers {
                self.wait_until_idle(Some(&topic), limit, &at)?;
            }
        }
        Ok(())
    }

    /// Waits until the node has found the endpoints of its callers.
    pub fn wait_for_match(
        &mut self,
        endpoints: &[(String, u64)],
        limit: Duration,
    ) -> Result<(), RerunError> {
        let end = Instant::now() + limit;
        for (topic, subscription) in endpoints {
            loop {
                let snapshot = self.domain.topic_snapshot(topic)?;
                let mut own = snapshot.publishers.iter().filter(|p| p.node == self.name);
                if own.any(|p| p.admitted.iter().any(|one| one.subscription == *subscription)) {
                    break;
                }
                let at = || format!("after a request whose caller receives {topic}");
                self.check_alive(&at)?;
                if Instant::now() >= end {
                    let why = "it does not find the caller";
                    return Err(RerunError::not_idle(&self.name, &at(), why, limit));
                }
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(())
    }

    fn subscribed(&self, snapshot: &Snapshot) -> BTreeSet<String> {
        let own = snapshot.subscriptions.iter().filter(|s| s.node == self.name);
        own.map(|subscription| subscription.topic.clone()).collect()
    }

    /// Opens the publishers of a topic, if it was recorded and is selected.
    fn open_inputs(
        &mut self,
        recording: &Recording,
        topic: &str,
        options: &RerunOptions,
    ) -> Result<(), RerunError> {
        let is_named = options.inputs.iter().any(|input| input == topic);
        let is_wanted = match options.inputs.is_empty() {
            true => !topic.starts_with(INTERNAL_TOPICS),
            false => is_named || topic == CLOCK_TOPIC,
        };
        let is_recorded = self.is_recorded(recording, topic);
        if !is_wanted || self.input_topics.contains(topic) {
            return Ok(());
        }
        if topic == CLOCK_TOPIC && !is_recorded {
            if self.clock.is_none() {
                self.clock = Some(ClockPublisher::open(&self.node, options.clock_hz)?);
            }
        } else if is_recorded {
            // All publishers are reliable, so that no input is lost.
            let topics = vec![topic.to_owned()];
            let excluded_channels = self.own_channels(recording);
            let select = Select { topics, excluded_channels, ..Select::default() };
            let play = PlayOptions { select, rate: None, ..PlayOptions::default() };
            // The topic was requested, so an unreadable type is an error.
            let publishers =
                Publishers::open(recording, &self.node, &ExistingEndpoints::default(), &play)?;
            self.publishers.push(publishers);
            self.input_topics.insert(topic.to_owned());
        }
        Ok(())
    }

    /// Whether all its subscriptions are matched with all of our publishers of their topics.
    fn is_connected(&self, snapshot: &Snapshot) -> Result<bool, RerunError> {
        let ours = snapshot.publishers.iter().filter(|p| p.node == self.node.name());
        for publisher in ours {
            let theirs = snapshot.subscriptions.iter().filter(|s| s.node == self.name);
            for subscription in theirs.filter(|s| s.topic == publisher.topic) {
                if publisher.admitted.iter().any(|one| one.subscription == subscription.id) {
                    continue;
                }
                let why = self.publishers.iter().find_map(|p| p.incompatibility(publisher.id));
                return match why {
                    None => Ok(false),
                    Some(why) => Err(RerunError::incompatible(&self.name, &publisher.topic, &why)),
                };
            }
        }
        Ok(true)
    }

    pub fn check_alive(&mut self, at: &dyn Fn() -> String) -> Result<(), RerunError> {
        match self.process.0.try_wait()? {
            Some(_) => Err(self.died(at)),
            None if (self.stop)() => Err(RerunError::Interrupted),
            None => Ok(()),
        }
    }

    fn died(&mut self, at: &dyn Fn() -> String) -> RerunError {
        let how = match self.process.0.try_wait() {
            Ok(Some(status)) => status.to_string(),
            // The command is not the node itself, but a parent of it.
            _ => "its process has exited".to_owned(),
        };
        RerunError::failed("died", format!("{} has died {}: {how}", self.name, at()))
    }

    /// Waits until it has read what was sent on a topic, and is idle. `at` describes the input before.
    pub fn wait_until_idle(
        &mut self,
        topic: Option<&str>,
        limit: Duration,
        at: &dyn Fn() -> String,
    ) -> Result<(), RerunError> {
        let (end, mut checks) = (Instant::now() + limit, 0);
        let mut why = String::new();
        while Instant::now() < end {
            // Checked first: after it has read a message, its thread is awake.
            let waits = match topic {
                Some(topic) => self.has_unread(topic)?,
                None => false,
            };
            match waits {
                true => {
                    why = format!(
                        "a thread sleeps although a message of {} is waiting",
                        topic.unwrap_or("")
                    )
                }
                false => match self.check_idle(at)? {
                    Ok(()) => return Ok(()),
                    Err(reason) => why = reason,
                },
            }
            checks += 1;
            if checks > SPIN_CHECKS {
                self.check_alive(at)?;
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        Err(RerunError::not_idle(&self.name, &at(), &why, limit))
    }

    /// Whether a message of a topic is about to wake one of its threads.
    fn has_unread(&mut self, topic: &str) -> Result<bool, RerunError> {
        let snapshot = self.domain.topic_snapshot(topic)?;
        let own = snapshot.subscriptions.iter().filter(|s| s.node == self.name);
        let mut channels = own.flat_map(|subscription| &subscription.channels);
        Ok(channels.any(|channel| channel.asleep && channel.behind.messages > 0))
    }

    /// Whether all its threads sleep at the same time, or which one does not.
    fn check_idle(&mut self, at: &dyn Fn() -> String) -> Result<Result<(), String>, RerunError> {
        let checks = (inspect_process(self.pid)?, inspect_process(self.pid)?);
        Ok(match checks {
            (ProcessState::Sleeping(before), ProcessState::Sleeping(after)) if before == after => {
                Ok(())
            }
            (ProcessState::Running(name), _) | (_, ProcessState::Running(name)) => {
                Err(format!("its thread {name} has not slept"))
            }
            (ProcessState::Exited, _) | (_, ProcessState::Exited) => return Err(self.died(at)),
            _ => Err("its threads have not slept".to_owned()),
        })
    }

    /// Reports a subscription to a recorded topic that was created after messages of that topic had passed.
    pub fn check_late(&mut self, recording: &Recording) -> Result<(), RerunError> {
        let snapshot = self.domain.snapshot()?;
        for topic in self.subscribed(&snapshot) {
            let is_fed = self.input_topics.contains(&topic) || topic.starts_with(INTERNAL_TOPICS);
            if !is_fed && self.is_recorded(recording, &topic) {
                let text = format!(
                    "{} subscribed to {topic} after its start, and missed earlier messages; specify the \
                     topic with --input",
                    self.name
                );
                return Err(RerunError::failed("late_subscription", text));
            }
        }
        Ok(())
    }
}

/// Whether a topic on which a node publishes is an output: its own messages, calls, or requests for
/// authority.
fn is_output_topic(topic: &str, with_calls: bool) -> bool {
    match topic.starts_with(INTERNAL_TOPICS) {
        false => true,
        true => CallTopic::parse(topic).is_some_and(|of| {
            of.kind != CallTopicKind::Control && (with_calls || of.is_of_authority())
        }),
    }
}

/// Checks that the requested input topics were recorded from other nodes.
pub fn check_inputs(
    recording: &Recording,
    options: &RerunOptions,
    own_channels: &BTreeSet<u16>,
) -> Result<(), RerunError> {
    let others = recording.channels().filter(|c| !own_channels.contains(&c.id));
    let known: BTreeSet<&str> = others.map(|channel| channel.topic.as_str()).collect();
    let Some(topic) = options.inputs.iter().find(|topic| !known.contains(topic.as_str())) else {
        return Ok(());
    };
    let known = known.into_iter().filter(|topic| !topic.starts_with(INTERNAL_TOPICS));
    let known = Vec::from_iter(known).join(", ");
    let text = format!("the recording has no {topic} from other nodes; it has {known}");
    Err(RerunError::failed("no_input", text))
}

/// Ids of the endpoints of a node.
fn endpoint_ids<'a>(snapshot: &'a Snapshot, node: &'a str) -> impl Iterator<Item = u64> + 'a {
    let publishers = snapshot.publishers.iter().filter(move |p| p.node == node).map(|p| p.id);
    let subscriptions = snapshot.subscriptions.iter().filter(move |s| s.node == node);
    publishers.chain(subscriptions.map(|s| s.id))
}
