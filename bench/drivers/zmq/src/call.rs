//! REQ and REP over TCP.

use crate::context;
use bench_harness::{About, Calls, Client, Handler, Net, Result, Subscription, Topic};
use std::sync::atomic::Ordering;
use zmq::{Message, Socket};

/// How long a receive waits: at the server before it checks for a stop, at the client for the reply.
const STOP_CHECK_INTERVAL_MS: i32 = 100;
const TIMEOUT_MS: i32 = 2000;

/// One request at a time, and its reply.
pub struct ReqRep;

impl Calls for ReqRep {
    fn id(&self) -> &'static str {
        "zmq-req"
    }

    fn about(&self) -> About {
        About {
            label: "ZeroMQ REQ/REP tcp".into(),
            client: "libzmq through the crate zmq (Rust)".into(),
            settings: context::settings(),
        }
    }

    fn version(&self) -> Result<String> {
        Ok(context::version())
    }

    fn serve(&self, net: &Net, topic: &Topic, mut handler: Handler) -> Result<Subscription> {
        let socket = context::socket(zmq::REP, topic)?;
        socket.set_rcvtimeo(STOP_CHECK_INTERVAL_MS)?;
        socket.bind("tcp://127.0.0.1:*")?;
        net.announce(topic, &context::bound_address(&socket)?)?;
        Subscription::thread("zmq-reply", move |stop| {
            let mut request = Message::new();
            while !stop.load(Ordering::Relaxed) {
                let answered = match socket.recv(&mut request, 0) {
                    Ok(()) => socket.send(handler(&request), 0),
                    Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => Ok(()),
                    Err(error) => Err(error),
                };
                if let Err(error) = answered {
                    eprintln!("zmq: replying ended: {error}");
                    return;
                }
            }
        })
    }

    fn client(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Client>> {
        let socket = context::socket(zmq::REQ, topic)?;
        socket.set_rcvtimeo(TIMEOUT_MS)?;
        socket.connect(&net.find(topic, 0)?)?;
        Ok(Box::new(Caller { socket, reply: Message::new() }))
    }
}

struct Caller {
    socket: Socket,
    reply: Message,
}

impl Client for Caller {
    fn call(&mut self, request: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.socket.send(request, 0)?;
        self.socket.recv(&mut self.reply, 0)?;
        seen(&self.reply);
        Ok(())
    }
}
