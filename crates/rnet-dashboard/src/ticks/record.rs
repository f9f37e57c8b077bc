//! How the recording of this dashboard goes, and what the black box says of itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::{CallOptions, Client, Pending};
use rnet_record::blackbox::STATUS_SERVICE;
use serde_json::{Value as Json, json};

use super::turn::{Sink, Tick};
use crate::outbox::Outbox;

const INTERVAL: Duration = Duration::from_secs(1);
/// For an answer of the box.
const TIMEOUT: Duration = Duration::from_secs(2);

pub struct RecordSink {
    sub: u64,
    outbox: Arc<Outbox>,
    last: Option<Instant>,
    client: Option<Client<[u8], [u8]>>,
    asked: Option<Pending<[u8]>>,
    blackbox: Json,
}

impl RecordSink {
    pub fn new(sub: u64, outbox: Arc<Outbox>) -> RecordSink {
        let (client, asked) = (None, None);
        RecordSink { sub, outbox, last: None, client, asked, blackbox: Json::Null }
    }

    /// Asks the black box, if there is one, without waiting for it.
    fn ask(&mut self, tick: &Tick<'_>) -> Option<()> {
        let servers = tick.view?.now.snapshot.servers();
        if !servers.iter().any(|server| server.service == STATUS_SERVICE) {
            (self.client, self.asked, self.blackbox) = (None, None, Json::Null);
            return None;
        }
        if self.client.is_none() {
            let node = tick.desk.seat.node().ok()?;
            self.client = node.client::<[u8], [u8]>(STATUS_SERVICE).ok();
        }
        if self.asked.is_none() {
            let options = CallOptions::new().timeout(TIMEOUT);
            self.asked = self.client.as_ref()?.start(b"", options).ok();
        }
        Some(())
    }

    fn take_answer(&mut self) {
        let Some(asked) = &self.asked else { return };
        match asked.next_within(Duration::ZERO) {
            Err(rnet::Error::Interrupted) => {}
            Ok(Some(reply)) => {
                self.blackbox = serde_json::from_slice(&reply).unwrap_or_default();
                self.asked = None;
            }
            Ok(None) | Err(_) => self.asked = None,
        }
    }
}

impl Sink for RecordSink {
    fn wants_look(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.duration_since(last) >= INTERVAL)
    }

    fn tick(&mut self, tick: &Tick<'_>) {
        self.take_answer();
        if tick.view.is_some() {
            self.ask(tick);
        }
        if !self.wants_look(tick.now) {
            return;
        }
        self.last = Some(tick.now);
        let (recording, world) = (&tick.desk.recording, tick.desk.world());
        let (files, folder_problem) = recording.folder(world, tick.now);
        let data = json!({
            "recording": recording.progress(),
            "playing": tick.desk.playing.progress(),
            "blackbox": self.blackbox,
            "folder": world.options.recordings,
            "folder_problem": folder_problem,
            "files": files,
        });
        self.outbox.whole(self.sub, data.to_string());
    }
}
