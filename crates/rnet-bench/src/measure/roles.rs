//! What workers do.

pub mod death;
pub mod echo;
pub mod load;
pub mod nodes;
pub mod robot;
