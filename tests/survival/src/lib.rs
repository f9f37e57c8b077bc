//! Kills nodes at every fail point and at random, and checks the promises to the survivors.
//!
//! One process (a test, or `survival soak`) is the judge: it holds the surviving readers and starts the
//! others, which are the binary `survival` in a role: a surviving writer, and victims. A ledger outside of
//! robot-net, written before and after each send, records the messages of a victim. So after a kill it is
//! known what each reader must account for: `committed <= received + lost <= started`.
//!
//! | module | content |
//! |---|---|
//! | [`message`] | messages that reveal when they are torn, mixed up or truncated |
//! | [`ledger`] | the messages that a victim was about to send and had sent |
//! | [`readers`] | the surviving readers |
//! | [`roles`] | the surviving writer, the victims |
//! | [`state`] | their use of the state |
//! | [`launching`] | a launcher and its keepers |
//! | [`callers`] | their use of services, actions, work queues and commands |
//! | [`world`] | a domain with its survivors, and the checks after each kill |
//! | [`points`] | every fail point in the sources |
//! | [`random`] | kills at random moments |
//! | [`rng`] | reproducible random numbers |

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

/// Long enough for any expected event.
pub const LONG: Duration = Duration::from_secs(30);
