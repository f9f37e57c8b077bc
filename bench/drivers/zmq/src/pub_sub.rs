//! PUB and SUB. A PUB socket drops messages if a slow subscriber's queue is full; with ZMQ_XPUB_NODROP it
//! waits instead.

use crate::{context, receive};
use bench_harness::{About, Error, Net, Publisher, Result, Sink, Subscription, System, Topic};
use zmq::{Message, Socket};

/// PUB and SUB over Unix sockets, or else TCP.
pub struct PubSub {
    /// Whether over Unix sockets.
    pub ipc: bool,
}

impl System for PubSub {
    fn id(&self) -> &'static str {
        if self.ipc { "zmq-ipc" } else { "zmq-tcp" }
    }

    fn about(&self) -> About {
        let mut settings = context::settings();
        settings.push(
            "ZMQ_XPUB_NODROP on the PUB socket (zmq_setsockopt(3)): send waits at the high-water \
             mark, where PUB would drop"
                .into(),
        );
        settings.push("one socket pair per topic, so the subscription is to everything".into());
        About {
            label: format!("ZeroMQ PUB/SUB {}", if self.ipc { "ipc" } else { "tcp" }),
            client: "libzmq through the crate zmq (Rust)".into(),
            settings,
        }
    }

    fn version(&self) -> Result<String> {
        Ok(context::version())
    }

    fn spans_hosts(&self) -> bool {
        !self.ipc
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let mut socket = context::socket(zmq::PUB, topic)?;
        set_nodrop(&mut socket)?;
        if self.ipc {
            let path = net.dir.join(format!("{}.{}.sock", topic.name, topic.index));
            socket.bind(&format!("ipc://{}", path.display()))?;
        } else {
            socket.bind(&format!("tcp://{}:*", net.address()))?;
        }
        net.announce(topic, &context::bound_address(&socket)?)?;
        Ok(Box::new(Sender { socket }))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        let socket = context::socket(zmq::SUB, topic)?;
        socket.set_subscribe(b"")?;
        for publisher in 0..topic.publishers {
            socket.connect(&net.find(topic, publisher)?)?;
        }
        receive::receive(socket, sink)
    }
}

/// Sets ZMQ_XPUB_NODROP, for which the crate has no method.
fn set_nodrop(socket: &mut Socket) -> Result<()> {
    let on: std::ffi::c_int = 1;
    // SAFETY: the pointer is a live libzmq socket that this thread alone uses, and the option's
    // value is an int that outlives the call.
    let code = unsafe {
        zmq_sys::zmq_setsockopt(
            socket.as_mut_ptr(),
            zmq_sys::ZMQ_XPUB_NODROP as std::ffi::c_int,
            (&raw const on).cast(),
            size_of_val(&on),
        )
    };
    if code == 0 { Ok(()) } else { Err(Error::new("this libzmq does not know ZMQ_XPUB_NODROP")) }
}

struct Sender {
    socket: Socket,
}

impl Publisher for Sender {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.socket.send(message, 0)?;
        Ok(())
    }

    fn send_in_place(&mut self, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let mut message = Message::with_size(len);
        fill(&mut message);
        self.socket.send(message, 0)?;
        Ok(())
    }
}
