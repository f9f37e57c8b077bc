//! Options of a write.

use std::time::Duration;

use crate::entry::LastWill;

/// Options of a write.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) expect: Option<u64>,
    pub(super) expiry: Option<Expiry>,
    pub(super) durable: Option<bool>,
    pub(super) will: Option<LastWill>,
    pub(super) change_type: bool,
}

/// Expiry of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expiry {
    After(Duration),
    /// A time in ns of CLOCK_BOOTTIME.
    At(u64),
}

/// The methods for the options of a write, for types with a field `options`.
macro_rules! option_methods {
    () => {
        /// Deletes the key if it is not written again for this time, by a clock that cannot be set. The clock
        /// runs while the machine is suspended, but not while it is off: a durable key then continues with
        /// the remaining time of the last disk write.
        pub fn ttl(mut self, ttl: std::time::Duration) -> Self {
            self.options.expiry = Some($crate::options::Expiry::After(ttl));
            self
        }

        /// Deletes the key at this time, in ns of CLOCK_BOOTTIME (`rnet::boot_ns`); immediately if it is
        /// past.
        pub fn expires_at_boot_ns(mut self, boot_ns: u64) -> Self {
            self.options.expiry = Some($crate::options::Expiry::At(boot_ns));
            self
        }

        /// Whether the key is stored on disk; the write then returns after it is. Without this option, an
        /// existing key keeps its setting, and a new key is in memory only.
        pub fn durable(mut self, yes: bool) -> Self {
            self.options.durable = Some(yes);
            self
        }

        /// Sets the key to this value when this node exits or dies, unless another writer has written it
        /// since.
        pub fn last_will(mut self, value: impl Into<$crate::Value>) -> Self {
            self.options.will = Some($crate::LastWill::Becomes(value.into()));
            self
        }

        /// Deletes the key when this node exits or dies, unless another writer has written it since.
        pub fn last_will_delete(mut self) -> Self {
            self.options.will = Some($crate::LastWill::Delete);
            self
        }

        /// Allows the write to change the type of the key.
        pub fn change_type(mut self) -> Self {
            self.options.change_type = true;
            self
        }
    };
}
pub(super) use option_methods;
