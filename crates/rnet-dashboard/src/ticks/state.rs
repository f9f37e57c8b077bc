//! The state as a live tree, and a number in it over time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rnet::state::{Change, Entry, Replica, State, Watch, split_host};
use rnet_format::value::{FieldPath, to_json};
use serde_json::{Value as Json, json};

use super::remote_hosts::{RemoteHost, RemoteReplica};
use super::tick::{Sink, Tick};
use crate::background_task::BackgroundTask;
use crate::operations::OperatorNode;
use crate::outbox::Output;
use crate::times::{document, of_host, unix_now_s};
use crate::topic::Buckets;
use crate::wire::Refusal;

/// Interval between two data items of a subscription.
const INTERVAL: Duration = Duration::from_millis(100);
/// Interval between two checks for a state that does not exist yet.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of keys shown.
const MAX_KEYS: usize = 2_000;
/// Maximum bytes of JSON.
const MAX_LEN_BYTES: usize = 1 << 20;

/// Watched keys, of this host or of another one.
enum WatchedKeys {
    Local(Box<(State, Watch)>),
    Remote(RemoteReplica),
}

impl WatchedKeys {
    fn next(&mut self) -> rnet::Result<Option<Change>> {
        match self {
            WatchedKeys::Local(here) => here.1.try_recv(),
            WatchedKeys::Remote(replica) => replica.try_recv(),
        }
    }
}

/// The host and the prefix of keys.
struct StateSource {
    remote_host: Option<RemoteHost>,
    prefix: String,
    task: Option<BackgroundTask<Replica>>,
}

impl StateSource {
    fn new(host: Option<String>, prefix: String) -> StateSource {
        StateSource { remote_host: host.map(RemoteHost::new), prefix, task: None }
    }

    /// Opens the keys; `None` while they are unknown: observing does not create a state, and another host
    /// takes time.
    fn open(&mut self, operator: &OperatorNode) -> Result<Option<WatchedKeys>, Refusal> {
        let Some(remote_host) = &mut self.remote_host else {
            let Some(state) = operator.state_if_any()? else { return Ok(None) };
            let watch = state.watch(&self.prefix)?;
            return Ok(Some(WatchedKeys::Local(Box::new((state, watch)))));
        };
        let Some(task) = &self.task else {
            let prefix = self.prefix.clone();
            self.task = Some(remote_host.ask(operator, move |host| host.mirror(&prefix))?);
            return Ok(None);
        };
        let Some(done) = task.take() else { return Ok(None) };
        self.task = None;
        Ok(Some(WatchedKeys::Remote(done?.into())))
    }

    /// An entry in the format of pages.
    fn document(&self, entry: &Entry) -> Json {
        match &self.remote_host {
            Some(remote_host) => of_host(&remote_host.host, document(entry)),
            None => document(entry),
        }
    }

    /// A key in the format of pages.
    fn name(&self, key: &str) -> String {
        self.remote_host
            .as_ref()
            .map_or_else(|| key.to_owned(), |remote_host| remote_host.name(key))
    }

    /// Interval until keys are checked again.
    fn interval(&self) -> Duration {
        if self.task.is_some() { INTERVAL } else { IDLE_INTERVAL }
    }
}

pub struct StateSink {
    output: Output,
    source: StateSource,
    keys: Option<WatchedKeys>,
    last: Option<Instant>,
    /// Whether the page was notified that there are no keys.
    sent_empty: bool,
    /// Whether the page was notified that the host is disconnected.
    sent_away: bool,
}

impl StateSink {
    pub fn new(output: Output, host: Option<String>, prefix: String) -> StateSink {
        let source = StateSource::new(host, prefix);
        let (sent_empty, sent_away) = (false, false);
        StateSink { output, source, keys: None, last: None, sent_empty, sent_away }
    }

    fn open(&mut self, tick: &Tick<'_>) -> Result<bool, Refusal> {
        if self.keys.is_some() {
            return Ok(true);
        }
        // Opened before reading all keys, so that no change is missed.
        self.keys = self.source.open(&tick.operations.operator)?;
        if let Some(WatchedKeys::Remote(replica)) = &self.keys {
            // Drains the present values: until they are read, the replica merges changes into them.
            while replica.try_recv()?.is_some() {}
        }
        self.send_all()?;
        Ok(self.keys.is_some())
    }

    fn send_all(&mut self) -> rnet::Result<()> {
        let (found, revision, age) = match &self.keys {
            None => return Ok(()),
            Some(WatchedKeys::Local(here)) => {
                let snapshot = here.0.snapshot(&self.source.prefix)?;
                let entries: Vec<Entry> = snapshot.entries.into_values().collect();
                (entries, Some(snapshot.revision), None)
            }
            Some(WatchedKeys::Remote(replica)) => {
                let known = replica.list();
                (known.value, None, Some((known.is_stale, known.age)))
            }
        };
        let (mut entries, mut len) = (Vec::new(), 0);
        for entry in found.iter().take(MAX_KEYS) {
            let entry = self.source.document(entry);
            len += entry.to_string().len();
            if len > MAX_LEN_BYTES {
                break;
            }
            entries.push(entry);
        }
        let more = found.len() - entries.len();
        let mut data = json!({"whole": true, "entries": entries, "revision": revision});
        if more > 0 {
            data["more"] = more.into();
        }
        if let Some((away, age)) = age {
            self.sent_away = away;
            set_age(&mut data, away, age);
        }
        self.output.replace(data.to_string());
        Ok(())
    }

    fn send_changes(&mut self) -> rnet::Result<()> {
        let Some(keys) = &mut self.keys else { return Ok(()) };
        // Only the newest value of a frequently changing key is sent.
        let mut changed: BTreeMap<String, Option<Entry>> = BTreeMap::new();
        while changed.len() < MAX_KEYS
            && let Some(change) = keys.next()?
        {
            if !change.initial {
                changed.insert(change.key, change.entry);
            }
        }
        let age = match keys {
            WatchedKeys::Remote(replica) => Some((replica.is_stale(), replica.age())),
            WatchedKeys::Local(_) => None,
        };
        if self.output.take_needs_full() {
            return self.send_all();
        }
        let is_away = age.is_some_and(|(away, _)| away);
        if changed.is_empty() && is_away == self.sent_away {
            return Ok(());
        }
        let source = &self.source;
        let deleted = changed.iter().filter(|(_, entry)| entry.is_none());
        let deleted: Vec<String> = deleted.map(|(key, _)| source.name(key)).collect();
        let entries: Vec<Json> =
            changed.values().flatten().map(|entry| source.document(entry)).collect();
        let mut data = json!({"entries": entries, "deleted": deleted});
        if let Some((away, age)) = age {
            set_age(&mut data, away, age);
        }
        self.sent_away = is_away;
        let text = data.to_string();
        match text.len() > MAX_LEN_BYTES {
            true => self.send_all(),
            false => {
                self.output.data(text);
                Ok(())
            }
        }
    }
}

impl Sink for StateSink {
    fn tick(&mut self, tick: &Tick<'_>) {
        let interval = if self.keys.is_some() { INTERVAL } else { self.source.interval() };
        if self.last.is_some_and(|last| tick.now.duration_since(last) < interval) {
            return;
        }
        self.last = Some(tick.now);
        let done = match self.open(tick) {
            Ok(true) => self.send_changes().map_err(Refusal::from),
            Ok(false) if self.source.remote_host.is_some() => Ok(()),
            Ok(false) => {
                if !std::mem::replace(&mut self.sent_empty, true) {
                    let nothing = json!({"whole": true, "entries": [], "revision": 0});
                    self.output.replace(nothing.to_string());
                }
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            // It is opened again, for example if the domain was removed and recreated.
            self.keys = None;
            self.sent_empty = false;
            self.output.error(&error);
        }
    }
}

/// Whether the host is disconnected, and when its keys were last known.
fn set_age(data: &mut Json, away: bool, age: Duration) {
    data["away"] = away.into();
    data["known_s"] = (unix_now_s() - age.as_secs_f64()).into();
}

/// A number in a key over time.
pub struct StatePlotSink {
    output: Output,
    source: StateSource,
    field: Option<FieldPath>,
    buckets: Buckets,
    keys: Option<WatchedKeys>,
    last: Option<Instant>,
}

impl StatePlotSink {
    /// # Errors
    /// The field path is invalid.
    pub fn new(
        output: Output,
        key: String,
        field: &str,
        buckets: Buckets,
    ) -> Result<StatePlotSink, Refusal> {
        let field = Some(field).filter(|field| !field.is_empty());
        let field = field.map(str::parse).transpose().map_err(Refusal::bad)?;
        let source = match split_host(&key) {
            Some((host, key)) => StateSource::new(Some(host.to_owned()), key.to_owned()),
            None => StateSource::new(None, key),
        };
        Ok(StatePlotSink { output, source, field, buckets, keys: None, last: None })
    }

    fn take(&mut self, tick: &Tick<'_>) -> Result<(), Refusal> {
        if self.keys.is_none() {
            self.keys = self.source.open(&tick.operations.operator)?;
        }
        let Some(keys) = &mut self.keys else { return Ok(()) };
        while let Some(change) = keys.next()? {
            // Keys below this one are different keys.
            let is_it = change.key == self.source.prefix;
            let Some(entry) = change.entry.filter(|_| is_it) else { continue };
            let (value, at_s) = (to_json(&entry.value), entry.owner.written_unix_ns as f64 / 1e9);
            let picked = match &self.field {
                Some(field) => field.pick(&value).cloned(),
                None => Ok(value),
            };
            match picked.map(|value| number(&value)) {
                Ok(Some(number)) => self.buckets.add(at_s.min(unix_now_s()), number),
                Ok(None) => self.buckets.add_missing("the value is not a number"),
                Err(why) => self.buckets.add_missing(&why),
            }
        }
        Ok(())
    }
}

impl Sink for StatePlotSink {
    fn tick(&mut self, tick: &Tick<'_>) {
        if self.last.is_some_and(|last| tick.now.duration_since(last) < INTERVAL) {
            return;
        }
        self.last = Some(tick.now);
        if let Err(error) = self.take(tick) {
            self.keys = None;
            self.output.error(&error);
        }
        if let Some(data) = self.buckets.take(unix_now_s()) {
            self.output.data(data);
        }
    }
}

fn number(value: &Json) -> Option<f64> {
    match value {
        Json::Bool(b) => Some(f64::from(u8::from(*b))),
        Json::Number(number) => number.as_f64(),
        // Numbers that JSON cannot represent.
        Json::String(text) if matches!(text.as_str(), "nan" | "inf" | "-inf") => text.parse().ok(),
        _ => None,
    }
}
