//! An outside view of a robot-net domain, for the command line, dashboards and metrics.
//!
//! - `figures`: rates, latencies, losses and processes between two snapshots of a domain;
//! - `findings`: problems as text, with advice; `matching`, `publishers`, `commands` and `link` find them;
//! - `doctor`: why a node does not receive from another one, and what the machine lacks for real time;
//! - `endpoints`: publishers and subscriptions as text;
//! - `domains`: the domains in a directory; `link_program`: the settings of `rnet-link`;
//! - `rates`, `delay`: of the messages of a topic; `servers`: services and actions;
//! - `metrics`: the figures as text for Prometheus;
//! - `health`: clocks, the launch, the black box, disks; `recorders`: running recordings;
//! - `problems`: the current problems, from both;
//! - `link`: the status of the link to other hosts;
//! - `graph`: publishers and subscribers as text and drawings; `top`: figures on a screen;
//! - `trace`: where the time of messages is spent;
//! - `documents`: values, parameters and commands as JSON; `used_types`: the types of the topics.
//!
//! Observing changes nothing in the domain, except that nodes of dead processes are removed, as every node
//! does.
#![forbid(unsafe_code)]

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
