//! The nodes of another host. A silent publisher on this host represents each, so that tools and `on_node`
//! find nodes without endpoints too.

use std::collections::{BTreeMap, BTreeSet};

use rnet::bridge::ProxyPublisher;
use rnet::bridge::{BridgePublisherBuilder, NODES_TOPIC};
use rnet::{Error, NodeName, Proxy, Publisher, PublisherQos, Result, TopicName, limits};

use super::super::announcements::Nodes;
use super::super::control_state::ControlState;
use super::Host;

/// The most nodes accepted from one host.
const MAX_NODES: usize = 1024;

/// The nodes of one host, by name.
#[derive(Default)]
pub struct HostNodes(BTreeMap<String, Publisher<[u8]>>);

impl HostNodes {
    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Marks all nodes as dead.
    pub fn lose(&mut self) {
        std::mem::take(&mut self.0).into_values().for_each(Publisher::close_as_lost);
    }
}

impl Host {
    /// Applies a report of nodes.
    pub fn apply_nodes(&mut self, control: &mut ControlState, mut report: Nodes) {
        self.apply_reported_hosts(&mut report);
        let mut died: BTreeSet<String> = report.died.into_iter().collect();
        if report.all {
            let here: BTreeSet<&str> =
                report.joined.iter().map(|node| node.name.as_str()).collect();
            died.extend(self.nodes.names().filter(|name| !here.contains(name)).map(str::to_owned));
        }
        for name in &died {
            if let Some(publisher) = self.nodes.0.remove(name) {
                publisher.close_as_lost();
            }
        }
        for name in &report.left {
            self.nodes.0.remove(name);
        }
        for node in report.joined {
            if let Err(error) = self.node_joined(control, &node.name) {
                control.report(&error);
            }
        }
    }

    fn node_joined(&mut self, control: &ControlState, name: &str) -> Result<()> {
        let name = NodeName::new(name)?.to_string();
        if self.nodes.0.contains_key(&name) {
            return Ok(());
        }
        if self.nodes.0.len() >= MAX_NODES {
            let what = format!("nodes of host {}", self.name);
            let hint = "the other host has an implausible number; check which program opens them"
                .to_owned();
            return Err(Error::LimitReached { what, limit: MAX_NODES, hint });
        }
        // Each term of the link uses the same number for a node.
        let proxy = Proxy::new(&self.name, &name, TopicName::new(&name)?.hash())?;
        let qos = PublisherQos {
            log_len_bytes: limits::MIN_LOG_LEN_BYTES,
            reserve_log: false,
            ..PublisherQos::default()
        };
        let publisher =
            control.shared.node.publisher::<[u8]>(NODES_TOPIC).qos(qos).proxy(proxy).open()?;
        self.nodes.0.insert(name, publisher);
        Ok(())
    }
}
