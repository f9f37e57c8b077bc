//! Bridges two domains of one host: the subscribers of domain TO receive what is published in domain FROM.
//! In FROM they appear as `@TO/…`, so that publishers know them, and a topic that nobody wants does not cross.
//!
//! `example-bridge FROM TO` runs until it is stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rnet::bridge::{BridgePublisher, BridgeSubscriberBuilder};
use rnet::{Endpoint, EndpointEvent, EndpointQos, Node, OnFull, Origin, Proxy, Subscription};

/// The number of the domain FROM in the origins of its messages.
const HOST: u64 = 1;

fn main() -> rnet::Result<()> {
    let [from, to] = std::env::args().skip(1).collect::<Vec<_>>().try_into().unwrap_or_else(|_| {
        eprintln!("usage: example-bridge FROM TO");
        std::process::exit(2)
    });
    let source = Node::builder("bridge").domain(&from).open()?;
    let target = Node::builder("bridge").domain(&to).open()?;
    let (writer, mut topics) =
        (target.clone(), BTreeMap::<String, (BTreeSet<u64>, Subscription)>::new());
    let _watch = target.on_endpoint(move |event| match event {
        EndpointEvent::Opened(endpoint) if is_wanted(endpoint) => {
            if let Some((readers, _bridge)) = topics.get_mut(&endpoint.topic) {
                readers.insert(endpoint.id);
                return;
            }
            match open(&source, &writer, &to, endpoint) {
                Ok(bridge) => {
                    let readers = BTreeSet::from([endpoint.id]);
                    topics.insert(endpoint.topic.clone(), (readers, bridge));
                }
                Err(error) => eprintln!("{error}"),
            }
        }
        EndpointEvent::Closed(endpoint) | EndpointEvent::Lost(endpoint) => {
            topics.retain(|_, (readers, _)| !readers.remove(&endpoint.id) || !readers.is_empty());
        }
        _ => {}
    })?;
    println!("bridging");
    loop {
        std::thread::park();
    }
}

/// Subscribers of the users' topics, except those that another bridge or a link stands for.
fn is_wanted(endpoint: &Endpoint) -> bool {
    let subscribes = matches!(endpoint.qos, EndpointQos::Subscriber(_));
    subscribes && endpoint.proxy.is_none() && !endpoint.topic.starts_with("/_rnet/")
}

fn open(from: &Node, to: &Node, host: &str, of: &Endpoint) -> rnet::Result<Subscription> {
    let EndpointQos::Subscriber(qos) = of.qos.clone() else { unreachable!("it subscribes") };
    let (message_type, on_full) = (of.message_type()?, OnFull::Wait(Duration::from_secs(1)));
    let publisher = to.publisher::<[u8]>(&of.topic).message_type(message_type.clone());
    let mut publisher = publisher.reliable(on_full).open()?;
    // Before the first message is read.
    publisher.wait_for_subscribers_timeout(1, Duration::from_secs(1))?;
    let proxy = Proxy::new(host, &of.node, of.id)?;
    let reader = from.subscriber::<[u8]>(&of.topic).message_type(message_type).qos(qos).keep_all();
    Ok(reader.proxy(proxy, 1).open()?.on(move |sample| {
        let origin = Origin { host: HOST, publisher: sample.publisher(), seq: sample.seq() };
        let meta = sample.meta().with_origin(origin);
        if let Err(error) = publisher.forward(&sample, meta, sample.sent_ns()) {
            eprintln!("a message of {} is lost: {error}", publisher.topic());
        }
    }))
}
