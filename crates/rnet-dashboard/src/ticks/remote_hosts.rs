//! Requests to other hosts, on their own threads, because the tick thread must not wait for a network.

use std::ops::Deref;
use std::sync::Arc;

use rnet::state::{RemoteState, Replica};
use tokio::sync::OwnedSemaphorePermit;

use crate::background_task::BackgroundTask;
use crate::operations::OperatorNode;
use crate::wire::Refusal;

const THREAD: &str = "rnet-dash-host";

/// The state of another host, for a subscription of a page.
pub struct RemoteHost {
    pub host: String,
    state: Option<RemoteState>,
    /// Its permit for a view of another host.
    permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl RemoteHost {
    pub fn new(host: String) -> RemoteHost {
        RemoteHost { host, state: None, permit: None }
    }

    /// Starts a request to the host.
    pub fn ask<T: Send + 'static>(
        &mut self,
        operator: &OperatorNode,
        what: impl FnOnce(&RemoteState) -> rnet::Result<T> + Send + 'static,
    ) -> Result<BackgroundTask<T>, Refusal> {
        let permit = match &self.permit {
            Some(permit) => permit.clone(),
            None => self.permit.insert(Arc::new(operator.acquire_remote_view()?)).clone(),
        };
        let state = match &self.state {
            Some(state) => state.clone(),
            None => self.state.insert(operator.state_of(&self.host)?).clone(),
        };
        BackgroundTask::start(THREAD, move || {
            let done = what(&state).map_err(Refusal::from);
            drop(permit);
            done
        })
    }

    /// `@host/key`.
    pub fn name(&self, key: &str) -> String {
        format!("@{}{key}", self.host)
    }
}

/// Followed keys of another host. Dropped on its own thread, because the replica's thread may be waiting for
/// an absent host.
pub struct RemoteReplica(Option<Replica>);

impl From<Replica> for RemoteReplica {
    fn from(replica: Replica) -> RemoteReplica {
        RemoteReplica(Some(replica))
    }
}

impl Deref for RemoteReplica {
    type Target = Replica;

    fn deref(&self) -> &Replica {
        self.0.as_ref().expect("the replica exists until drop")
    }
}

impl Drop for RemoteReplica {
    fn drop(&mut self) {
        let replica = self.0.take();
        // If no thread can be started, it is dropped here.
        let _ = std::thread::Builder::new().name(THREAD.to_owned()).spawn(move || drop(replica));
    }
}
