//! Operations on the domain: the node of the dashboard, and its actions for pages.
//!
//! - `operator_node`: the node, opened on first use;
//! - `change`: state and parameters; `command`: authority; `call`: services and actions;
//! - `recording`: the recording of the dashboard; `recordings`: the files in its folder; `playback`: playing
//!   one of them;
//! - `launched`: requests to launched nodes; `types`: forms of types.

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

    /// The state of the dashboard.
    pub fn app(&self) -> &Arc<AppState> {
        &self.operator.app
    }

    /// Releases authority, closes the recording, stops playback, and leaves the domain.
    pub fn close(&self) {
        self.authority.close();
        let _ = self.recording.stop();
        let _ = self.playback.stop();
        self.operator.leave();
    }
}
