//! Study 3 of the founding studies, "Benchmarking Comparison of Zenoh vs NATS", done again.
//!
//! `cargo bench -p bench-study3` (`-- --quick` for a short one) runs criterion's group "Pub-Sub" with the
//! study's functions and ours: an iteration publishes 1,000 [`TestMessage`]s; session, client and socket are
//! made before the loop; a subscriber lives in the same process. As there, each function exists with and
//! without an `Arc<Mutex<>>` around what publishes, and the lock is taken once per iteration. # Limits of the
//! study Its figure is how fast `publish` returns. A system that drops, or that has no subscriber at all,
//! looks fast. (In the study as published, NATS has no subscriber, and ZeroMQ's subscribes to the topic's
//! name while the messages do not begin with it, so that none is delivered.) Here each subscriber gets all
//! messages and counts them, and two things are added:
//!
//! - after each function: how many messages were published, and how many delivered;
//! - the group "Pub-Sub-delivered": the time to publish 1,000 messages *and* have them counted by
//!   the subscriber. There the next iteration begins when the last message has arrived, so that
//!   nothing piles up: its figure also has one latency in it.
//!
//! # How the systems are set up
//! As in the study: at their defaults, over TCP on 127.0.0.1, publisher and subscriber with a session of
//! their own. `systems/` has one file for each, which describes necessary differences. Defaults differ in
//! what happens when a subscriber is slower than its publisher: Zenoh and the zeromq crate drop at the
//! publisher, NATS at the subscriber's client (beyond 65,536 messages that it has not taken); `delivered`
//! shows it. libzmq, which the study does not have, and robot-net are set to wait for the subscriber, the
//! slower of their two ways. One thing differs for all asynchronous clients alike: each iteration enters the
//! runtime by itself, the study enters it once for a sample.
//!
//! # The file `delivered.json`
//! In `target/study3/`, or in the folder of the environment variable `STUDY3_OUT`; criterion's own files are
//! in `criterion/` beside it.
//!
//! ```json
//! {
//!   "study": "zenoh-vs-nats", "quick": false,
//!   "messages_per_iteration": 1000, "message_len_bytes": 13,
//!   "functions": [
//!     { "function": "nats", "system": "NATS", "mutex": false, "setup": "defaults; …",
//!       "why_not": null,
//!       "pub_sub":   { "published": 2500000, "delivered": 2500000,
//!                      "time_ns": { "low": 8e5, "estimate": 8.2e5, "high": 8.4e5 } },
//!       "delivered": { "published": 900000,  "delivered": 900000, "time_ns": { … } } },
//!     { "function": "nats_with_mutex", …, "why_not": "nats-server was not found: …" }
//!   ]
//! }
//! ```
//! `pub_sub` and `delivered` are the two groups ([`report::Figures`]); each is null when it did not
//! run (a filter on the command line, or `why_not`). `published` counts all iterations, warm-up
//! included. `time_ns` is criterion's: the time of an iteration, 1,000 messages, with the ends of
//! its confidence interval of 95 %. When `delivered.published` is above `delivered.delivered`,
//! messages were lost and that time contains waits for them; it is then no figure to quote.

pub mod arrivals;
pub mod function;
pub mod message;
mod nats_server;
pub mod report;
pub mod systems;

pub use arrivals::Arrivals;
pub use function::Function;
pub use message::TestMessage;

/// Messages in an iteration.
pub const MESSAGES: u64 = 1_000;
