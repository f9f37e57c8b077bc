//! What takes part in the domain: the node of the dashboard, and what it does for pages.
//!
//! - `seat`: the node, opened when it is first needed;
//! - `change`: state and parameters; `command`: authority; `call`: services and actions;
//! - `recording`: the recording of the dashboard; `recordings`: the files in its folder; `playing`: one of them that is
//!   played again;
//! - `launched`: orders to launched nodes; `types`: forms of types.

mod call;
mod change;
mod command;
mod launched;
mod playing;
mod recording;
pub mod recordings;
mod seat;
mod types;

use std::io;
use std::sync::Arc;

pub use call::{Running, call};
pub use change::{param_reset, param_set, state_delete, state_set};
pub use command::Authority;
pub use launched::{logs, order};
pub use playing::Playing;
pub use recording::{Recording, trigger};
pub use seat::Seat;
pub use types::form_of;

use crate::world::World;

pub struct Desk {
    pub seat: Seat,
    pub authority: Authority,
    pub recording: Recording,
    pub playing: Playing,
}

impl Desk {
    pub fn new(world: Arc<World>) -> io::Result<Desk> {
        let (authority, recording, playing) = Default::default();
        Ok(Desk { seat: Seat::new(world)?, authority, recording, playing })
    }

    /// What it was started with.
    pub fn world(&self) -> &Arc<World> {
        &self.seat.world
    }

    /// Ends what it does: gives authority back, closes the recording, ends the playing of one, and leaves the domain.
    pub fn close(&self) {
        self.authority.close();
        let _ = self.recording.stop();
        let _ = self.playing.stop();
        self.seat.leave();
    }
}
