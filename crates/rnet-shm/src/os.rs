//! Linux: memory, files, locks, threads, clocks and wake-ups. No module here knows what a domain or a channel
//! is.
//!
//! | module | contents |
//! |---|---|
//! | [`bell`], [`barrier`], [`event`] | sleeping and waking across processes; a descriptor for event loops |
//! | [`clock`], [`sleep`] | clocks, and sleeping by them alone |
//! | [`cpu`], [`priority`], [`thread`] | what threads ask of the scheduler; starting threads |
//! | `mapping`, `sigbus` | mapped memory with checked bounds; files that shrink under a mapping |
//! | `files`, `temp_file`, `unlinked_files` | files: errors that name them; complete at once; unnamed |
//! | `folders` | restores a file of this process that somebody has removed |
//! | [`file_lock`], `ofd` | locks of an open file description |
//! | [`fork`], `process_state` | what a forked child inherits; whether a process is exiting or stopped |
//! | [`process`], [`stop_signals`] | for programs: settings of child processes, signals that request a stop |
//! | [`random`], [`tcp`] | random numbers; the TCP connections of this process |
//! | [`shortage`] | the resource that the system has run out of, by name |

pub mod barrier;
pub mod bell;
pub mod clock;
pub mod cpu;
pub mod event;
#[cfg(debug_assertions)]
pub mod failpoint;
pub mod file_lock;
pub(crate) mod files;
pub(crate) mod folders;
pub mod fork;
pub(crate) mod mapping;
pub(crate) mod ofd;
pub mod priority;
pub mod process;
pub(crate) mod process_state;
pub mod random;
pub mod shortage;
pub(crate) mod sigbus;
pub mod sleep;
pub mod stop_signals;
pub mod tcp;
pub(crate) mod temp_file;
pub mod thread;
pub(crate) mod unlinked_files;
