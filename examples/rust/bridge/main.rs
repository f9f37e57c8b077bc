//! Bridges two domains of one host: each publisher of the first domain appears in the second, as the
//! publisher of a node of "host" FROM, with its type, quality of service, numbers and times.
//!
//! `example-bridge FROM TO` runs until it is stopped.

use std::collections::BTreeMap;

use rnet::bridge::{BridgePublisher, BridgePublisherBuilder, BridgeSubscriberBuilder};
use rnet::{Endpoint, EndpointEvent, EndpointQos, Node, Origin, Proxy, Reliability, Subscription};

/// The number of the domain FROM in the origins of its messages.
const HOST: u64 = 1;

fn main() -> rnet::Result<()> {
    let mut domains = std::env::args().skip(1);
    let (Some(from), Some(to)) = (domains.next(), domains.next()) else {
        eprintln!("usage: example-bridge FROM TO");
        std::process::exit(2);
    };
    let source = Node::builder("bridge").domain(&from).open()?;
    let target = Node::builder("bridge").domain(&to).open()?;
    let (reader, mut bridged) = (source.clone(), BTreeMap::new());
    let _watch = source.on_endpoint(move |event| match event {
        EndpointEvent::Opened(endpoint) if is_wanted(endpoint) => {
            match bridge(&reader, &target, &from, endpoint) {
                Ok(subscription) => _ = bridged.insert(endpoint.id, subscription),
                Err(error) => eprintln!("{} is not bridged: {error}", endpoint.topic),
            }
        }
        EndpointEvent::Closed(endpoint) | EndpointEvent::Lost(endpoint) => {
            bridged.remove(&endpoint.id);
        }
        _ => {}
    })?;
    println!("bridging");
    loop {
        std::thread::park();
    }
}

/// Publishers of the users' topics, except those that another bridge or a link has brought here.
fn is_wanted(endpoint: &Endpoint) -> bool {
    let is_publisher = matches!(endpoint.qos, EndpointQos::Publisher(_));
    is_publisher && endpoint.proxy.is_none() && !endpoint.topic.starts_with("/_rnet/")
}

fn bridge(from: &Node, to: &Node, host: &str, of: &Endpoint) -> rnet::Result<Subscription> {
    let EndpointQos::Publisher(qos) = of.qos.clone() else { unreachable!("it is a publisher") };
    let (message_type, reliable) = (of.message_type()?, qos.reliability == Reliability::Reliable);
    let publisher = to.publisher::<[u8]>(&of.topic).qos(qos).message_type(message_type.clone());
    let mut publisher = publisher.proxy(Proxy::new(host, &of.node, of.id)?).open()?;
    let reader = from.subscriber::<[u8]>(&of.topic).message_type(message_type);
    let reader = reader.transient_local().forwarder(of.id, None);
    let reader = if reliable { reader.reliable() } else { reader.keep_all() };
    Ok(reader.open()?.on(move |sample| {
        let origin = Origin { host: HOST, publisher: sample.publisher(), seq: sample.seq() };
        let meta = sample.meta().with_origin(origin);
        if let Err(error) = publisher.forward(&sample, meta, sample.sent_ns()) {
            eprintln!("a message of {} is lost: {error}", publisher.topic());
        }
    }))
}
