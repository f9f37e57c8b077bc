//! Holds the state of robot-net to linearizability, with processes that are killed in the middle.
//!
//! A round ([`round`]) is a domain of its own in which processes ([`role`]) use the state at random ([`workload`])
//! and write down what they ask and what they are told ([`log`]). They are killed and stopped at any moment.
//! What the logs say together is a history ([`history`]), and one order of its operations has to explain it
//! ([`check`]): what was answered took place between call and reply, what was not may have taken place or not.
//!
//! | module | what |
//! |---|---|
//! | [`history`] | what processes did and were told |
//! | [`spec`] | what the state is to do when one operation comes after the other |
//! | [`infer`] | what is known of operations that were not answered |
//! | [`check`] | whether one order of its operations explains a history |
//! | [`facts`] | what a history says of single values |
//! | [`value`] | values that show when they are torn |
//! | [`log`] | what a process was about to do and what it was told, safe from its death |
//! | [`workload`] | what a process does |
//! | [`watcher`] | watches, and what must be true of what they were told |
//! | [`role`], [`slots`], [`round`] | the processes, who starts and ends them, and the judge |
//! | [`points`] | the fail points of the state |

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
