//! The services and actions of the domain.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::inspect::{CallType, ServerInfo};
use serde_json::{Value as Json, json};

use super::turn::{Sink, Tick};
use crate::outbox::Outbox;

const INTERVAL: Duration = Duration::from_millis(500);

pub struct ServicesSink {
    sub: u64,
    outbox: Arc<Outbox>,
    told: String,
    last: Option<Instant>,
}

impl ServicesSink {
    pub fn new(sub: u64, outbox: Arc<Outbox>) -> ServicesSink {
        ServicesSink { sub, outbox, told: String::new(), last: None }
    }
}

impl Sink for ServicesSink {
    fn wants_look(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.duration_since(last) >= INTERVAL)
    }

    fn tick(&mut self, tick: &Tick<'_>) {
        let Some(view) = tick.view else { return };
        self.last = Some(tick.now);
        let mut services: BTreeMap<&str, Vec<ServerInfo<'_>>> = BTreeMap::new();
        for server in view.now.snapshot.servers() {
            services.entry(server.service).or_default().push(server);
        }
        let services: Vec<Json> =
            services.iter().filter_map(|(name, servers)| row(name, servers)).collect();
        let text = json!({"services": services}).to_string();
        if text != self.told || self.outbox.take_broken(self.sub) {
            self.outbox.whole(self.sub, text.clone());
            self.told = text;
        }
    }
}

fn row(name: &str, servers: &[ServerInfo<'_>]) -> Option<Json> {
    let type_name = |of: CallType<'_>| of.desc.name().unwrap_or("raw").to_owned();
    // Servers that do not agree show the types of the first.
    let known = servers.iter().find(|server| server.reply_type().is_some())?;
    let feedback = known.feedback_type().map(type_name);
    let nodes: Vec<&str> = servers.iter().map(ServerInfo::node).collect();
    Some(json!({
        "service": name,
        "kind": if feedback.is_some() { "action" } else { "service" },
        "nodes": nodes,
        "clients": servers.iter().map(|server| server.clients).max(),
        "request": type_name(known.request_type()),
        "reply": known.reply_type().map(type_name),
        "feedback": feedback,
    }))
}
