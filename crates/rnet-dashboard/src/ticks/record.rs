//! Progress of the dashboard's recording, and status of the black box.

use std::time::Duration;

use rnet::{CallOptions, Client, Pending};
use rnet_record::blackbox::STATUS_SERVICE;
use serde_json::{Value as Json, json};

use super::full_update::Read;
use super::tick::Tick;

/// Timeout of an answer of the box.
const TIMEOUT: Duration = Duration::from_secs(2);

pub fn recordings() -> Read {
    let mut blackbox = BlackBox::default();
    Box::new(move |tick| {
        blackbox.poll(tick);
        let (recording, app) = (&tick.operations.recording, tick.operations.app());
        let (files, folder_problem) = recording.folder(app, tick.now);
        let data = json!({
            "recording": recording.progress(),
            "playing": tick.operations.playback.progress(),
            "blackbox": blackbox.status,
            "folder": app.options.recordings,
            "folder_problem": folder_problem,
            "files": files,
        });
        Ok(Some(data.to_string()))
    })
}

#[derive(Default)]
struct BlackBox {
    client: Option<Client<[u8], [u8]>>,
    pending_call: Option<Pending<[u8]>>,
    /// Its last answer.
    status: Json,
}

impl BlackBox {
    /// Reads its answer, and sends the next request, without waiting.
    fn poll(&mut self, tick: &Tick<'_>) -> Option<()> {
        let answer = self.pending_call.as_ref().map(|asked| asked.next_within(Duration::ZERO));
        match answer {
            None | Some(Err(rnet::Error::Interrupted)) => {}
            Some(Ok(Some(reply))) => {
                self.status = serde_json::from_slice(&reply).unwrap_or_default();
                self.pending_call = None;
            }
            Some(Ok(None) | Err(_)) => self.pending_call = None,
        }
        let servers = tick.view?.now.snapshot.servers();
        if !servers.iter().any(|server| server.service == STATUS_SERVICE) {
            *self = BlackBox::default();
            return None;
        }
        if self.client.is_none() {
            let node = tick.operations.operator.node().ok()?;
            self.client = node.client::<[u8], [u8]>(STATUS_SERVICE).open().ok();
        }
        if self.pending_call.is_none() {
            let options = CallOptions::new().timeout(TIMEOUT);
            self.pending_call = self.client.as_ref()?.start(b"", options).ok();
        }
        Some(())
    }
}
