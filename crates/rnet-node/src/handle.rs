//! A node handle for the types that are built from topics.

use std::sync::Arc;
use std::time::Duration;

use rnet_core::{Result, TopicName};

use crate::callback_errors::Report;
use crate::log::{self, LogLevel, Logger};
use crate::sim_clock::SimClock;
use crate::typed::{PublisherBuilder, SubscriberBuilder, TimerBuilder};
use crate::{EndpointEvent, EndpointWatch, Message, NodeCore, NodeSettings};

/// A node with its log. The node is closed when the last handle and endpoint is dropped, and its log with the
/// last handle.
#[derive(Clone)]
pub struct NodeHandle {
    /// The node itself; each handle and endpoint holds it.
    pub core: Arc<NodeCore>,
    /// The node's log.
    pub log: Logger,
}

impl NodeHandle {
    /// Joins the domain.
    ///
    /// # Errors
    /// As [`NodeSettings::open`], and `BadValue` for an invalid level in `RNET_LOG`.
    pub fn open(settings: NodeSettings) -> Result<NodeHandle> {
        let level = log::level_from_env()?;
        let core = settings.open()?;
        if core.state.time.is_simulated() {
            SimClock::start(&core)?;
        }
        let log = Logger::new(&core, level);
        let reports = log.downgrade();
        core.state.errors.set_reporter(move |report| {
            let Report { text, file, line, printed } = report;
            reports.write(LogLevel::Error, text, (file.as_str(), *line), !printed);
        });
        Ok(NodeHandle { core, log })
    }

    /// The node's name, with its leading slash.
    pub fn name(&self) -> &str {
        self.core.state.own.name().as_str()
    }

    /// A builder for a publisher; `topic` is resolved with the node's naming rules.
    pub fn publisher<T: Message + ?Sized>(&self, topic: &str) -> PublisherBuilder<T> {
        PublisherBuilder::new(&self.core, topic)
    }

    /// A builder for a subscriber; `topic` is resolved as in [`NodeHandle::publisher`].
    pub fn subscriber<T: Message + ?Sized>(&self, topic: &str) -> SubscriberBuilder<T> {
        SubscriberBuilder::new(&self.core, topic)
    }

    /// As [`NodeHandle::publisher`], for a topic by its name in the domain.
    pub fn publisher_at<T: Message + ?Sized>(&self, topic: TopicName) -> PublisherBuilder<T> {
        PublisherBuilder::at(&self.core, topic)
    }

    /// As [`NodeHandle::subscriber`], for a topic by its name in the domain.
    pub fn subscriber_at<T: Message + ?Sized>(&self, topic: TopicName) -> SubscriberBuilder<T> {
        SubscriberBuilder::at(&self.core, topic)
    }

    /// A builder for a timer.
    pub fn timer(&self, period: Duration) -> TimerBuilder {
        TimerBuilder::new(&self.core, period)
    }

    /// Calls `callback` for each publisher and subscription of the domain.
    ///
    /// # Errors
    /// `Closed` in a forked child; `Io` for the domain's directory.
    pub fn on_endpoint(
        &self,
        callback: impl FnMut(&EndpointEvent) + Send + 'static,
    ) -> Result<EndpointWatch> {
        EndpointWatch::start(&self.core, Box::new(callback))
    }

    /// Names of the other nodes of this host.
    pub fn peers(&self) -> Vec<String> {
        let matching = self.core.state.matching();
        matching.registry().peers().values().map(|peer| peer.node.meta().name.clone()).collect()
    }

    /// Whether the process of another node of this host is stopped by a signal or a debugger.
    pub fn is_stopped(&self, name: &str) -> bool {
        let matching = self.core.state.matching();
        let mut peers = matching.registry().peers().values();
        peers.any(|peer| peer.node.meta().name == name && peer.node.meta().is_stopped())
    }
}

impl AsRef<NodeCore> for NodeHandle {
    fn as_ref(&self) -> &NodeCore {
        &self.core
    }
}
