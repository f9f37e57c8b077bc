//! Holds the state of robot-net to linearizability, with processes that are killed in the middle.
//!
//! | module | what |
//! |---|---|
//! | [`history`] | what processes did and were told |
//! | [`spec`] | what the state is to do when one operation comes after the other |
//! | [`infer`] | what is known of operations that were not answered |
//! | [`check`] | whether one order of its operations explains a history |
//! | [`dice`] | random numbers that can be had again |

pub mod check;
pub mod dice;
pub mod history;
pub mod infer;
pub mod spec;
