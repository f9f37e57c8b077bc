//! The integration tests of this crate, one module for each subject.

#[cfg(debug_assertions)]
mod handover;
#[cfg(debug_assertions)]
mod killed_calls;
#[cfg(debug_assertions)]
mod killed_launch;
#[cfg(debug_assertions)]
mod marks;
#[cfg(debug_assertions)]
mod points;
mod random;
