//! What clients look at: a domain, or a recording.

use crate::say::PlaybackState;
use crate::wire::{ClientChannel, Control, Parameter};

/// What a client asks for beside messages. All may wait, and errors are words for the client.
pub trait Backend: Send + Sync {
    /// Prepares a channel on which a client publishes.
    fn open(&self, _client: u64, _channel: &ClientChannel) -> Result<(), String> {
        Err(NO.to_owned())
    }
    /// Ends one.
    fn close(&self, _client: u64, _channel: u32) {}
    /// Publishes.
    fn publish(&self, _client: u64, _channel: u32, _data: &[u8]) -> Result<(), String> {
        Err(NO.to_owned())
    }
    /// Calls a service, and gives its reply.
    fn call(&self, _service: &str, _encoding: &str, _data: &[u8]) -> Result<Vec<u8>, String> {
        Err(NO.to_owned())
    }
    /// The parameters of these names, or all.
    fn parameters(&self, _names: &[String]) -> Result<Vec<Parameter>, String> {
        Err(NO.to_owned())
    }
    /// Sets one.
    fn set(&self, _parameter: &Parameter) -> Result<(), String> {
        Err(NO.to_owned())
    }
    /// Has the hub told of parameters that change.
    fn follow_parameters(&self) -> Result<(), String> {
        Err(NO.to_owned())
    }
    /// Plays on, stops or goes elsewhere.
    fn control(&self, _control: &Control) -> Result<PlaybackState, String> {
        Err("playback is not available: the server shows a live domain".to_owned())
    }
}

const NO: &str = "the server shows a recording: publishing, calling and setting are not available";
