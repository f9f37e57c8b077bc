//! The clocks of a region: one that stamps writes, one that ends the time of keys.

use std::sync::Arc;

/// The clocks of a region.
#[derive(Clone)]
pub struct Clock {
    wall: Arc<dyn Fn() -> u64 + Send + Sync>,
    boot_ns: Arc<dyn Fn() -> u64 + Send + Sync>,
    boot: u64,
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock").field("boot", &self.boot).finish_non_exhaustive()
    }
}

impl Clock {
    /// Those of the machine.
    pub fn system() -> Clock {
        Clock::new(crate::os::clock::unix_ns, crate::os::clock::boot_ns)
            .in_boot(crate::os::clock::boot_id())
    }

    /// Others, for tests: one that may be set, which stamps writes, and one that cannot be, which ends the
    /// time of keys.
    pub fn new(
        wall: impl Fn() -> u64 + Send + Sync + 'static,
        boot: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Clock {
        Clock { wall: Arc::new(wall), boot_ns: Arc::new(boot), boot: 1 }
    }

    /// The same in another boot of the machine.
    pub fn in_boot(self, boot: u64) -> Clock {
        Clock { boot, ..self }
    }

    /// In which boot this is; 0 if that is not known.
    pub fn boot(&self) -> u64 {
        self.boot
    }

    /// Now, in ns since 1970.
    pub fn unix_ns(&self) -> u64 {
        (self.wall)()
    }

    /// Now, in ns of CLOCK_BOOTTIME.
    pub fn boot_ns(&self) -> u64 {
        (self.boot_ns)()
    }
}

/// One clock for both, for tests.
impl<F: Fn() -> u64 + Send + Sync + 'static> From<Arc<F>> for Clock {
    fn from(both: Arc<F>) -> Clock {
        Clock { wall: both.clone(), boot_ns: both, boot: 1 }
    }
}
