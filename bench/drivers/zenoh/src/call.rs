//! A query, and the queryable that answers it.

use crate::session::{self, Memory};
use crate::{failed, is_express};
use bench_harness::{About, Calls, Client, Error, Handler, Net, Result, Subscription, Topic};
use std::sync::Mutex;
use std::time::Duration;
use zenoh::query::Querier;
use zenoh::{Session, Wait};

/// How long a query waits for its reply.
const TIMEOUT: Duration = Duration::from_secs(2);

/// `Querier::get` and a queryable, over TCP.
pub struct Query;

impl Calls for Query {
    fn id(&self) -> &'static str {
        "zenoh-query"
    }

    fn about(&self) -> About {
        let settings = [
            "a declared querier, whose first reply is taken from its default channel; a queryable with a callback",
            "mode peer; the queryable's session listens, the querier's connects; scouting off",
            "CongestionControl::Block, express(true)",
            "transport/unicast/lowlatency with qos off, at both ends",
        ];
        About {
            label: "Zenoh query, peer tcp".into(),
            client: "crate zenoh (Rust)".into(),
            settings: settings.map(str::to_owned).into(),
        }
    }

    fn version(&self) -> Result<String> {
        Ok(crate::version())
    }

    fn serve(&self, net: &Net, topic: &Topic, handler: Handler) -> Result<Subscription> {
        let session = session::listening(Memory::Private, net, topic)?;
        let address = session::address(&session)?;
        let handler = Mutex::new(handler);
        let key = topic.name.clone();
        let express = is_express(topic);
        let queryable = session
            .declare_queryable(topic.name.clone())
            .callback(move |query| {
                let request = query.payload().map(|p| p.to_bytes()).unwrap_or_default();
                let Ok(mut handler) = handler.lock() else { return };
                let reply = handler(&request);
                if let Err(error) = query.reply(key.as_str(), reply).express(express).wait() {
                    eprintln!("zenoh: a reply was not sent: {error}");
                }
            })
            .wait()
            .map_err(failed)?;
        net.announce(topic, &address)?;
        Ok(Subscription::holding((queryable, session)))
    }

    fn client(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Client>> {
        let session = session::connecting(Memory::Private, &[net.find(topic, 0)?], topic)?;
        let querier = session
            .declare_querier(topic.name.clone())
            .congestion_control(zenoh::qos::CongestionControl::Block)
            .express(is_express(topic))
            .timeout(TIMEOUT)
            .wait()
            .map_err(failed)?;
        Ok(Box::new(Caller { querier, _session: session }))
    }
}

struct Caller {
    querier: Querier<'static>,
    // Closes when dropped, after the querier.
    _session: Session,
}

impl Client for Caller {
    fn call(&mut self, request: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        let replies = self.querier.get().payload(request).wait().map_err(failed)?;
        // Without a queryable the channel ends empty.
        let Ok(reply) = replies.recv() else { return Ok(()) };
        let sample = reply.result().map_err(|e| Error::new(format!("the reply is {e:?}")))?;
        seen(&sample.payload().to_bytes());
        Ok(())
    }
}
