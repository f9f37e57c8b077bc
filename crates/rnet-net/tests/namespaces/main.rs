//! The network on Zenoh between hosts of their own, which are cut, slowed and rebooted.

mod addresses;
mod crowd;
mod delay;
mod disorder;
mod doctor;
mod drivers;
#[path = "../drivers/mod.rs"]
mod driving;
mod interfaces;
mod killed;
mod net;
mod nodes;
mod partitions;
mod peer;
#[path = "../partitions/random.rs"]
mod random;
mod relay;
mod reordered;
#[path = "../partitions/runs.rs"]
mod runs;
mod servers;
#[path = "../partitions/traffic.rs"]
mod traffic;
mod wheels;
mod zenoh;
