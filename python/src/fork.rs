//! `os.fork`, and so `multiprocessing` where it forks.
//!
//! In a child, what was made before is closed, and left alone when it is dropped: that is so in
//! crate `rnet`, whose handler runs in every fork, whoever calls it. Here the question is asked
//! before a lock of this package's own is taken, which a thread of the parent may hold, and before
//! the GIL is let go of for it.

pub(crate) use rnet::fork::{ForkGuard, ProcessOwned};
