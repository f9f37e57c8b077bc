//! The sending end.

use crate::session::Memory;
use crate::{failed, is_express};
use bench_harness::{Lane, Result, Topic};
use std::mem::MaybeUninit;
use zenoh::bytes::ZBytes;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::shm::{
    BlockOn, Defragment, GarbageCollect, PosixShmProviderBackend, ShmProvider, ShmProviderBuilder,
    ZShmMut,
};
use zenoh::{Session, Wait};

/// From this length on shared memory is used: Zenoh's own `message_size_threshold`.
const SHARED_FROM_LEN: usize = 3072;
/// Zenoh's own `pool_size`.
const POOL_LEN: usize = 16 << 20;
/// How many of the longest messages the pool holds at least.
const POOL_MESSAGES: usize = 8;

struct Publisher {
    publisher: zenoh::pubsub::Publisher<'static>,
    pool: Option<ShmProvider<PosixShmProviderBackend>>,
    // Closes when dropped, after the publisher.
    _session: Session,
}

/// A publisher in its own session.
pub(crate) fn open(
    session: Session,
    memory: Memory,
    topic: &Topic,
) -> Result<Box<dyn bench_harness::Publisher>> {
    let priority = match topic.lane {
        Lane::Bulk => Priority::DEFAULT,
        Lane::Urgent => Priority::RealTime,
    };
    let publisher = session
        .declare_publisher(topic.name.clone())
        .congestion_control(CongestionControl::Block)
        .priority(priority)
        .express(is_express(topic))
        .wait()
        .map_err(failed)?;
    let pool = match memory {
        Memory::Shared if topic.max_len >= SHARED_FROM_LEN => {
            let len = POOL_LEN.max(POOL_MESSAGES * topic.max_len);
            Some(ShmProviderBuilder::default_backend(len).wait().map_err(failed)?)
        }
        _ => None,
    };
    Ok(Box::new(Publisher { publisher, pool, _session: session }))
}

impl Publisher {
    fn put(&self, message: impl Into<ZBytes>) -> Result<()> {
        self.publisher.put(message).wait().map_err(failed)
    }

    /// A buffer in shared memory, where such a message goes through it. Waits for a free one.
    fn shared(&self, len: usize) -> Result<Option<ZShmMut>> {
        let Some(pool) = self.pool.as_ref().filter(|_| len >= SHARED_FROM_LEN) else {
            return Ok(None);
        };
        Ok(Some(pool.alloc(len).with_policy::<BlockOn<Defragment<GarbageCollect>>>().wait()?))
    }
}

impl bench_harness::Publisher for Publisher {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        match self.shared(message.len())? {
            Some(mut buffer) => {
                buffer.copy_from_slice(message);
                self.put(buffer)
            }
            None => self.put(message),
        }
    }

    fn send_in_place(&mut self, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        match self.shared(len)? {
            Some(mut buffer) => {
                fill(&mut buffer);
                self.put(buffer)
            }
            // Without shared memory, Zenoh takes over a vector as it is.
            None => {
                let mut message = Vec::with_capacity(len);
                let place: *mut [MaybeUninit<u8>] = &raw mut message.spare_capacity_mut()[..len];
                // SAFETY: the vector owns the bytes exclusively. They come from the allocator, and `fill`
                // writes each without reading any.
                fill(unsafe { &mut *(place as *mut [u8]) });
                // SAFETY: `fill` has written the first `len` bytes of the capacity.
                unsafe { message.set_len(len) };
                self.put(message)
            }
        }
    }
}
