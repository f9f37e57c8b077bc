//! What clients look at: a domain, or a recording.

use crate::incoming::{ClientChannel, Parameter, PlaybackControl};
use crate::outgoing::PlaybackState;

/// What a client asks for beside messages. All may wait, and errors are words for the client.
pub trait Backend: Send + Sync {
    /// Prepares a channel on which a client publishes.
    fn open_channel(&self, _client: u64, _channel: &ClientChannel) -> Result<(), String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// Ends one.
    fn close_channel(&self, _client: u64, _channel: u32) {}
    /// Publishes.
    fn publish(&self, _client: u64, _channel: u32, _data: &[u8]) -> Result<(), String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// Calls a service, and gives its reply.
    fn call_service(
        &self,
        _service: &str,
        _encoding: &str,
        _data: &[u8],
    ) -> Result<Vec<u8>, String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// The parameters of these names, or all.
    fn get_parameters(&self, _names: &[String]) -> Result<Vec<Parameter>, String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// Sets one.
    fn set_parameter(&self, _parameter: &Parameter) -> Result<(), String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// Has the hub told of parameters that change.
    fn follow_parameters(&self) -> Result<(), String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// Plays on, stops or goes elsewhere.
    fn control_playback(&self, _control: &PlaybackControl) -> Result<PlaybackState, String> {
        Err("playback is not available: the server shows a live domain".to_owned())
    }
}

const RECORDING_ONLY: &str =
    "the server shows a recording: publishing, calling and setting are not available";
