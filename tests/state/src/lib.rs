//! Tests the state of robot-net for linearizability, with processes that are killed in the middle.
//!
//! A round ([`round`]) is a domain in which processes ([`role`]) use the state at random ([`workload`]) and
//! record their requests and replies ([`log`]). They are killed and stopped at any moment. The logs
//! together are a history ([`history`]), and one order of its operations has to explain it ([`check`]):
//! answered operations took place between call and reply, unanswered ones may have taken place or not.
//!
//! | module | content |
//! |---|---|
//! | [`history`] | requests and replies of processes |
//! | [`spec`] | the sequential specification of the state |
//! | [`infer`] | facts about unanswered operations |
//! | [`check`] | the search for an order of operations that explains a history |
//! | [`facts`] | facts about single values in a history |
//! | [`value`] | values that reveal when they are torn |
//! | [`log`] | the requests and replies of a process, preserved after its death |
//! | [`workload`] | the operations of a process |
//! | [`watcher`] | watches, and the checks of their changes |
//! | [`role`], [`slots`], [`round`] | the processes, their start and end, and the judge |
//! | [`points`] | the fail points of the state |
#![forbid(unsafe_code)]

pub mod check;
pub mod facts;
pub mod history;
pub mod infer;
pub mod log;
pub mod points;
pub mod role;
pub mod round;
pub mod slots;
pub mod spec;
pub mod value;
pub mod watcher;
pub mod workload;
