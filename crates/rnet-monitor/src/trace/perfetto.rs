//! A trace as JSON in the form of Chrome's trace events, which Perfetto opens: a process for each node, a track for each
//! subscription, and an arrow from each send to the callback that it led to.

use std::collections::BTreeMap;

use super::{Edge, PublisherNames, Traced, sent_uncertain, stages};
use rnet::trace::{TraceRecord, node_of};
use serde_json::{Value, json};

/// Numbers for names: Perfetto wants small ones.
#[derive(Default)]
struct Numbers<K>(BTreeMap<K, usize>);

impl<K: Ord> Numbers<K> {
    /// The number of a name, and whether it is new.
    fn of(&mut self, key: K) -> (usize, bool) {
        let next = self.0.len() + 1;
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }
}

/// The document, one event a line.
pub fn perfetto(records: &[Traced], edges: &[Edge], publishers: &PublisherNames) -> String {
    let mut events = Vec::new();
    let (mut nodes, mut tracks) = (Numbers::<u64>::default(), Numbers::<(u64, u64)>::default());
    let start_ns = records.iter().map(|traced| traced.record.sent_ns).min().unwrap_or_default();
    let us = |ns: u64| ns.saturating_sub(start_ns) as f64 / 1e3;
    for (id, Traced { topic, node, record, .. }) in records.iter().enumerate() {
        let mut place = |endpoint: u64, node: &str, track: String, events: &mut Vec<Value>| {
            let (pid, is_new) = nodes.of(node_of(endpoint));
            if is_new {
                events.push(
                    json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": node}}),
                );
            }
            let (tid, is_new) = tracks.of((node_of(endpoint), endpoint));
            if is_new {
                let args = json!({"name": track});
                events.push(
                    json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": args}),
                );
            }
            (pid, tid)
        };
        let name = publishers.name_of(record).unwrap_or_else(|| "(gone)".to_owned());
        let from = place(record.message().0, &name, format!("{topic} sent"), &mut events);
        let to = place(record.subscription, node, topic.clone(), &mut events);
        let (began, ended) = (us(record.began_ns), us(record.ended_ns));
        let common = |ph: &str, (pid, tid): (usize, usize), ts: f64| json!({"ph": ph, "name": topic, "cat": "message", "pid": pid, "tid": tid, "ts": ts});
        let with = |mut event: Value, more: Value| {
            if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
                event.extend(more);
            }
            event
        };
        let sent = common("X", from, us(record.sent_ns));
        events.push(with(sent, json!({"dur": 0, "args": {"seq": record.message().1}})));
        events.push(with(common("s", from, us(record.sent_ns)), json!({"id": id})));
        let more = json!({"dur": ended - began, "args": args(record)});
        events.push(with(common("X", to, began), more));
        events.push(with(common("f", to, began), json!({"id": id, "bp": "e"})));
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    let about = json!({"program": "rnet trace", "edges": edges});
    format!("{{\"traceEvents\":[\n{}\n],\"otherData\":{about}}}\n", lines.join(",\n"))
}

/// What is shown of a message that is clicked on.
fn args(record: &TraceRecord) -> Value {
    let mut args = json!({"seq": record.message().1, "len_bytes": record.len_bytes});
    for (stage, ns) in stages(record) {
        args[format!("{}_us", stage.name())] = json!(ns as f64 / 1e3);
    }
    if record.origin_publisher != 0 {
        args["uncertain_us"] = json!(sent_uncertain(record));
    }
    args
}
