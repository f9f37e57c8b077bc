//! `rnet foxglove`: a server of the Foxglove WebSocket protocol.

pub mod args;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use rnet_foxglove::{FoxgloveError, Options, Tls, serve};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use crate::value::tame;
use args::FoxgloveArgs;

/// Between two looks at whether somebody said stop.
const STEP: Duration = Duration::from_millis(50);
/// What the server says while nobody takes it: more is left out.
const MAX_TOLD: usize = 256;

pub fn run(context: &mut Context, args: &FoxgloveArgs) -> Outcome {
    let mut options = Options::new(context.location_that_exists()?);
    options.listen = SocketAddr::new(args.address, args.port);
    options.recording.clone_from(&args.file);
    options.paused = args.paused;
    options.origins.clone_from(&args.origins);
    if let Some(path) = &args.token_file {
        let token = String::from_utf8(read(path)?);
        let token = token.map_err(|_| Failure::Usage(format!("{} is no text", path.display())))?;
        options.token = Some(token.trim().to_owned());
    }
    if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
        options.tls = Some(Tls { cert_pem: read(cert)?, key_pem: read(key)? });
    }
    options.read_only = args.read_only;
    options.all = args.all;
    let (sender, said) = sync_channel::<String>(MAX_TOLD);
    // What does not fit is left out: a flood of clients must not hold the server up.
    options.tell = Arc::new(move |text| drop(sender.try_send(text.to_owned())));
    let scheme = if options.tls.is_some() { "wss" } else { "ws" };
    let server = serve(options).map_err(|error| match error {
        FoxgloveError::Access(_) | FoxgloveError::Origin(_) => Failure::Usage(error.to_string()),
        error => Failure::Failed(error.to_string()),
    })?;
    let url = format!("{scheme}://{}", server.addr());
    match context.json() {
        true => context.json_line(&json!({"url": url}))?,
        false => context.line(format_args!("{url}"))?,
    }
    context.flush()?;
    while !signal::stopped() {
        match said.recv_timeout(STEP) {
            Ok(text) => context.say(format_args!("{}", tame(&text))),
            Err(RecvTimeoutError::Timeout) if server.is_over() => {
                return Err(Failure::Failed("the domain cannot be followed any more".to_owned()));
            }
            Err(_) => {}
        }
    }
    let (stats, addr) = (server.stats(), server.addr());
    drop(server);
    if stats.refused + stats.dropped > 0 {
        context.say(format_args!(
            "{addr}: {} refused, {} messages left out because viewers were too slow",
            stats.refused, stats.dropped
        ));
    }
    Err(Failure::Interrupted)
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| Failure::Failed(format!("cannot read {}: {error}", path.display())))
}
