//! Restores the node's files in the domain's directory: somebody may remove the directory under living nodes.
//!
//! Each node checks its own files, and the state's file if it uses the state. It reports each restored file
//! by name on standard error, and notes it in the directory for `rnet doctor`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet_shm::state::FileStatus;

use crate::core::NodeState;

/// Time for which a file must be missing before it is restored: removing a directory recursively takes
/// several steps, which would meet files that are restored in between.
const RESTORE_DELAY: Duration = Duration::from_millis(200);

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// No file is missing.
    Intact,
    /// A file is missing; check again after this time.
    RetryAfter(Duration),
    /// A file was restored: the peers must be matched again.
    Restored,
}

/// What a node remembers between two checks.
#[derive(Debug, Default)]
pub struct DirectoryGuard {
    /// The last report: the same error is reported once.
    last_report: Option<String>,
    /// Since when a file is missing.
    missing_since: Option<Instant>,
}

impl DirectoryGuard {
    /// Restores missing files.
    pub fn check(&mut self, state: &Arc<NodeState>) -> CheckOutcome {
        let home = state.own.node_files();
        let back = if home.is_whole() {
            (self.last_report, self.missing_since) = (None, None);
            // A peer may have joined in between without seeing this node.
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
