//! Places at which a test build may be killed or stopped.
//!
//! [`crate::fail_point!`] stands between two steps that other processes can tell apart: two stores to
//! shared memory, or two calls that change files. In a release build it expands to nothing. In a
//! development build each pass calls the hook that `rnet-shm` installs, which may end the process at that
//! place (docs/decisions/0011).

#[cfg(debug_assertions)]
mod hook {
    use std::sync::OnceLock;

    static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();

    /// Has `hook` called at every fail point from now on; the first one stays.
    pub fn install(hook: fn(&'static str)) {
        let _ = HOOK.set(hook);
    }

    /// The process passes the fail point `name`.
    #[inline]
    pub fn pass(name: &'static str) {
        if let Some(hook) = HOOK.get() {
            hook(name);
        }
    }
}

#[cfg(debug_assertions)]
pub use hook::{install, pass};

/// A place at which a test build may be killed or stopped; see [`crate::failpoint`].
#[cfg(debug_assertions)]
#[macro_export]
macro_rules! fail_point {
    ($name:literal) => {
        $crate::failpoint::pass($name)
    };
}

/// A place at which a test build may be killed or stopped; see [`crate::failpoint`].
#[cfg(not(debug_assertions))]
#[macro_export]
macro_rules! fail_point {
    ($name:literal) => {};
}
