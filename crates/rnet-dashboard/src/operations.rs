//! What takes part in the domain: the node of the dashboard, and what it does for pages.
//!
//! - `operator_node`: the node, opened when it is first needed;
//! - `change`: state and parameters; `command`: authority; `call`: services and actions;
//! - `recording`: the recording of the dashboard; `recordings`: the files in its folder; `playback`: one of them that is
//!   played again;
//! - `launched`: orders to launched nodes; `types`: forms of types.

mod call;
mod change;
mod command;
mod launched;
mod operator_node;
mod playback;
mod recording;
pub mod recordings;
mod types;

use std::io;
use std::sync::Arc;

pub use call::{JobContext, call};
pub use change::{param_reset, param_set, state_delete, state_set};
pub use command::Authority;
pub use launched::{logs, order};
pub use operator_node::OperatorNode;
pub use playback::Playback;
pub use recording::{Recording, trigger};
pub use types::form_of;

use crate::app_state::AppState;

pub struct Operations {
    pub operator: OperatorNode,
    pub authority: Authority,
    pub recording: Recording,
    pub playback: Playback,
}

impl Operations {
    pub fn new(app: Arc<AppState>) -> io::Result<Operations> {
        let (authority, recording, playback) = Default::default();
        Ok(Operations { operator: OperatorNode::new(app)?, authority, recording, playback })
    }

    /// What it was started with.
    pub fn app(&self) -> &Arc<AppState> {
        &self.operator.app
    }

    /// Ends what it does: gives authority back, closes the recording, ends the playing of one, and leaves the domain.
    pub fn close(&self) {
        self.authority.close();
        let _ = self.recording.stop();
        let _ = self.playback.stop();
        self.operator.leave();
    }
}
