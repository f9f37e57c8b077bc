//! Received messages.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use rnet_shm::channel::Taken;
use rnet_shm::taken::{Payload, Stamp};

use crate::Message;

/// A received message, valid until the next receive from the same subscriber.
///
/// Large messages are read where the publisher wrote them, which cannot reuse the memory until the
/// next receive; small ones in the copy that the subscriber made of the log. [`Sample::to_owned_sample`] keeps either for longer without copying.
pub struct Sample<'a, T: Message + ?Sized> {
    taken: Taken<'a>,
    held: &'a mut T::Held,
}

impl<'a, T: Message + ?Sized> Sample<'a, T> {
    /// The caller has decoded it.
    #[inline]
    pub(crate) fn new(taken: Taken<'a>, held: &'a mut T::Held) -> Self {
        Sample { taken, held }
    }

    /// Keeps the message for as long as the result lives.
    ///
    /// At most [`crate::limits::MAX_PINS_PER_READER`] large messages per publisher can be kept at
    /// a time; receiving then fails with `TooManyPins` until one is dropped.
    pub fn to_owned_sample(self) -> OwnedSample<T> {
        OwnedSample {
            stamp: self.taken.stamp(),
            payload: self.taken.into_payload(),
            held: T::keep(self.held),
        }
    }
}

impl<T: Message + ?Sized> Deref for Sample<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        T::view(self.taken.bytes(), self.held)
    }
}

/// A received message that is kept.
pub struct OwnedSample<T: Message + ?Sized> {
    stamp: Stamp,
    payload: Payload,
    held: T::Held,
}

impl<T: Message + ?Sized> Deref for OwnedSample<T> {
    type Target = T;
    fn deref(&self) -> &T {
        T::view(self.payload.bytes(), &self.held)
    }
}

macro_rules! stamp_accessors {
    ($name:ty, |$self:ident| $stamp:expr, $bytes:expr) => {
        impl<T: Message + ?Sized> $name {
            /// The publisher's id, the same for all its messages.
            pub fn publisher(&$self) -> u64 {
                $stamp.publisher
            }
            /// Number of the message, counted per publisher from 0.
            pub fn seq(&$self) -> u64 {
                $stamp.seq
            }
            /// When it was sent, CLOCK_MONOTONIC in ns.
            pub fn sent_ns(&$self) -> u64 {
                $stamp.sent_ns
            }
            /// When the subscriber took it out of the log, CLOCK_MONOTONIC in ns. Messages that
            /// had piled up are taken together.
            pub fn taken_ns(&$self) -> u64 {
                $stamp.taken_ns
            }
            /// The bytes of the message, as they were sent.
            pub fn bytes(&$self) -> &[u8] {
                $bytes
            }
            /// How long it took from sending to taking.
            pub fn latency(&$self) -> Duration {
                Duration::from_nanos($stamp.taken_ns.saturating_sub($stamp.sent_ns))
            }
        }

        impl<T: Message + ?Sized> fmt::Debug for $name {
            fn fmt(&$self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Sample").field("stamp", &$stamp).field("bytes", &$bytes).finish()
            }
        }
    };
}
stamp_accessors!(Sample<'_, T>, |self| self.taken.stamp(), self.taken.bytes());
stamp_accessors!(OwnedSample<T>, |self| self.stamp, self.payload.bytes());
