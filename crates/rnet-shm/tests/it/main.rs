//! The integration tests of this crate, one module per subject.

mod announce;
mod layout_doc;
mod litmus;
mod lost_endpoints;
mod observers;
mod role;
mod sigbus;
mod state_disk;
mod state_model;
mod state_reap;
mod stop_requests;
mod watch;
