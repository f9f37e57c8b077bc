//! What is asked of other hosts: by threads of their own, because the thread of turns waits for no network.

use std::ops::Deref;
use std::sync::Arc;

use rnet::state::{RemoteState, Replica};
use tokio::sync::OwnedSemaphorePermit;

use crate::desk::Seat;
use crate::errand::Errand;
use crate::wire::Refusal;

const THREAD: &str = "rnet-dash-far";

/// The state of another host, for one subscription of a page.
pub struct Abroad {
    pub host: String,
    state: Option<RemoteState>,
    /// Its place among those that look at other hosts.
    place: Option<Arc<OwnedSemaphorePermit>>,
}

impl Abroad {
    pub fn new(host: String) -> Abroad {
        Abroad { host, state: None, place: None }
    }

    /// Asks it for something.
    pub fn ask<T: Send + 'static>(
        &mut self,
        seat: &Seat,
        what: impl FnOnce(&RemoteState) -> rnet::Result<T> + Send + 'static,
    ) -> Result<Errand<T>, Refusal> {
        let place = match &self.place {
            Some(place) => place.clone(),
            None => self.place.insert(Arc::new(seat.go_abroad()?)).clone(),
        };
        let state = match &self.state {
            Some(state) => state.clone(),
            None => self.state.insert(seat.state_of(&self.host)?).clone(),
        };
        Errand::start(THREAD, move || {
            let done = what(&state).map_err(Refusal::from);
            drop(place);
            done
        })
    }

    /// `@host/key`.
    pub fn name(&self, key: &str) -> String {
        format!("@{}{key}", self.host)
    }
}

/// Keys of another host that are followed. It ends on a thread of its own: that of the replica may be asking a host that
/// is away.
pub struct Followed(Option<Replica>);

impl From<Replica> for Followed {
    fn from(replica: Replica) -> Followed {
        Followed(Some(replica))
    }
}

impl Deref for Followed {
    type Target = Replica;

    fn deref(&self) -> &Replica {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let replica = self.0.take();
        // Where there is no thread it is waited for here.
        let _ = std::thread::Builder::new().name(THREAD.to_owned()).spawn(move || drop(replica));
    }
}
