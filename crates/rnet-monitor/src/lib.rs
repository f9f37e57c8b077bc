//! What a robot-net domain looks like from outside, for the command line, for dashboards and for metrics.
//!
//! - `figures`: rates, latencies, losses and processes between two looks at a domain;
//! - `findings`: what is wrong, in words, and what to do about it; `talk`, `publishers`,
//!   `commands` and `link` find it;
//! - `metrics`: the figures as text for Prometheus;
//! - `health`: clocks, the launch, the black box, disks; `recorders`: recordings that are written;
//! - `problems`: what is wrong now, of both;
//! - `link`: what the link to other hosts says of itself;
//! - `trace`: where the time of messages went;
//! - `value`, `documents`: messages, values, parameters and commands as JSON;
//! - `near`, `text`: names that were probably meant to be the same, and text of others on a terminal.
//!
//! Looking changes nothing in the domain, except that nodes whose process has died are swept up, as every node does
//! that sees them.
#![forbid(unsafe_code)]

pub mod commands;
pub mod documents;
mod figures;
mod findings;
pub mod health;
pub mod link;
pub mod matching;
mod metrics;
mod problems;
mod process;
mod publishers;
mod qos;
pub mod recorders;
pub mod suggestions;
pub mod text;
mod topics;
pub mod trace;
pub mod value;

pub use figures::{DomainSnapshot, Endpoint, Figures, HostRow, Latency, NodeRow, TopicRow};
pub use findings::{Finding, Findings, Level};
pub use metrics::{MAX_SERIES_PER_KIND, MetricsFormat, metrics};
pub use problems::problems;
pub use process::Process;
pub use topics::{type_name, type_names};
