//! Kills nodes at every fail point and at random, and holds the survivors to their promises.
//!
//! One process (a test, or `survival soak`) is the judge: it holds the surviving readers and starts
//! the others, which are the binary `survival` in a role: a surviving writer, and victims. What a
//! victim has sent stands in a ledger outside of robot-net, written before and after each send, so
//! that after a kill it is known what the readers must account for: `committed <= received + lost <=
//! started`, for each of them.
//!
//! | module | what |
//! |---|---|
//! | [`message`] | messages that show when they are torn, mixed up or cut |
//! | [`ledger`] | what a victim was about to send and what it had sent |
//! | [`readers`] | the surviving readers |
//! | [`roles`] | the surviving writer, the victims |
//! | [`state`] | what they do with the state |
//! | [`launching`] | a launcher and its keepers |
//! | [`callers`] | what they do with services, actions, work queues and commands |
//! | [`world`] | a domain with its survivors, and the checks after each kill |
//! | [`points`] | every fail point that the sources name |
//! | [`random`] | kills at random moments |
//! | [`rng`] | random numbers that can be had again |

pub mod callers;
pub mod launching;
pub mod ledger;
pub mod message;
pub mod points;
pub mod random;
pub mod readers;
pub mod rng;
pub mod roles;
pub mod state;
pub mod world;

use std::time::Duration;

/// Long enough for anything that is going to happen at all.
pub const LONG: Duration = Duration::from_secs(30);
