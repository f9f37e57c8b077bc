//! An outside view of a robot-net domain, for the command line, dashboards and metrics.
//!
//! - `figures`: rates, latencies, losses and processes between two snapshots of a domain;
//! - `findings`: problems as text, with advice; `matching`, `publishers`, `commands` and `link` find them;
//! - `metrics`: the figures as text for Prometheus;
//! - `health`: clocks, the launch, the black box, disks; `recorders`: running recordings;
//! - `problems`: the current problems, from both;
//! - `link`: the status of the link to other hosts;
//! - `trace`: where the time of messages is spent;
//! - `value`, `documents`: messages, values, parameters and commands as JSON;
//! - `suggestions`, `text`: similar names, and untrusted text on a terminal.
//!
//! Observing changes nothing in the domain, except that nodes of dead processes are removed, as every node
//! does.

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
