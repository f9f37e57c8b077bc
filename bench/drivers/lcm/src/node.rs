//! One LCM instance of this process for each multicast port, shared by its publishers and
//! subscriptions: LCM's own way, and each further instance would get every message again.

use crate::ffi;
use bench_harness::{Error, Lane, Net, Result, Sink, Topic};
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// LCM's default port; runs use later ones, apart from a robot's own traffic.
const DEFAULT_PORT: u16 = 7667;
/// Where the ports for urgent topics begin.
const URGENT_GAIN: u16 = 200;
/// Requested from the kernel, which grants at most net.core.rmem_max.
const RECEIVE_BUFFER: usize = 8 << 20;

/// `lcm_t`, whose functions any thread may call.
#[derive(Clone, Copy)]
pub struct Lcm(*mut c_void);

// SAFETY: lcm.h: an lcm_t is thread-safe; one thread at a time handles, as here.
unsafe impl Send for Lcm {}
// SAFETY: as above.
unsafe impl Sync for Lcm {}

impl Lcm {
    /// Joins the multicast group on `port`.
    pub fn create(port: u16) -> Result<Self> {
        let url = format!("udpm://239.255.76.67:{port}?ttl=0&recv_buf_size={RECEIVE_BUFFER}");
        let url = CString::new(url)?;
        // SAFETY: the text is read during the call.
        let lcm = unsafe { ffi::lcm_create(url.as_ptr()) };
        if lcm.is_null() {
            return Err(Error::new(NO_MULTICAST));
        }
        Ok(Self(lcm))
    }

    /// Publishes; `false` when the kernel refused.
    pub fn publish(self, channel: &CString, message: &[u8]) -> Result<bool> {
        let len = u32::try_from(message.len())?;
        // SAFETY: the instance lives while its node does; channel and bytes are read in the call.
        Ok(unsafe { ffi::lcm_publish(self.0, channel.as_ptr(), message.as_ptr(), len) } == 0)
    }

    /// Subscribes. The first time LCM sends itself a message and waits for it, so this also shows whether
    /// multicast works.
    pub fn subscribe(
        self,
        channel: &CString,
        handler: ffi::Handler,
        user: *mut c_void,
    ) -> Result<()> {
        // SAFETY: the callers keep `user` until the instance is destroyed.
        let subscription = unsafe { ffi::lcm_subscribe(self.0, channel.as_ptr(), handler, user) };
        if subscription.is_null() {
            return Err(Error::new(NO_MULTICAST));
        }
        // SAFETY: the subscription was just made.
        unsafe { ffi::lcm_subscription_set_queue_capacity(subscription, 0) };
        Ok(())
    }

    /// Waits for a message and hands it to its handlers; `false` on failure.
    fn handle(self) -> bool {
        // SAFETY: the instance lives until the thread that handles is joined.
        unsafe { ffi::lcm_handle(self.0) == 0 }
    }

    /// Ends the instance and its receive thread.
    pub fn destroy(self) {
        // SAFETY: the callers use the instance no more.
        unsafe { ffi::lcm_destroy(self.0) };
    }
}

const NO_MULTICAST: &str = "LCM found no working multicast (see the manual, UDP Multicast Setup): \
     ip link set lo multicast on; ip route add 224.0.0.0/4 dev lo";

/// A sink that can be taken away while LCM still knows its handler.
pub type Slot = Mutex<Option<Sink>>;

/// Locks, also a poisoned mutex.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Open {
    lcm: Lcm,
    users: usize,
    /// Owned here, behind the pointers that LCM has, until the instance is destroyed.
    slots: Vec<Arc<Slot>>,
    handling: Option<Handling>,
}

/// The thread that calls `lcm_handle`, and the means to stop it.
struct Handling {
    stop: Arc<AtomicBool>,
    wake: CString,
    thread: JoinHandle<()>,
}

static OPEN: LazyLock<Mutex<HashMap<u16, Open>>> = LazyLock::new(Mutex::default);

/// A use of an instance.
pub struct Node {
    port: u16,
    /// The instance.
    pub lcm: Lcm,
}

impl Node {
    /// Joins the group for `topic`, with the process's instance or as the first to use it.
    pub fn join(net: &Net, topic: &Topic) -> Result<Self> {
        let urgent = if topic.lane == Lane::Urgent { URGENT_GAIN } else { 0 };
        let port = DEFAULT_PORT + net.number + urgent;
        let mut all = lock(&OPEN);
        if let Some(open) = all.get_mut(&port) {
            open.users += 1;
            return Ok(Self { port, lcm: open.lcm });
        }
        let lcm = Lcm::create(port)?;
        all.insert(port, Open { lcm, users: 1, slots: Vec::new(), handling: None });
        Ok(Self { port, lcm })
    }

    /// Hands each message on `channel` to `sink`, on the thread that handles.
    pub fn subscribe(&self, channel: &CString, sink: Sink) -> Result<Arc<Slot>> {
        let mut all = lock(&OPEN);
        let open = all.get_mut(&self.port).ok_or_else(|| Error::new("LCM is closed"))?;
        let slot = Arc::new(Mutex::new(Some(sink)));
        let user = Arc::as_ptr(&slot).cast_mut().cast();
        open.slots.push(slot.clone());
        if let Err(error) = self.lcm.subscribe(channel, deliver, user) {
            // The sink may own a node, too, whose drop needs the lock.
            drop(all);
            drop(lock(&slot).take());
            return Err(error);
        }
        if open.handling.is_none() {
            open.handling = Some(Handling::start(self.lcm, channel)?);
        }
        Ok(slot)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut all = lock(&OPEN);
        let Some(open) = all.get_mut(&self.port) else { return };
        open.users -= 1;
        if open.users == 0
            && let Some(open) = all.remove(&self.port)
        {
            if let Some(handling) = open.handling {
                handling.end(open.lcm);
            }
            open.lcm.destroy();
        }
    }
}

impl Handling {
    fn start(lcm: Lcm, channel: &CString) -> Result<Self> {
        // A channel of this thread alone: lcm_handle has no time-out, and the call that has one
        // costs a system call more for each message.
        let wake = format!("{}.{}", std::process::id(), channel.to_string_lossy());
        let wake = CString::new(wake.chars().take(63).collect::<String>())?;
        lcm.subscribe(&wake, ignore, std::ptr::null_mut())?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let body = move || while !seen.load(Ordering::Relaxed) && lcm.handle() {};
        let thread = std::thread::Builder::new().name("lcm".into()).spawn(body)?;
        Ok(Self { stop, wake, thread })
    }

    fn end(self, lcm: Lcm) {
        self.stop.store(true, Ordering::Relaxed);
        while !self.thread.is_finished() {
            // UDP may lose it, so it is repeated.
            let _ = lcm.publish(&self.wake, &[]);
            std::thread::sleep(std::time::Duration::from_millis(1)); // sleep: paces the repetition
        }
        let _ = self.thread.join();
    }
}

unsafe extern "C" fn deliver(message: *const ffi::RecvBuf, _: *const c_char, user: *mut c_void) {
    // SAFETY: `user` is a slot that the open instance owns until it is destroyed.
    let slot = unsafe { &*user.cast::<Slot>() };
    // SAFETY: LCM gives a valid message for the time of the call.
    let message = unsafe { &*message };
    // SAFETY: data is inside LCM's packet buffer, also where data_size is 0.
    let bytes = unsafe { std::slice::from_raw_parts(message.data, message.data_size as usize) };
    if let Some(sink) = lock(slot).as_mut() {
        sink(bytes);
    }
}

/// The handler of a message that is only to end `lcm_handle`.
pub unsafe extern "C" fn ignore(_: *const ffi::RecvBuf, _: *const c_char, _: *mut c_void) {}
