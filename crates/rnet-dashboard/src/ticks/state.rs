//! The state, as a tree that is kept up to date, and a number of it over time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::state::{Entry, State, Watch};
use rnet_monitor::value::{FieldPath, to_json};
use serde_json::{Value as Json, json};

use super::turn::{Sink, Tick};
use crate::outbox::Outbox;
use crate::times::{document, unix_now_s};
use crate::topic::Buckets;
use crate::wire::Refusal;

/// Between two data of a subscription.
const INTERVAL: Duration = Duration::from_millis(100);
/// Between two looks for state that is not there yet.
const RARE_INTERVAL: Duration = Duration::from_secs(1);
/// Keys that are shown.
const MAX_KEYS: usize = 2_000;
/// And so many bytes of JSON.
const MAX_LEN_BYTES: usize = 1 << 20;

pub struct StateSink {
    sub: u64,
    outbox: Arc<Outbox>,
    prefix: String,
    watch: Option<(State, Watch)>,
    last: Option<Instant>,
    /// The page was told that there is nothing.
    told_empty: bool,
}

impl StateSink {
    pub fn new(sub: u64, outbox: Arc<Outbox>, prefix: String) -> StateSink {
        StateSink { sub, outbox, prefix, watch: None, last: None, told_empty: false }
    }

    fn open(&mut self, tick: &Tick<'_>) -> rnet::Result<bool> {
        if self.watch.is_some() {
            return Ok(true);
        }
        let Some(state) = tick.desk.seat.state_if_any()? else { return Ok(false) };
        // Opened before the whole is read: nothing that changes meanwhile is missed.
        let watch = state.watch(&self.prefix)?;
        self.watch = Some((state, watch));
        self.whole()?;
        Ok(true)
    }

    fn whole(&mut self) -> rnet::Result<()> {
        let Some((state, _)) = &self.watch else { return Ok(()) };
        let snapshot = state.snapshot(&self.prefix)?;
        let all = snapshot.entries.len();
        let (mut entries, mut len) = (Vec::new(), 0);
        for entry in snapshot.entries.values().take(MAX_KEYS) {
            let entry = document(entry);
            len += entry.to_string().len();
            if len > MAX_LEN_BYTES {
                break;
            }
            entries.push(entry);
        }
        let more = all - entries.len();
        let mut data = json!({"whole": true, "entries": entries, "revision": snapshot.revision});
        if more > 0 {
            data["more"] = more.into();
        }
        self.outbox.whole(self.sub, data.to_string());
        Ok(())
    }

    fn changes(&mut self) -> rnet::Result<()> {
        let Some((_, watch)) = &mut self.watch else { return Ok(()) };
        // Of a key that changes often only the newest is told.
        let mut changed: BTreeMap<String, Option<Entry>> = BTreeMap::new();
        while changed.len() < MAX_KEYS
            && let Some(change) = watch.try_recv()?
        {
            if !change.initial {
                changed.insert(change.key, change.entry);
            }
        }
        if self.outbox.take_broken(self.sub) {
            return self.whole();
        }
        if changed.is_empty() {
            return Ok(());
        }
        let deleted: Vec<&String> =
            changed.iter().filter(|(_, entry)| entry.is_none()).map(|(key, _)| key).collect();
        let entries: Vec<Json> = changed.values().flatten().map(document).collect();
        let text = json!({"entries": entries, "deleted": deleted}).to_string();
        match text.len() > MAX_LEN_BYTES {
            true => self.whole(),
            false => {
                self.outbox.data(self.sub, text);
                Ok(())
            }
        }
    }
}

impl Sink for StateSink {
    fn tick(&mut self, tick: &Tick<'_>) {
        let interval = if self.watch.is_some() { INTERVAL } else { RARE_INTERVAL };
        if self.last.is_some_and(|last| tick.now.duration_since(last) < interval) {
            return;
        }
        self.last = Some(tick.now);
        let done = match self.open(tick) {
            Ok(true) => self.changes(),
            Ok(false) => {
                if !std::mem::replace(&mut self.told_empty, true) {
                    let nothing = json!({"whole": true, "entries": [], "revision": 0});
                    self.outbox.whole(self.sub, nothing.to_string());
                }
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            // It is opened anew: the domain was removed, say, and is there again.
            self.watch = None;
            self.told_empty = false;
            self.outbox.trouble(self.sub, &error.into(), false);
        }
    }
}

/// A number of a key over time.
pub struct StatePlotSink {
    sub: u64,
    outbox: Arc<Outbox>,
    key: String,
    field: Option<FieldPath>,
    buckets: Buckets,
    watch: Option<Watch>,
    last: Option<Instant>,
}

impl StatePlotSink {
    /// # Errors
    /// The field is none.
    pub fn new(
        sub: u64,
        outbox: Arc<Outbox>,
        key: String,
        field: &str,
        buckets: Buckets,
    ) -> Result<StatePlotSink, Refusal> {
        let field = Some(field).filter(|field| !field.is_empty());
        let field = field.map(str::parse).transpose().map_err(Refusal::bad)?;
        Ok(StatePlotSink { sub, outbox, key, field, buckets, watch: None, last: None })
    }

    fn take(&mut self, tick: &Tick<'_>) -> rnet::Result<()> {
        if self.watch.is_none() {
            let Some(state) = tick.desk.seat.state_if_any()? else { return Ok(()) };
            self.watch = Some(state.watch(&self.key)?);
        }
        let Some(watch) = &mut self.watch else { return Ok(()) };
        while let Some(change) = watch.try_recv()? {
            // Keys below this one are other keys.
            let Some(entry) = change.entry.filter(|_| change.key == self.key) else { continue };
            let (value, at_s) = (to_json(&entry.value), entry.owner.written_unix_ns as f64 / 1e9);
            let picked = match &self.field {
                Some(field) => field.pick(&value).cloned(),
                None => Ok(value),
            };
            match picked.map(|value| number(&value)) {
                Ok(Some(number)) => self.buckets.add(at_s.min(unix_now_s()), number),
                Ok(None) => self.buckets.miss("the value is no number"),
                Err(why) => self.buckets.miss(&why),
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
            self.watch = None;
            self.outbox.trouble(self.sub, &error.into(), false);
        }
        if let Some(data) = self.buckets.take(unix_now_s()) {
            self.outbox.data(self.sub, data);
        }
    }
}

fn number(value: &Json) -> Option<f64> {
    match value {
        Json::Bool(b) => Some(f64::from(u8::from(*b))),
        Json::Number(number) => number.as_f64(),
        // What JSON has no number for.
        Json::String(text) if matches!(text.as_str(), "nan" | "inf" | "-inf") => text.parse().ok(),
        _ => None,
    }
}
