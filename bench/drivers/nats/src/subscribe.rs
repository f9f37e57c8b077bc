//! The receiving end.

use crate::server;
use bench_harness::{Net, Result, Sink, Subscription};
use futures_util::{FutureExt, StreamExt};
use std::thread;
use tokio::sync::oneshot;

/// Subscribes on a connection of its own.
pub fn start(net: &Net, subject: &str, mut sink: Sink) -> Result<Subscription> {
    let runtime = server::runtime()?;
    let client = server::connect(&runtime, net)?;
    let mut messages = runtime.block_on(client.subscribe(subject.to_owned()))?;
    runtime.block_on(client.flush())?;
    let (stop, mut stopped) = oneshot::channel::<()>();
    let thread = thread::Builder::new().name("subscriber".into()).spawn(move || {
        loop {
            let next = runtime.block_on(async {
                tokio::select! { message = messages.next() => message, _ = &mut stopped => None }
            });
            let Some(first) = next else { break };
            // The sink may publish, which enters a runtime: so it is called outside of this one. What
            // the connection's task has queued in its turn is taken whole before the next turn.
            sink(&first.payload);
            while let Some(Some(message)) = messages.next().now_or_never() {
                sink(&message.payload);
            }
        }
        drop(client);
    })?;
    Ok(Subscription::new(move || {
        let _ = stop.send(());
        let _ = thread.join();
    }))
}
