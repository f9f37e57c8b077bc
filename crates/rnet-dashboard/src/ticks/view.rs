//! Figures and problems of the interval between two snapshots.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rnet::inspect::is_internal;
use rnet::msgs::link_status::State;
use rnet_monitor::link::host_of;
use rnet_monitor::{DomainSnapshot, Figures, Finding, problems};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::app_state::AppState;
use crate::times::unix_now_s;

/// How long a lost node is shown.
const GONE_TIME: Duration = Duration::from_secs(60);
/// Maximum number of lost nodes shown.
const MAX_GONE: usize = 64;

/// Two snapshots, and derived data.
pub struct View<'a> {
    pub figures: Figures,
    /// Including topics and nodes of robot-net itself.
    every: Figures,
    pub problems: Vec<Finding>,
    pub at_s: f64,
    pub now: &'a DomainSnapshot,
    pub domain: &'a str,
    pub exists: bool,
    gone: &'a GoneNodes,
    texts: [OnceCell<String>; 2],
}

impl<'a> View<'a> {
    pub fn new(
        before: &'a DomainSnapshot,
        now: &'a DomainSnapshot,
        gone: &'a GoneNodes,
        app: &'a AppState,
    ) -> View<'a> {
        let every = Figures::new(before, now);
        View {
            problems: problems(before, now, &every),
            figures: every.clone().without_internal(),
            every,
            at_s: unix_now_s(),
            now,
            domain: app.options.location.id().as_str(),
            exists: now.domain_exists(),
            gone,
            texts: Default::default(),
        }
    }

    /// The data of a subscription to figures; with `all`, also topics and nodes of robot-net itself. Created
    /// once for all pages.
    pub fn text(&self, all: bool) -> &str {
        self.texts[usize::from(all)].get_or_init(|| {
            let figures = if all { &self.every } else { &self.figures };
            json!({
                "at_s": self.at_s,
                "interval_s": figures.interval_s,
                "domain": self.domain,
                "host": self.now.own_host,
                "exists": self.exists,
                "nodes": figures.nodes,
                "topics": figures.topics,
                "hosts": figures.hosts,
                "insecure": figures.insecure,
                "problems": self.problems,
                "mismatches": self.mismatches(),
                "gone": self.gone.list(),
            })
            .to_string()
        })
    }

    /// Incompatible publishers and subscriptions, with the reason.
    fn mismatches(&self) -> Vec<Json> {
        let pairs = self.now.snapshot.pairs();
        let pairs = pairs.filter(|pair| !is_internal(&pair.publisher.topic));
        let found = pairs.filter_map(|pair| {
            let types = || Some(pair.type_mismatch()?.to_string());
            let why = pair.qos_mismatch().or_else(types)?;
            Some(json!({
                "topic": pair.publisher.topic,
                "publisher": pair.publisher.node,
                "subscriber": pair.subscription.node,
                "why": why,
            }))
        });
        found.take(MAX_GONE).collect()
    }
}

/// Whether a node that is gone has died, or its host is unreachable: [`problems`] names it or the host. A
/// node that left normally is not lost.
fn is_lost(current: &DomainSnapshot, node: &str) -> bool {
    let Some(host) = host_of(node).0 else {
        return current.snapshot.died.iter().any(|died| died == node);
    };
    let peers = current.link.iter().flat_map(|link| &link.peers);
    let connected = peers.filter(|peer| peer.state() == State::Connected);
    !connected.into_iter().any(|peer| peer.host == host)
}

/// Nodes that existed, and are lost.
#[derive(Default)]
pub struct GoneNodes {
    here: BTreeMap<String, String>,
    gone: Vec<(Instant, GoneNode)>,
}

#[derive(Clone, Serialize)]
struct GoneNode {
    node: String,
    host: String,
    since_s: f64,
}

impl GoneNodes {
    pub fn update(&mut self, current: &DomainSnapshot) {
        let own = &current.own_host;
        let local = current.snapshot.nodes.iter().filter(|node| node.meta.language != "tool");
        let mut here: BTreeMap<String, String> =
            local.map(|node| (node.meta.name.clone(), own.clone())).collect();
        for node in &current.snapshot.remote {
            let host = host_of(&node.node).0.unwrap_or(own).to_owned();
            here.insert(node.node.clone(), host);
        }
        let (now, since_s) = (Instant::now(), unix_now_s());
        self.gone.retain(|(at, row)| at.elapsed() < GONE_TIME && !here.contains_key(&row.node));
        for (node, host) in std::mem::take(&mut self.here) {
            if !here.contains_key(&node) && is_lost(current, &node) {
                self.gone.insert(0, (now, GoneNode { node, host, since_s }));
            }
        }
        self.gone.truncate(MAX_GONE);
        self.here = here;
    }

    fn list(&self) -> Vec<&GoneNode> {
        self.gone.iter().map(|(_, row)| row).collect()
    }
}
