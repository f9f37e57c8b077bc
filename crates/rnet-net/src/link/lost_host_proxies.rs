//! Proxies of a lost host with messages that wait for capacity in a subscriber of this host.
//!
//! They stay open for a while, so that a slow subscriber that makes progress still receives these messages.
//! Messages that wait longer are requested again when the host returns; the host keeps them until it learns
//! that they were read. For a publisher that has ended, `Unsubscribe` reports that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::transport::HostId;

use super::control_state::ControlState;
use super::lock::lock;
use super::proxy::Proxy;
use super::resume_points::ResumePoint;

/// Messages that wait longer do not keep a proxy open: its other readers must learn that the host is lost.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(2);

/// A proxy, and since when its host is lost.
struct Orphan {
    proxy: Arc<Mutex<Proxy>>,
    since: Instant,
    /// Whether its publisher was lost with the host, and was not closed or lost before.
    is_lost: bool,
}

/// The proxies of lost hosts, by host and endpoint.
#[derive(Default)]
pub struct Orphans(BTreeMap<(HostId, u64), Orphan>);

impl ControlState {
    /// Adds the proxy of a lost host; `is_lost` if its publisher is lost with it.
    pub fn add_orphan(&mut self, of: (HostId, u64), proxy: Arc<Mutex<Proxy>>, is_lost: bool) {
        if lock(&proxy).is_blocked() {
            self.orphans.0.insert(of, Orphan { proxy, since: Instant::now(), is_lost });
        } else {
            self.close(of, &proxy, is_lost);
        }
    }

    /// Publishes the messages that fit now. Closes the proxies that have none left or that have waited too
    /// long.
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

    /// Closes the proxy of a publisher that is back: its waiting messages are requested again.
    pub fn close_orphan(&mut self, of: (HostId, u64)) {
        if let Some(orphan) = self.orphans.0.remove(&of) {
            self.close(of, &orphan.proxy, orphan.is_lost);
        }
    }

    /// Closes a proxy and keeps its resume point.
    fn close(&mut self, of: (HostId, u64), proxy: &Mutex<Proxy>, is_lost: bool) {
        let mut proxy = lock(proxy);
        let slot = proxy.take_slot();
        match proxy.position() {
            None => self.shared.positions.release(slot),
            Some(next_seq) => {
                self.shared.positions.retain(slot, of, next_seq, is_lost);
                // Includes the readers that were not admitted again since the earlier loss.
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
