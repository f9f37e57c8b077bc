//! `rnet foxglove`: a server of the Foxglove WebSocket protocol.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use rnet_foxglove::{FoxgloveError, Options, ServerHandle, serve};
use serde_json::json;

use super::access::access_failure;
use super::foxglove_args::{DEFAULT_PORT, FoxgloveArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use rnet_format::text::escape_controls;

/// Interval between two checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Messages of the server that wait to be printed: further ones are dropped.
const MAX_QUEUED_MESSAGES: usize = 256;

const _: () = assert!(DEFAULT_PORT == rnet_foxglove::DEFAULT_PORT);

/// A running server, and its messages.
pub struct FoxgloveServer {
    server: ServerHandle,
    messages: Receiver<String>,
}

pub fn run(context: &mut Context, args: &FoxgloveArgs) -> Outcome {
    let mut options = Options::new(context.existing_location()?);
    options.access = args.serve.access(args.port, None, args.read_only)?;
    options.recording.clone_from(&args.file);
    options.paused = args.paused;
    options.origins.clone_from(&args.origins);
    options.include_internal = args.all;
    let viewers = FoxgloveServer::start(options)?;
    let url = viewers.url();
    match context.json() {
        true => context.json_line(&json!({"url": url}))?,
        false => context.line(format_args!("{url}"))?,
    }
    context.flush()?;
    viewers.run_until_stopped(context)
}

impl FoxgloveServer {
    pub fn start(mut options: Options) -> Outcome<FoxgloveServer> {
        let (sender, messages) = sync_channel::<String>(MAX_QUEUED_MESSAGES);
        // Messages beyond the queue are dropped: a flood of clients must not block the server.
        options.on_event = Arc::new(move |text| drop(sender.try_send(text.to_owned())));
        let server = serve(options).map_err(|error| match error {
            FoxgloveError::Access(error) => access_failure(error),
            FoxgloveError::Origin(_) => Failure::Usage(error.to_string()),
            error => Failure::Failed(error.to_string()),
        })?;
        Ok(FoxgloveServer { server, messages })
    }

    /// The URL for viewers.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Prints the server's messages until a stop is requested.
    pub fn run_until_stopped(self, context: &mut Context) -> Outcome {
        while !signal::stop_requested() {
            match self.messages.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok(text) => context.eprintln(format_args!("{}", escape_controls(&text))),
                Err(RecvTimeoutError::Timeout) if self.server.is_finished() => {
                    let why = "the viewer server no longer updates: its thread has exited";
                    return Err(Failure::Failed(why.to_owned()));
                }
                Err(_) => {}
            }
        }
        let (stats, addr) = (self.server.stats(), self.server.addr());
        drop(self.server);
        // Prints its remaining messages.
        for text in self.messages.try_iter() {
            context.eprintln(format_args!("{}", escape_controls(&text)));
        }
        if stats.refused + stats.dropped > 0 {
            context.eprintln(format_args!(
                "{addr}: {} refused, {} messages dropped because viewers were too slow",
                stats.refused, stats.dropped
            ));
        }
        Err(Failure::Interrupted)
    }
}
