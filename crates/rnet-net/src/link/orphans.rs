//! Proxies whose host is lost while something that has come waits for room in a subscriber of this host.
//!
//! They stay open for a while: who is slow and goes on still gets what came. What waits for longer is asked for again
//! when the host comes back, which keeps it for as long as it has not heard that it was read. Of a publisher that has
//! ended it hears that at last by `Unsubscribe`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::transport::HostId;

use super::control_state::ControlState;
use super::lock::lock;
use super::proxy::Proxy;
use super::resume_points::ResumePoint;

/// What waits for longer keeps no proxy open: others that read it are to hear that the host is lost.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(2);

/// A proxy, and since when its host is lost.
struct Orphan {
    proxy: Arc<Mutex<Proxy>>,
    since: Instant,
    /// Whether its publisher is lost with the host, and was not closed or lost before.
    is_lost: bool,
}

/// The proxies of lost hosts, by host and endpoint.
#[derive(Default)]
pub struct Orphans(BTreeMap<(HostId, u64), Orphan>);

impl ControlState {
    /// The host of a proxy is lost, and its publisher with it if `is_lost`.
    pub fn add_orphan(&mut self, of: (HostId, u64), proxy: Arc<Mutex<Proxy>>, is_lost: bool) {
        if lock(&proxy).is_blocked() {
            self.orphans.0.insert(of, Orphan { proxy, since: Instant::now(), is_lost });
        } else {
            self.close(of, &proxy, is_lost);
        }
    }

    /// Publishes what there is room for by now, and closes those of which nothing waits any more, or for too long.
    pub fn check_orphans(&mut self) {
        let mut over = Vec::new();
        for (of, orphan) in &self.orphans.0 {
            let mut proxy = lock(&orphan.proxy);
            let retried = proxy.retry();
            let is_over = !proxy.is_blocked() || orphan.since.elapsed() >= ORPHAN_TIMEOUT;
            over.push((*of, is_over, retried.err()));
        }
        for (of, is_over, error) in over {
            if let Some(error) = error {
                self.report(&error);
            }
            if is_over {
                self.close_orphan(of);
            }
        }
    }

    /// Its publisher is back: what waits is asked for again.
    pub fn close_orphan(&mut self, of: (HostId, u64)) {
        if let Some(orphan) = self.orphans.0.remove(&of) {
            self.close(of, &orphan.proxy, orphan.is_lost);
        }
    }

    /// Closes it, and keeps where it had come to.
    fn close(&mut self, of: (HostId, u64), proxy: &Mutex<Proxy>, is_lost: bool) {
        let mut proxy = lock(proxy);
        let slot = proxy.take_slot();
        match proxy.position() {
            None => self.shared.positions.release(slot),
            Some(next_seq) => {
                self.shared.positions.retain(slot, of, next_seq);
                // With those that it had not admitted again since it was lost before.
                let readers = &proxy.readers().1 | &proxy.previous_readers;
                if !proxy.expects_all_readers {
                    let (next_seq, known_lost) = (Some(next_seq), proxy.known_lost_at_position());
                    self.resume_points.insert(of, ResumePoint { next_seq, readers, known_lost });
                }
            }
        }
        proxy.close(is_lost);
    }
}
