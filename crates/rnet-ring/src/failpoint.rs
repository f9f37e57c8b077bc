//! Fail points, at which a test build may be killed or stopped.
//!
//! [`crate::fail_point!`] separates two steps that other processes can distinguish: two stores to shared
//! memory, or two calls that change files. In a release build it expands to nothing. In a development build
//! each pass calls the hook that `rnet-shm` installs, which may exit the process at that point
//! (docs/decisions/0011).

#[cfg(debug_assertions)]
mod hook {
    use std::sync::OnceLock;

    static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();

    /// Installs `hook` for all fail points; later calls have no effect.
    pub fn install(hook: fn(&'static str)) {
        let _ = HOOK.set(hook);
    }

    /// Reports that the process passes the fail point `name`.
    #[inline]
    pub fn pass(name: &'static str) {
        if let Some(hook) = HOOK.get() {
            hook(name);
        }
    }
}

#[cfg(debug_assertions)]
pub use hook::{install, pass};

/// A point at which a test build may be killed or stopped; see [`crate::failpoint`].
#[cfg(debug_assertions)]
#[macro_export]
macro_rules! fail_point {
    ($name:literal) => {
        $crate::failpoint::pass($name)
    };
}

/// A point at which a test build may be killed or stopped; see [`crate::failpoint`].
#[cfg(not(debug_assertions))]
#[macro_export]
macro_rules! fail_point {
    ($name:literal) => {};
}
