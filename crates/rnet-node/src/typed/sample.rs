//! Received messages.

use std::ops::Deref;
use std::time::Duration;

use rnet_shm::channel::reader::ReceivedMessage;
use rnet_shm::channel::received::{Payload, Stamp};

use crate::Message;
use crate::types::SchemaCache;
use rnet_core::{Meta, Origin, Result, TypeDesc};
use rnet_schema::Schema;

/// A received message, valid until the next receive from the same subscriber.
///
/// Large messages are read in the publisher's memory, which cannot be reused until the next receive; small
/// ones are read in the copy that the subscriber made of the log. [`Sample::into_owned`] keeps either for
/// longer without copying. Protobuf messages are decoded: when kept, they hold no memory of the publisher,
/// and [`Sample::into_message`] returns them.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("sample{}", std::process::id());
/// # let node = rnet::Node::builder("map").dir(dir).domain(&domain).open()?;
/// # let mut scans = node.publisher::<[u8]>("/scan").open()?;
/// # let mut subscriber = node.subscriber::<[u8]>("/scan").open()?;
/// # scans.wait_for_subscribers(1)?;
/// # scans.send(b"first")?;
/// # scans.send(b"second")?;
/// let first = subscriber.recv()?.into_owned(); // stays valid after the next receive
/// let second = subscriber.recv()?;
/// assert_eq!((&*first, &*second), (&b"first"[..], &b"second"[..]));
/// assert_eq!(second.seq(), first.seq() + 1);
/// # drop((first, second));
/// # drop((scans, subscriber));
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
pub struct Sample<'a, T: Message + ?Sized> {
    pub(crate) taken: ReceivedMessage<'a>,
    /// The decoded content.
    pub(crate) buffer: &'a mut T::DecodeBuffer,
}

impl<'a, T: Message + ?Sized> Sample<'a, T> {
    /// Whether it has metadata other than its number and its times.
    #[inline]
    pub fn has_meta(&self) -> bool {
        self.taken.has_meta()
    }

    /// Keeps the message until the result is dropped.
    ///
    /// At most [`rnet_core::limits::MAX_PINS_PER_READER`] large messages per publisher can be kept at a time;
    /// receiving then fails with `TooManyPins` until one is dropped. Any number of decoded messages can be
    /// kept.
    pub fn into_owned(self) -> OwnedSample<T> {
        OwnedSample {
            stamp: self.taken.stamp(),
            meta: self.taken.has_meta().then(|| Box::new(self.taken.meta())),
            payload: T::NEEDS_BYTES.then(|| self.taken.into_payload()),
            buffer: T::take_buffer(self.buffer),
        }
    }

    /// Returns the decoded message. For protobuf messages; copy plain ones with `*sample`. For an image and
    /// similar types it is only the header.
    ///
    /// ```no_run
    /// # let mut plans = rnet::Node::new("arm")?.subscriber::<rnet::msgs::JointState>("/joints").open()?;
    /// let joints: rnet::msgs::JointState = plans.recv()?.into_message();
    /// # Ok::<(), rnet::Error>(())
    /// ```
    pub fn into_message(self) -> T
    where
        T: Sized,
        T::DecodeBuffer: Into<Option<T>>,
    {
        decoded::<T>(T::take_buffer(self.buffer))
    }
}

fn decoded<T: Message>(buffer: T::DecodeBuffer) -> T
where
    T::DecodeBuffer: Into<Option<T>>,
{
    buffer.into().expect("a sample is decoded")
}

impl<T: Message + ?Sized> Sample<'_, T> {
    /// The bytes of the message as sent.
    pub fn bytes(&self) -> &[u8] {
        self.taken.bytes()
    }

    /// Whether the message has exceeded its publisher's lifespan since it was received, in which case it is
    /// counted. For a language whose callbacks wait for their interpreter.
    pub fn expire(&self) -> bool {
        self.taken.channel().count_if_expired(self.taken.stamp().sent_ns)
    }

    /// The topic of the message.
    pub fn topic(&self) -> &str {
        &self.taken.channel().meta().topic
    }

    /// Name of its publisher's node.
    pub fn node(&self) -> &str {
        self.taken.channel().node()
    }

    /// The uncertainty of its stamp, in ns: 0 for a message of this host; for one of another host, how well
    /// the link knows the clock there now. `None` if unknown.
    pub fn sent_uncertainty_ns(&self) -> Option<u64> {
        Some(self.taken.channel().uncertain_ns()).filter(|ns| *ns != u64::MAX)
    }

    /// The type that its publisher declares.
    pub fn type_desc(&self) -> &TypeDesc {
        &self.taken.channel().meta().type_desc
    }

    /// The protobuf type that its publisher declares, read on each call; `None` for other kinds of messages.
    ///
    /// # Errors
    /// `Io` after the node has left; `Corrupt` if its file does not hold this type.
    pub fn schema(&self) -> Result<Option<Schema>> {
        SchemaCache::default().read_protobuf(self.taken.channel().folder(), self.type_desc())
    }
}

crate::debug_by!(
    ['a, T: Message + ?Sized] Sample<'a, T>, "Sample",
    |this| "stamp": this.taken.stamp(), "bytes": this.taken.bytes()
);

impl<T: Message + ?Sized> Deref for Sample<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        T::view(self.taken.bytes(), self.buffer)
    }
}

/// A received message that the user keeps.
pub struct OwnedSample<T: Message + ?Sized> {
    stamp: Stamp,
    /// `None` for most messages.
    meta: Option<Box<Meta>>,
    /// `None` for decoded messages, which must not hold the publisher's memory.
    payload: Option<Payload>,
    buffer: T::DecodeBuffer,
}

impl<T: Message + ?Sized> Deref for OwnedSample<T> {
    type Target = T;
    fn deref(&self) -> &T {
        T::view(self.owned_bytes(), &self.buffer)
    }
}

impl<T: Message + ?Sized> OwnedSample<T> {
    fn owned_bytes(&self) -> &[u8] {
        self.payload.as_ref().map_or(&[], Payload::bytes)
    }

    /// The bytes of the message as sent; for bytes and plain types.
    ///
    /// A protobuf message was decoded and is kept without its bytes, so this does not compile for it. Use
    /// [`Sample::bytes`] on receipt, or a subscriber of `[u8]` to keep the bytes.
    pub fn bytes(&self) -> &[u8] {
        const {
            assert!(
                T::NEEDS_BYTES,
                "a decoded message is kept without its bytes: use Sample::bytes"
            )
        }
        self.owned_bytes()
    }

    /// As [`Sample::into_message`].
    pub fn into_message(self) -> T
    where
        T: Sized,
        T::DecodeBuffer: Into<Option<T>>,
    {
        decoded::<T>(self.buffer)
    }
}

crate::debug_by!(
    [T: Message + ?Sized] OwnedSample<T>, "OwnedSample",
    |this| "stamp": this.stamp, "bytes": this.payload.as_ref().map(Payload::bytes)
);

macro_rules! stamp_accessors {
    ($name:ty, |$self:ident| $stamp:expr, $meta:expr) => {
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
            /// When the subscriber took it out of the log, CLOCK_MONOTONIC in ns. Queued messages are taken
            /// together.
            pub fn taken_ns(&$self) -> u64 {
                $stamp.taken_ns
            }
            /// Its metadata.
            pub fn meta(&$self) -> Meta {
                $meta
            }
            /// Its origin, if it was forwarded.
            pub fn origin(&$self) -> Option<Origin> {
                $self.meta().origin
            }
            /// The time of its source, ns since 1970 UTC, if set.
            pub fn source_ns(&$self) -> Option<i64> {
                $self.meta().source_ns
            }
            /// Whether it is its publisher's last will: the process of the publisher has died.
            pub fn is_last_will(&$self) -> bool {
                $self.meta().last_will
            }
            /// Its correlation with another message, if set: in a reply, the number of the request.
            pub fn correlation(&$self) -> Option<u64> {
                $self.meta().correlation
            }
            /// Time from sending to taking.
            pub fn latency(&$self) -> Duration {
                Duration::from_nanos($stamp.taken_ns.saturating_sub($stamp.sent_ns))
            }
        }
    };
}
stamp_accessors!(Sample<'_, T>, |self| self.taken.stamp(), self.taken.meta());
stamp_accessors!(
    OwnedSample<T>,
    |self| self.stamp,
    self.meta.as_deref().copied().unwrap_or_default()
);
