//! A service as rmw_cyclonedds makes one: a topic of requests and one of replies, each message with its number.

use crate::{CycloneDds, endpoint};
use bench_harness::{
    About, Calls, Client, Error, Handler, Net, Publisher, Result, Subscription, System, Topic,
};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a call waits for its reply: before the first one, the server may not have been found.
const FINDING: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of the number, ahead of the message.
const NUMBER_LEN: usize = 8;

/// Two topics.
pub struct TwoTopics;

fn part(topic: &Topic, name: &str) -> Topic {
    let (name, max_len) = (format!("{}_{name}", topic.name), topic.max_len + NUMBER_LEN);
    Topic { name, max_len, ..topic.clone() }
}

impl Calls for TwoTopics {
    fn id(&self) -> &'static str {
        "cyclonedds-call"
    }

    fn about(&self) -> About {
        let of_topics = CycloneDds.about();
        let own = "a topic of requests and one of replies, each message with an 8-byte number in front, as \
                   rmw_cyclonedds makes a service; the server replies in its listener, the caller sleeps on a \
                   channel that its listener feeds";
        About {
            label: "Cyclone DDS, request and reply topics".into(),
            settings: [own.to_owned()].into_iter().chain(of_topics.settings).collect(),
            ..of_topics
        }
    }

    fn version(&self) -> Result<String> {
        endpoint::version()
    }

    fn serve(&self, net: &Net, topic: &Topic, mut handler: Handler) -> Result<Subscription> {
        let mut replies = endpoint::publisher(net, &part(topic, "reply"))?;
        let answer = Box::new(move |message: &[u8]| {
            let Some((number, request)) = message.split_at_checked(NUMBER_LEN) else { return };
            let reply = [number, &handler(request)].concat();
            if let Err(error) = replies.send(&reply).and_then(|()| replies.flush()) {
                eprintln!("cyclonedds: a reply was not sent: {error}");
            }
        });
        endpoint::subscribe(net, &part(topic, "request"), answer)
    }

    fn client(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Client>> {
        let (sender, replies) = channel();
        let take = Box::new(move |reply: &[u8]| {
            // Fails if the caller is closing.
            let _ = sender.send(reply.to_vec());
        });
        let subscription = endpoint::subscribe(net, &part(topic, "reply"), take)?;
        let requests = endpoint::publisher(net, &part(topic, "request"))?;
        let subscription = Held(subscription);
        Ok(Box::new(Caller {
            requests,
            replies,
            number: 0,
            found: false,
            _subscription: subscription,
        }))
    }
}

/// The subscription, which the caller's thread alone drops.
struct Held(#[expect(dead_code, reason = "held until it is dropped")] Subscription);

// SAFETY: a subscription of this driver has numbers of entities and exclusive pointers.
unsafe impl Send for Held {}

struct Caller {
    requests: Box<dyn Publisher>,
    replies: Receiver<Vec<u8>>,
    number: u64,
    found: bool,
    _subscription: Held,
}

impl Client for Caller {
    fn call(&mut self, request: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.number += 1;
        let number = self.number.to_le_bytes();
        self.requests.send(&[&number, request].concat())?;
        self.requests.flush()?;
        let end = Instant::now() + if self.found { TIMEOUT } else { FINDING };
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(left) {
                Ok(reply) if reply.starts_with(&number) => {
                    self.found = true;
                    seen(&reply[NUMBER_LEN..]);
                    return Ok(());
                }
                Ok(_) => {}
                Err(_) if !self.found => return Ok(()),
                Err(_) => return Err(Error::new("no reply within 2 s")),
            }
        }
    }
}
