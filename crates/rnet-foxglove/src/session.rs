//! Handles the requests of a client.

use std::collections::BTreeSet;
use std::sync::Arc;

use rnet_access::Role;
use tokio::sync::Semaphore;
use tokio::task::{block_in_place, spawn_blocking};
use tokio_tungstenite::tungstenite::Message;

use crate::backend::Backend;
use crate::hub::{Client, Hub};
use crate::incoming::{self, BinaryFrame, ClientChannel, ClientRequest};
use crate::outgoing::{self, Level};

/// Maximum length of a text frame, in bytes.
const MAX_TEXT_LEN_BYTES: usize = 1 << 20;
/// Number of invalid frames before a client is disconnected. A valid request that is rejected does not count:
/// a slider moved too far, or a topic that has just gone, is not an attack.
const MAX_INVALID_FRAMES: u32 = 64;
/// Maximum number of channels on which a client publishes.
const MAX_CHANNELS: usize = 256;
/// Maximum number of pending calls of a client.
const MAX_CALLS: usize = 16;
/// Maximum number of names in a parameter request.
const MAX_NAMES: usize = 4096;
/// Maximum number of errors of a request that are reported as text.
const MAX_REPORTED_ERRORS: usize = 8;

/// A connected client. Dropping it removes the client, also after a panic in a request.
pub struct Session {
    hub: Arc<Hub>,
    backend: Arc<dyn Backend>,
    client: Arc<Client>,
    /// The channels on which it publishes.
    channels: BTreeSet<u32>,
    invalid_frames: u32,
    calls: Arc<Semaphore>,
}

impl Session {
    pub fn new(hub: Arc<Hub>, backend: Arc<dyn Backend>, client: Arc<Client>) -> Session {
        let calls = Arc::new(Semaphore::new(MAX_CALLS));
        hub.join(client.clone());
        Session { hub, backend, client, channels: BTreeSet::new(), invalid_frames: 0, calls }
    }

    /// Handles a frame. Errors of requests are sent to the client.
    ///
    /// # Errors
    /// Why the client is disconnected.
    pub fn handle_frame(&mut self, message: &Message) -> Result<(), &'static str> {
        let understood = match message {
            Message::Text(text) if text.len() > MAX_TEXT_LEN_BYTES => {
                let len = text.len();
                Err(format!(
                    "a text frame has {len} bytes, at most {MAX_TEXT_LEN_BYTES} are allowed"
                ))
            }
            Message::Text(text) => {
                incoming::parse_text(text).map(|request| self.handle_request(request))
            }
            Message::Binary(bytes) => {
                incoming::parse_binary(bytes).map(|frame| self.handle_binary(frame))
            }
            _ => Ok(Ok(())),
        };
        self.invalid_frames += u32::from(understood.is_err());
        if let Err(why) = understood.flatten() {
            self.client.queue.push_control(outgoing::status(Level::Error, &why));
        }
        match self.invalid_frames {
            MAX_INVALID_FRAMES.. => Err("too many invalid frames"),
            _ => Ok(()),
        }
    }

    fn handle_request(&mut self, request: ClientRequest) -> Result<(), String> {
        let (hub, client) = (&self.hub, &self.client);
        match request {
            ClientRequest::Subscribe { subscriptions } => {
                combine_errors(hub.subscribe(client, subscriptions).into_iter())
            }
            ClientRequest::Unsubscribe { subscription_ids } => {
                combine_errors(subscription_ids.into_iter().map(|id| hub.unsubscribe(client, id)))
            }
            ClientRequest::Advertise { channels } => {
                self.client.user.check(Role::Operate, "publishing")?;
                check_count(channels.len(), "channels")?;
                combine_errors(channels.into_iter().map(|channel| self.open(&channel)))
            }
            ClientRequest::Unadvertise { channel_ids } => {
                check_count(channel_ids.len(), "channels")?;
                combine_errors(channel_ids.into_iter().map(|channel| self.close(channel)))
            }
            ClientRequest::GetParameters { parameter_names, id } => {
                check_count(parameter_names.len(), "parameters")?;
                let found = block_in_place(|| self.backend.get_parameters(&parameter_names))?;
                client.queue.push_control(outgoing::parameter_values(&found, id.as_deref()));
                Ok(())
            }
            ClientRequest::SetParameters { parameters, id } => {
                self.client.user.check(Role::Operate, "setting parameters")?;
                check_count(parameters.len(), "parameters")?;
                let done = combine_errors(
                    parameters.iter().map(|one| block_in_place(|| self.backend.set_parameter(one))),
                );
                let Some(id) = id else { return done };
                // The current values, even if one could not be set.
                let names: Vec<String> = parameters.into_iter().map(|one| one.name).collect();
                let found = block_in_place(|| self.backend.get_parameters(&names));
                let read =
                    found.map_err(|why| format!("the parameter values cannot be read: {why}"));
                let sent = read.map(|found| {
                    client.queue.push_control(outgoing::parameter_values(&found, Some(&id)));
                });
                combine_errors([done, sent].into_iter())
            }
            ClientRequest::SubscribeParameterUpdates { parameter_names } => {
                block_in_place(|| self.backend.follow_parameters())?;
                hub.follow_parameters(client, parameter_names, true)
            }
            ClientRequest::UnsubscribeParameterUpdates { parameter_names } => {
                hub.follow_parameters(client, parameter_names, false)
            }
            ClientRequest::SubscribeConnectionGraph => {
                hub.follow_graph(client, true);
                Ok(())
            }
            ClientRequest::UnsubscribeConnectionGraph => {
                hub.follow_graph(client, false);
                Ok(())
            }
            ClientRequest::FetchAsset { uri, request_id } => {
                let why = format!("robot-net does not serve assets: {uri:.200}");
                client.queue.push_control(outgoing::fetch_asset_error(request_id, &why));
                Ok(())
            }
        }
    }

    fn handle_binary(&mut self, frame: BinaryFrame<'_>) -> Result<(), String> {
        match frame {
            BinaryFrame::Message { channel, data } => {
                if !self.channels.contains(&channel) {
                    return Err(format!("the channel {channel} was not advertised by this client"));
                }
                block_in_place(|| self.backend.publish(self.client.id, channel, data))
            }
            BinaryFrame::Call { service, call, encoding, data } => {
                self.call((service, call), encoding, data);
                Ok(())
            }
            // Every role may: it moves the view of a recording, and not the robot.
            BinaryFrame::PlaybackControl(control) => {
                let mut state = self.backend.control_playback(&control)?;
                state.request = Some(control.request);
                self.hub.broadcast(&outgoing::playback(&state));
                Ok(())
            }
        }
    }

    fn open(&mut self, channel: &ClientChannel) -> Result<(), String> {
        if self.channels.contains(&channel.id) {
            return Err(format!("channel {} is already advertised", channel.id));
        }
        if self.channels.len() >= MAX_CHANNELS {
            return Err(format!("a client can publish on at most {MAX_CHANNELS} channels"));
        }
        block_in_place(|| self.backend.open_channel(self.client.id, channel))
            .map_err(|why| format!("{:.255} cannot be published: {why}", channel.topic))?;
        self.channels.insert(channel.id);
        Ok(())
    }

    fn close(&mut self, channel: u32) -> Result<(), String> {
        if !self.channels.remove(&channel) {
            return Err(format!("the channel {channel} was not advertised by this client"));
        }
        block_in_place(|| self.backend.close_channel(self.client.id, channel));
        Ok(())
    }

    /// Calls a service in the background: a client may have several pending calls.
    fn call(&self, (service, call): (u32, u32), encoding: &str, data: &[u8]) {
        let client = self.client.clone();
        let fail =
            |why: &str| client.queue.push_control(outgoing::call_failure(service, call, why));
        if let Err(why) = client.user.check(Role::Operate, "calling services") {
            return fail(&why);
        }
        let Some(name) = self.hub.service_name(service) else {
            return fail(&format!("service {service} does not exist"));
        };
        let Ok(permit) = self.calls.clone().try_acquire_owned() else {
            return fail(&format!(
                "{MAX_CALLS} calls of this client are waiting for replies, the limit"
            ));
        };
        let (backend, encoding, data) = (self.backend.clone(), encoding.to_owned(), data.to_vec());
        let client = self.client.clone();
        spawn_blocking(move || {
            let reply = match backend.call_service(&name, &encoding, &data) {
                Ok(reply) => outgoing::call_response(service, call, &encoding, &reply),
                Err(why) => outgoing::call_failure(service, call, &why),
            };
            client.queue.push_control(reply);
            drop(permit);
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.hub.leave(self.client.id);
        for channel in std::mem::take(&mut self.channels) {
            self.backend.close_channel(self.client.id, channel);
        }
    }
}

/// Runs all requests, and combines their errors: the first as text, and the number of the others.
fn combine_errors(done: impl Iterator<Item = Result<(), String>>) -> Result<(), String> {
    let wrong: Vec<String> = done.filter_map(Result::err).collect();
    let mut text = wrong.iter().take(MAX_REPORTED_ERRORS).cloned().collect::<Vec<_>>().join("; ");
    match wrong.len() {
        0 => return Ok(()),
        n if n > MAX_REPORTED_ERRORS => text += &format!("; and {} more", n - MAX_REPORTED_ERRORS),
        _ => {}
    }
    Err(text)
}

fn check_count(names: usize, what: &str) -> Result<(), String> {
    match names {
        0..=MAX_NAMES => Ok(()),
        _ => Err(format!("{names} {what} in one request, at most {MAX_NAMES} are allowed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rnet_access::{Access, AccessOptions};

    use crate::incoming::{Parameter, PlaybackControl};
    use crate::outgoing::PlaybackState;
    use crate::queue::{Queue, QueueItem};

    fn client() -> Arc<Client> {
        let access = Access::new(AccessOptions::local(0), Arc::new(|_| {})).unwrap();
        let user = access.user([127, 0, 0, 1].into(), []).unwrap();
        Arc::new(Client { id: 1, user, queue: Queue::default() })
    }

    struct PanickingBackend;

    impl Backend for PanickingBackend {
        fn control_playback(&self, _control: &PlaybackControl) -> Result<PlaybackState, String> {
            panic!("a defect of the server")
        }
    }

    /// Simulates that the domain becomes unreadable while parameters are set.
    struct UnreadableBackend;

    impl Backend for UnreadableBackend {
        fn get_parameters(&self, _names: &[String]) -> Result<Vec<Parameter>, String> {
            Err("the domain cannot be read".to_owned())
        }

        fn set_parameter(&self, parameter: &Parameter) -> Result<(), String> {
            Err(format!("{} is read-only", parameter.name))
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn reports_rejection_even_if_values_cannot_be_read() {
        let client = client();
        let mut session =
            Session::new(Arc::new(Hub::default()), Arc::new(UnreadableBackend), client.clone());
        let asked =
            r#"{"op": "setParameters", "id": "x", "parameters": [{"name": "/a", "value": 1}]}"#;
        tokio::spawn(async move { session.handle_frame(&Message::text(asked)) })
            .await
            .unwrap()
            .unwrap();
        // The server information comes first.
        let reply = loop {
            let QueueItem::Message(reply) = client.queue.next().await else { panic!("an answer") };
            let reply = reply.into_text().unwrap();
            if reply.contains(r#""op":"status""#) {
                break reply;
            }
        };
        let both =
            "/a is read-only; the parameter values cannot be read: the domain cannot be read";
        assert!(reply.contains(both), "{reply}");
    }

    #[test]
    fn removes_client_after_panic_in_request() {
        let hub = Arc::new(Hub::default());
        let client = client();
        let mut session = Session::new(hub.clone(), Arc::new(PanickingBackend), client);
        assert_eq!(hub.client_count(), 1);
        let control = [3, 0, 0, 0, 128, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let ended =
            std::thread::spawn(move || session.handle_frame(&Message::binary(control.to_vec())));
        assert!(ended.join().is_err());
        assert_eq!(hub.client_count(), 0);
    }
}
