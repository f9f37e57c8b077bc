//! Plain sockets without a library, with a length before each message. The floor for everything that goes
//! through the kernel's sockets.

mod stream;

use bench_harness::{About, Net, Publisher, Result, Sink, Subscription, System, Topic};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use stream::{Sender, Streams, receive};

/// TCP and Unix stream sockets.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![Box::new(Tcp), Box::new(Unix)]
}

const SETTINGS: &[&str] = &[
    "throughput: messages are collected in batches of 32 KiB",
    "latency: each message is one write; TCP_NODELAY",
    "blocking reads of up to 256 KiB; messages are read in place in that buffer",
];

fn about(label: &str) -> About {
    let settings = SETTINGS.iter().map(|s| s.to_string()).collect();
    About { label: label.into(), client: "none: std::net (Rust)".into(), settings }
}

fn kernel() -> Result<String> {
    Ok(format!("Linux {}", std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim()))
}

struct Tcp;

impl System for Tcp {
    fn id(&self) -> &'static str {
        "tcp"
    }

    fn about(&self) -> About {
        about("raw TCP")
    }

    fn version(&self) -> Result<String> {
        kernel()
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        net.announce(topic, &listener.local_addr()?.to_string())?;
        let streams = Streams::accept(move || {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        })?;
        Ok(Box::new(Sender::new(streams, topic)))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        receive(topic, sink, |publisher| {
            let stream = TcpStream::connect(net.find(topic, publisher)?)?;
            let closer = stream.try_clone()?;
            Ok((
                Box::new(stream),
                Box::new(move || {
                    // Fails when the other end is gone already.
                    let _ = closer.shutdown(std::net::Shutdown::Both);
                }),
            ))
        })
    }
}

struct Unix;

impl System for Unix {
    fn id(&self) -> &'static str {
        "unix"
    }

    fn about(&self) -> About {
        about("raw Unix socket")
    }

    fn version(&self) -> Result<String> {
        kernel()
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let path = net.dir.join(format!("{}.{}.socket", topic.name, topic.index));
        let listener = UnixListener::bind(&path)?;
        net.announce(topic, &path.to_string_lossy())?;
        let streams = Streams::accept(move || Ok(Box::new(listener.accept()?.0)))?;
        Ok(Box::new(Sender::new(streams, topic)))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        receive(topic, sink, |publisher| {
            let stream = UnixStream::connect(net.find(topic, publisher)?)?;
            let closer = stream.try_clone()?;
            Ok((
                Box::new(stream),
                Box::new(move || {
                    // Fails when the other end is gone already.
                    let _ = closer.shutdown(std::net::Shutdown::Both);
                }),
            ))
        })
    }
}
