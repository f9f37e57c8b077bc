//! The network on Zenoh between hosts of their own, which are cut, slowed and rebooted.

mod addresses;
mod crowd;
mod delay;
mod killed;
mod net;
mod nodes;
mod peer;
mod relay;
mod zenoh;
