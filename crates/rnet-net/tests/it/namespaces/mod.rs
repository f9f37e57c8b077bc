//! The Zenoh network between hosts in namespaces, which are cut, slowed and rebooted.

mod addresses;
mod crowd;
mod delay;
mod disorder;
mod doctor;
mod drivers;
mod interfaces;
mod killed;
pub mod net;
mod nodes;
mod partitions;
mod peer;
mod relay;
mod reordered;
mod servers;
mod wheels;
mod zenoh;

use crate::drivers as driving;
use crate::partitions::{runs, traffic};
