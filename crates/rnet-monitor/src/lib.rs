//! What a robot-net domain looks like from outside, for the command line, for dashboards and for metrics.
//!
//! - `figures`: rates, latencies, losses and processes between two looks at a domain;
//! - `findings`: what is wrong, in words, and what to do about it; `talk`, `publishers`,
//!   `commands` and `link` find it;
//! - `doctor`: why a node does not hear another one, and what the machine lacks for real time;
//! - `endpoints`: publishers and subscriptions in lines;
//! - `domains`: the domains in a directory; `link_program`: the settings of `rnet-link`;
//! - `rates`, `delay`: of the messages of a topic; `servers`: services and actions;
//! - `metrics`: the figures as text for Prometheus;
//! - `health`: clocks, the launch, the black box, disks; `recorders`: recordings that are written;
//! - `problems`: what is wrong now, of both;
//! - `link`: what the link to other hosts says of itself;
//! - `graph`: publishers and subscribers as text and drawings; `top`: figures on a screen;
//! - `trace`: where the time of messages went;
//! - `documents`: values, parameters and commands as JSON; `used_types`: the types of the topics.
//!
//! Looking changes nothing in the domain, except that nodes whose process has died are swept up, as every node does
//! that sees them.

pub mod commands;
pub mod delay;
pub mod doctor;
pub mod documents;
pub mod domains;
pub mod endpoints;
mod figures;
mod findings;
pub mod graph;
pub mod health;
pub mod link;
pub mod link_program;
pub mod matching;
mod metrics;
mod node_filter;
mod problems;
mod process;
mod publishers;
mod qos;
pub mod rates;
pub mod recorders;
pub mod servers;
pub mod top;
mod topics;
pub mod trace;
pub mod used_types;

pub use figures::{DomainSnapshot, Endpoint, Figures, HostRow, Latency, NodeRow, TopicRow};
pub use findings::{Finding, Findings, Level};
pub use metrics::{MAX_SERIES_PER_KIND, MetricsFormat, metrics};
pub use node_filter::NodeFilter;
pub use problems::problems;
pub use process::Process;
pub use topics::{message_type, type_name, type_names};
