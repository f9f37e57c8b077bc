//! Support for `os.fork`, and for `multiprocessing` where it forks.
//!
//! In a child, objects that were created before the fork are closed, and dropping them has no effect. Crate
//! `rnet` does that; its handler runs in every fork, whichever code calls it. This package checks for a fork
//! before it takes one of its own locks, which a thread of the parent may hold, and before it releases the
//! GIL for that.

pub(crate) use rnet::fork::{ForkGuard, ProcessOwned};
