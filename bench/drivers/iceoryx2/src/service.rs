//! A node and the services of one topic, with the same settings in each process.

use crate::Wake;
use crate::run_files::RunFiles;
use bench_harness::{Net, Result, Topic};
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::{event, publish_subscribe};

/// Limit of a subscriber's queue, in bytes of the longest message.
const QUEUE_LEN: usize = 32 << 20;

/// Messages of each publisher in a subscriber's queue.
pub(crate) fn queue_messages(topic: &Topic) -> usize {
    (QUEUE_LEN / topic.max_len.max(1)).clamp(8, 1024)
}

/// One endpoint's node and its topic's services.
pub(crate) struct Endpoint {
    pub samples: publish_subscribe::PortFactory<ipc::Service, [u8], ()>,
    pub events: Option<event::PortFactory<ipc::Service>>,
    // Declared after the services, and the directory after the node, so that they are dropped last.
    _node: Node<ipc::Service>,
    _files: RunFiles,
}

/// Joins the topic.
pub(crate) fn join(net: &Net, topic: &Topic, wake: Wake) -> Result<Endpoint> {
    // As iceoryx2's own benchmarks do.
    set_log_level(LogLevel::Error);
    let files = RunFiles::of(net);
    let node = NodeBuilder::new()
        .config(&files.config()?)
        .signal_handling_mode(SignalHandlingMode::Disabled)
        .create::<ipc::Service>()?;
    let name = ServiceName::new(&format!("bench/{}/{}", net.number, topic.name))?;
    // One of each endpoint, and one with which each subscription ends itself.
    let nodes = topic.publishers + 2 * topic.subscribers;
    let samples = node
        .service_builder(&name)
        .publish_subscribe::<[u8]>()
        .enable_safe_overflow(false)
        .history_size(0)
        .subscriber_max_buffer_size(queue_messages(topic))
        .max_publishers(topic.publishers)
        .max_subscribers(topic.subscribers)
        .max_nodes(nodes)
        .open_or_create()?;
    let events = match wake {
        Wake::Event => Some(
            node.service_builder(&name)
                .event()
                .max_notifiers(topic.publishers + topic.subscribers)
                .max_listeners(topic.subscribers)
                .max_nodes(nodes)
                .open_or_create()?,
        ),
        Wake::Poll => None,
    };
    Ok(Endpoint { samples, events, _node: node, _files: files })
}
