//! Keeping the node's place in the domain's directory: somebody may remove it under living nodes.
//!
//! Each node looks after what is its own, and after the state's file if it uses the state. What it puts back
//! is told on standard error, by name, and noted in the directory for `rnet doctor`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet_shm::state::FileStatus;

use crate::core::NodeState;

/// How long what is missing stays so before it is put back: whoever removes a directory with all in it takes
/// some steps, and would meet what is put back in between.
const RESTORE_DELAY: Duration = Duration::from_millis(200);

/// What came of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// All is in its place.
    Intact,
    /// Something is missing; look again after this time.
    RetryAfter(Duration),
    /// Something was put back: the peers are to be met again.
    Restored,
}

/// What a node remembers between two looks.
#[derive(Debug, Default)]
pub struct DirectoryGuard {
    /// What was reported last: the same error is reported once.
    last_report: Option<String>,
    /// Since when something is missing.
    missing_since: Option<Instant>,
}

impl DirectoryGuard {
    /// Puts back what is missing.
    pub fn check(&mut self, state: &Arc<NodeState>) -> CheckOutcome {
        let home = state.own.node_files();
        let back = if home.is_whole() {
            (self.last_report, self.missing_since) = (None, None);
            // Somebody may have come in the middle of that, and have seen nothing of this node.
            home.take_restored()
        } else {
            let since = *self.missing_since.get_or_insert_with(Instant::now);
            let left = RESTORE_DELAY.saturating_sub(since.elapsed());
            if !left.is_zero() {
                return CheckOutcome::RetryAfter(left);
            }
            match home.restore_missing() {
                Ok(back) => {
                    home.take_restored();
                    Some(back)
                }
                Err(error) => {
                    let path = state.domain.path().display();
                    self.report(
                        state,
                        format!(
                            "{path}, or a part of it, was removed and cannot be restored: {error}"
                        ),
                    );
                    None
                }
            }
        };
        let mut done = back.is_some();
        if let Some(back) = back {
            let path = state.domain.path().display();
            let mut text = format!(
                "{path}, or a part of it, was removed while its nodes run; restored, with {} files (possible causes: \
                 RemoveIPC in systemd-logind, a cleanup script; see: rnet doctor)",
                back.files
            );
            if !back.lost.is_empty() {
                text += &format!(
                    "; out of file descriptors (raise ulimit -n), so new nodes cannot see these until this node \
                     restarts: {}",
                    back.lost.join(" ")
                );
            }
            self.report(state, text);
            (self.last_report, self.missing_since) = (None, None);
            state.domain.note_restore(state.own.name());
        }
        for standing in state.put_back() {
            match standing {
                Ok(FileStatus::InPlace) => {}
                Ok(FileStatus::Restored) => done = true,
                Ok(FileStatus::Replaced) => self.report(
                    state,
                    "other nodes have started a new state since the domain's directory was removed; restart this node"
                        .to_owned(),
                ),
                Err(error) => self.report(state, error.to_string()),
            }
        }
        if done { CheckOutcome::Restored } else { CheckOutcome::Intact }
    }

    fn report(&mut self, state: &NodeState, text: String) {
        if self.last_report.as_ref() != Some(&text) {
            eprintln!("rnet: node {}: {text}", state.own.name());
            self.last_report = Some(text);
        }
    }
}
