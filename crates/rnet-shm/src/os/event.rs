//! A descriptor that is readable while something is there, for loops that wait for descriptors: epoll,
//! asyncio, Qt, libuv.
//!
//! It is an `eventfd` of this process, which no peer sees. Senders do not know of it: they ring the bell of a
//! thread, and that thread raises the event.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

use rnet_core::Error;
use rustix::event::{EventfdFlags, eventfd};

use crate::os::files::io_error;
use crate::os::fork::ForkGuard;

/// An `eventfd` that is readable while the event is raised.
#[derive(Debug)]
pub struct Event {
    fd: OwnedFd,
    /// Changed together with the descriptor, so that both always agree.
    raised: Mutex<bool>,
    fork_guard: ForkGuard,
}

impl Event {
    /// An event that is not raised.
    ///
    /// # Errors
    /// `LimitReached` where the process has no descriptor left.
    pub fn new() -> Result<Event, Error> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| io_error("cannot create", Path::new("an eventfd"), errno))?;
        Ok(Event { fd, raised: Mutex::new(false), fork_guard: ForkGuard::here() })
    }

    fn set(&self, raised: bool) -> bool {
        // The descriptor of a forked child is that of its parent, and the lock may be held by a thread that
        // only the parent has.
        if self.fork_guard.is_from_parent() {
            return false;
        }
        let mut now = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        if *now == raised {
            return false;
        }
        *now = raised;
        // Neither blocks nor fails: the counter is 1 while raised, else 0.
        let _ = match raised {
            true => rustix::io::write(&self.fd, &1_u64.to_ne_bytes()),
            false => rustix::io::read(&self.fd, &mut [0_u8; 8]),
        };
        true
    }

    /// Makes the descriptor readable.
    pub fn raise(&self) {
        self.set(true);
    }

    /// Whether it is readable.
    pub fn is_raised(&self) -> bool {
        !self.fork_guard.is_from_parent()
            && *self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the descriptor unreadable; returns whether it was readable. Look for work once more after this:
    /// what raised the event before it is forgotten.
    pub fn lower(&self) -> bool {
        self.set(false)
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// As a waker, it raises the event.
impl Wake for Event {
    fn wake(self: Arc<Self>) {
        self.raise();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn is_readable(event: &Event) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(event, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    #[test]
    fn it_is_readable_while_it_is_raised() {
        let event = Event::new().unwrap();
        assert!(!is_readable(&event) && !event.lower());
        (0..3).for_each(|_| event.raise());
        assert!(is_readable(&event) && is_readable(&event));
        assert!(event.lower() && !is_readable(&event) && !event.lower());
        event.raise();
        assert!(is_readable(&event));
    }

    #[test]
    fn threads_that_raise_and_lower_leave_flag_and_descriptor_agreed() {
        let event = Arc::new(Event::new().unwrap());
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let event = event.clone();
                std::thread::spawn(move || {
                    for i in 0..10_000 {
                        match (i + n) % 2 {
                            0 => event.raise(),
                            _ => _ = event.lower(),
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let raised = is_readable(&event);
        assert_eq!(event.lower(), raised);
        assert!(!is_readable(&event));
    }
}
