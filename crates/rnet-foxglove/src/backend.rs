//! The data source of a server: a domain or a recording.

use crate::incoming::{ClientChannel, Parameter, PlaybackControl};
use crate::outgoing::PlaybackState;

/// Requests of clients other than subscriptions. All of them may block; errors are texts for the client.
pub trait Backend: Send + Sync {
    /// Opens a channel on which a client publishes.
    fn open_channel(&self, _client: u64, _channel: &ClientChannel) -> Result<(), String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// Closes such a channel.
    fn close_channel(&self, _client: u64, _channel: u32) {}
    /// Publishes a message.
    fn publish(&self, _client: u64, _channel: u32, _data: &[u8]) -> Result<(), String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// Calls a service, and returns its reply.
    fn call_service(
        &self,
        _service: &str,
        _encoding: &str,
        _data: &[u8],
    ) -> Result<Vec<u8>, String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// The parameters of these names; all if `names` is empty.
    fn get_parameters(&self, _names: &[String]) -> Result<Vec<Parameter>, String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// Sets a parameter.
    fn set_parameter(&self, _parameter: &Parameter) -> Result<(), String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// Starts notifying the hub of changed parameters.
    fn follow_parameters(&self) -> Result<(), String> {
        Err(RECORDING_ONLY.to_owned())
    }
    /// Resumes, pauses or seeks.
    fn control_playback(&self, _control: &PlaybackControl) -> Result<PlaybackState, String> {
        Err("playback is not available: the server shows a live domain".to_owned())
    }
}

const RECORDING_ONLY: &str =
    "the server shows a recording: publishing, calling and setting are not available";
