//! The benchmarks of robot-net (`rnet bench`), its demo (`rnet demo`), and what they share with the comparison with other
//! systems: topologies and worker processes. The comparison builds without the feature `measure`.

#![forbid(unsafe_code)]

#[cfg(feature = "measure")]
pub mod demo;
#[cfg(feature = "measure")]
pub mod measure;
pub mod topology;
pub mod worker;
