//! The integration tests of this crate, one module per subject.

#[cfg(not(loom))]
mod admission_model;
#[cfg(not(loom))]
mod growth_model;
#[cfg(not(loom))]
mod hostile_log;
#[cfg(not(loom))]
mod interrupted_commit;
#[cfg(not(loom))]
mod log_model;
#[cfg(loom)]
mod loom_models;
#[cfg(loom)]
mod loom_state;
#[cfg(not(loom))]
mod state_doc;
#[cfg(not(loom))]
mod state_hostile;
#[cfg(all(debug_assertions, not(loom)))]
mod state_points;
