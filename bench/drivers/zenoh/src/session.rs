//! How a session is configured.

use crate::failed;
use bench_harness::{Error, Net, Profile, Result, Topic};
use zenoh::{Config, Session, Wait};

/// Whether a session offers shared memory to the sessions that it meets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Private,
    Shared,
}

/// A message with its headers is to fit into a batch, of 65535 bytes unless set.
const LOW_LATENCY_MAX_LEN: usize = 32 << 10;

/// A publisher's session, which listens on a free port, or on a Unix socket of its own.
pub(crate) fn listening(memory: Memory, net: &Net, topic: &Topic) -> Result<Session> {
    let endpoint = match memory {
        Memory::Private => format!("tcp/{}:0", net.address()),
        Memory::Shared => {
            let socket = net.dir.join(format!("{}.{}.zenoh", topic.name, topic.index));
            format!("unixsock-stream/{}", socket.display())
        }
    };
    open(memory, &[endpoint], &[], topic)
}

/// A subscriber's session, which connects to publishers.
pub(crate) fn connecting(memory: Memory, publishers: &[String], topic: &Topic) -> Result<Session> {
    open(memory, &[], publishers, topic)
}

/// Where a session listens.
pub(crate) fn address(session: &Session) -> Result<String> {
    let locators = session.info().locators().wait();
    let first = locators.first().ok_or_else(|| Error::new("the session listens nowhere"))?;
    Ok(first.to_string())
}

/// Whether Zenoh's transport for low latency fits: it sends each message on the caller's thread, and
/// does not cut it into fragments.
fn is_low_latency(topic: &Topic) -> bool {
    topic.profile == Profile::Latency && topic.max_len <= LOW_LATENCY_MAX_LEN
}

fn open(memory: Memory, listen: &[String], connect: &[String], topic: &Topic) -> Result<Session> {
    let unicast =
        if is_low_latency(topic) { "{ lowlatency: true, qos: { enabled: false } }" } else { "{}" };
    let shared = match memory {
        Memory::Private => "{ enabled: false }",
        Memory::Shared => r#"{ enabled: true, mode: "init" }"#,
    };
    let config = Config::from_json5(&format!(
        r#"{{
            mode: "peer",
            listen: {{ endpoints: {listen:?} }},
            connect: {{ endpoints: {connect:?} }},
            scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }},
            transport: {{
                unicast: {unicast},
                link: {{ tx: {{ queue: {{ congestion_control: {{
                    block: {{ wait_before_close: 60000000 }},
                }} }} }} }},
                shared_memory: {shared},
            }},
        }}"#
    ))
    .map_err(failed)?;
    zenoh::open(config).wait().map_err(failed)
}
