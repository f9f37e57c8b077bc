//! The deadlines and leases of a node's endpoints, which the control thread checks when they are due.
//!
//! Both sides of a match read the publisher's log, so both come to the same result without a message between
//! them. A node without such endpoints is not woken and checks nothing.

use std::sync::Arc;
use std::time::Duration;

use rnet_core::Result;
use rnet_shm::channel::publisher::{PeerPublisher, PublisherMap};
use rnet_shm::os::clock;

use super::Matching;
use super::own::{OwnPublisher, OwnSubscription};
use crate::callbacks::Callbacks;
use crate::deadlines::{Deadline, Lease};
use crate::match_event::{DeadlineMissed, LivelinessChange, LivelinessCounts, Notice, PeerInfo};

/// A publisher that one of our subscriptions watches.
pub struct WatchedPublisher {
    map: PublisherMap,
    deadline: Option<Deadline>,
    missed: u64,
    lease: Option<Lease>,
}

/// When the control thread checks deadlines and leases next.
#[derive(Debug)]
pub struct NextCheck {
    /// CLOCK_MONOTONIC in ns; [`u64::MAX`] if there is nothing to check.
    due_ns: u64,
    /// Whether it is earlier than the control thread knows.
    earlier: bool,
}

impl Default for NextCheck {
    fn default() -> Self {
        NextCheck { due_ns: u64::MAX, earlier: false }
    }
}

impl NextCheck {
    pub fn schedule(&mut self, due_ns: u64) {
        self.earlier |= due_ns < self.due_ns;
        self.due_ns = self.due_ns.min(due_ns);
    }
}

fn push_call<E: Send + 'static>(
    notices: &mut Vec<Notice>,
    match_callbacks: &Arc<Callbacks<E>>,
    event: E,
) {
    if !match_callbacks.is_empty() {
        let match_callbacks = match_callbacks.clone();
        notices.push(Notice::Call(Box::new(move || match_callbacks.call(&event))));
    }
}

impl Matching {
    /// Time until the next check; `None` if there is nothing to check.
    pub fn until_next_check(&mut self) -> Option<Duration> {
        self.next_check.earlier = false;
        let due_ns = Some(self.next_check.due_ns).filter(|due_ns| *due_ns != u64::MAX)?;
        Some(Duration::from_nanos(due_ns.saturating_sub(clock::now_ns())))
    }

    /// Whether a check is due earlier than the control thread knows.
    pub fn must_check_earlier(&self) -> bool {
        self.next_check.earlier
    }

    /// Starts to watch the deadline of one of our publishers.
    pub fn watch_own_deadline(&mut self, id: u64) {
        let Some(own) = self.publishers.get_mut(&id) else { return };
        let Some(period) = own.meta.qos.deadline else { return };
        let deadline = Deadline::new(period, clock::now_ns(), own.readers.map().newest());
        self.next_check.schedule(deadline.due_ns());
        own.deadline = Some(deadline);
        self.timed.insert(id);
    }

    /// A callback for changes of liveliness was added to a subscription.
    pub fn watch_leases(&mut self, id: u64) {
        let Some(own) = self.subscriptions.get(&id) else { return };
        let leases = own.watched.values().filter_map(|watched| watched.lease.as_ref());
        if let Some(due_ns) = leases.map(Lease::due_ns).min() {
            self.next_check.schedule(due_ns);
        }
    }

    /// A publisher was matched with one of our subscriptions: watches its deadline and lease.
    pub fn watch_peer(&mut self, id: u64, publisher: u64, watched: Option<WatchedPublisher>) {
        let (Some(own), Some(watched)) = (self.subscriptions.get_mut(&id), watched) else { return };
        let due_ns = watched.due_ns(!own.state.liveliness.is_empty());
        own.watched.insert(publisher, watched);
        self.next_check.schedule(due_ns);
        self.timed.insert(id);
    }

    /// Checks what is due, and counts missed periods.
    pub fn check_deadlines(&mut self) -> Vec<Notice> {
        let mut notices = Vec::new();
        let now_ns = clock::now_ns();
        if now_ns < self.next_check.due_ns {
            return notices;
        }
        let mut due_ns = u64::MAX;
        let (us, publishers) = (self.own.name().as_str(), &mut self.publishers);
        let subscriptions = &mut self.subscriptions;
        self.timed.retain(|id| {
            let due = match (publishers.get_mut(id), subscriptions.get_mut(id)) {
                (Some(own), _) => own.check_deadline(*id, us, now_ns, &mut notices),
                (_, Some(own)) => own.check_publishers(now_ns, &mut notices),
                _ => None,
            };
            due_ns = due_ns.min(due.unwrap_or(u64::MAX));
            due.is_some()
        });
        self.next_check = NextCheck { due_ns, earlier: false };
        self.expire_remote_nodes(now_ns, &mut notices);
        notices
    }

    /// How many publishers of one of our subscriptions are alive now.
    pub fn liveliness_of(&self, id: u64) -> LivelinessCounts {
        let now_ns = clock::now_ns();
        let alive = |watched: &WatchedPublisher| watched.lapsed_for_ns(now_ns).is_none();
        self.subscriptions.get(&id).map_or_else(Default::default, |own| own.count(alive))
    }
}

impl OwnPublisher {
    fn check_deadline(
        &mut self,
        id: u64,
        us: &str,
        now_ns: u64,
        notices: &mut Vec<Notice>,
    ) -> Option<u64> {
        let deadline = self.deadline.as_mut()?;
        let missed = deadline.check(now_ns, self.readers.map().newest());
        if missed > 0 {
            self.readers.count_deadline_missed(missed);
            let publisher = PeerInfo { id, node: us.to_owned() };
            let total = self.readers.deadline_missed();
            push_call(notices, &self.state.deadlines, DeadlineMissed { publisher, missed, total });
        }
        Some(deadline.due_ns())
    }
}

impl OwnSubscription {
    /// What to watch of a compatible publisher; `None` if it has neither a deadline that we count nor a
    /// lease.
    pub fn open_watch(&self, peer: &PeerPublisher) -> Result<Option<WatchedPublisher>> {
        let lease = peer.meta.qos.liveliness.lease();
        if self.meta.qos.deadline.is_none() && lease.is_none() {
            return Ok(None);
        }
        // Separate from the reader's map, which belongs to the user's thread.
        let (map, now_ns) = (peer.map()?, clock::now_ns());
        let deadline = self.meta.qos.deadline.map(|p| Deadline::new(p, now_ns, map.newest()));
        let lease = lease.map(|lease| Lease::new(lease, map.last_alive_ns(now_ns)));
        Ok(Some(WatchedPublisher { map, deadline, missed: 0, lease }))
    }

    fn check_publishers(&mut self, now_ns: u64, notices: &mut Vec<Notice>) -> Option<u64> {
        let leases = !self.state.liveliness.is_empty();
        let mut changed = Vec::new();
        for (publisher, watched) in &mut self.watched {
            let node = || self.known.get(publisher).cloned().flatten().unwrap_or_default();
            if let Some(deadline) = &mut watched.deadline {
                let missed = deadline.check(now_ns, watched.map.newest());
                if missed > 0 {
                    self.file.count_deadline_missed(*publisher, missed);
                    watched.missed = watched.missed.saturating_add(missed);
                    let publisher = PeerInfo { id: *publisher, node: node() };
                    let total = watched.missed;
                    let event = DeadlineMissed { publisher, missed, total };
                    push_call(notices, &self.state.deadlines, event);
                }
            }
            if let Some(lease) = watched.lease.as_mut().filter(|_| leases) {
                for alive in lease.check(now_ns, watched.map.last_alive_ns(now_ns)) {
                    changed.push((PeerInfo { id: *publisher, node: node() }, *alive));
                }
            }
        }
        for (publisher, alive) in changed {
            self.notify_liveliness(publisher, alive, notices);
        }
        self.expire_awaited(now_ns, notices);
        let watched = self.watched.values().map(|watched| watched.due_ns(leases));
        watched.chain(self.proxies.due_ns()).min()
    }

    /// A publisher has left. If it died, the running period of its deadline counts as missed at once.
    pub fn stop_watching_publisher(
        &mut self,
        id: u64,
        node: &str,
        died: bool,
        notices: &mut Vec<Notice>,
    ) {
        let Some(mut watched) = self.watched.remove(&id) else { return };
        if died && watched.deadline.take().is_some_and(|deadline| deadline.is_running()) {
            self.file.count_deadline_missed(id, 1);
            let publisher = PeerInfo { id, node: node.to_owned() };
            let total = watched.missed.saturating_add(1);
            let event = DeadlineMissed { publisher, missed: 1, total };
            push_call(notices, &self.state.deadlines, event);
        }
    }

    /// Calls the callbacks for a publisher that has become alive, or is no longer alive.
    pub fn notify_liveliness(&self, publisher: PeerInfo, alive: bool, notices: &mut Vec<Notice>) {
        if !self.state.liveliness.is_empty() {
            let counts = self.count(|watched| watched.lease.as_ref().is_none_or(Lease::is_alive));
            let event = LivelinessChange { publisher, alive, counts };
            push_call(notices, &self.state.liveliness, event);
        }
    }

    /// Counts compatible publishers. With a lease, `alive` decides; for others the kernel reports the exit.
    fn count(&self, alive: impl Fn(&WatchedPublisher) -> bool) -> LivelinessCounts {
        let mut counts = LivelinessCounts::default();
        for (id, _) in self.known.iter().filter(|(_, node)| node.is_some()) {
            let is_alive = self.watched.get(id).is_none_or(&alive);
            counts.alive += usize::from(is_alive);
            counts.not_alive += usize::from(!is_alive);
        }
        counts
    }
}

impl WatchedPublisher {
    fn due_ns(&self, leases: bool) -> u64 {
        let deadline = self.deadline.as_ref().map(Deadline::due_ns);
        let lease = self.lease.as_ref().filter(|_| leases).map(Lease::due_ns);
        deadline.into_iter().chain(lease).min().unwrap_or(u64::MAX)
    }

    /// For how long its lease has been over.
    fn lapsed_for_ns(&self, now_ns: u64) -> Option<u64> {
        let over_ns = self.lease.as_ref()?.expires_ns(self.map.last_alive_ns(now_ns));
        now_ns.checked_sub(over_ns)
    }
}
