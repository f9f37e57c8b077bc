//! State between two hosts, one of them hostile: its answers as the home of its keys, its feed, and its
//! requests to the other home.

#![no_main]

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rnet::bridge::{Home, serve_state};
use rnet::msgs::state_reply::Refusal;
use rnet::msgs::{StateAsk, StateChange, StateEntry, StateReply};
use rnet::state::{Entry, RemoteState, Replica, Value};
use rnet::{Client, HandlerError, Node, OnFull, Publisher, Service};
use rnet_fuzz::Input;
use rnet_net::config::Config;
use rnet_net::in_memory_transport::MemoryNet;
use rnet_net::link::{Link, LinkOptions};
use rnet_net::{HostId, Presence};

const STEPS: usize = 8;
/// Far longer than an answer takes.
const LIMIT: Duration = Duration::from_secs(15);
const KEYS: [&str; 8] =
    ["/a", "/a/b", "/params/x/gain", "/!params/x/gain", "!type/1", "/", "", "no key"];
const FEED_TOPIC: &str = "/_rnet/state/feed";
const FEED: u64 = 7;

struct Fixture {
    reply: Arc<Mutex<StateReply>>,
    feed: Publisher<StateChange>,
    remote: RemoteState,
    replica: Replica,
    asks: [Client<StateAsk, StateReply>; 2],
    desk: Node,
    round: i64,
    _services: [Service; 2],
    _home: Home,
    _hostile: Node,
    _links: [Link; 2],
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn service(host: &str, end: &str) -> String {
    format!("/_rnet/state/h{:016x}/{end}", rnet_core::fnv1a_64(host.as_bytes()))
}

/// The reply of an honest home with one key.
fn honest(value: i64) -> StateReply {
    let entry = StateEntry {
        key: "/a".to_owned(),
        kind: 2,
        value: value.to_le_bytes().to_vec(),
        revision: value as u64,
        ..StateEntry::default()
    };
    let (entries, topic) = (vec![entry], FEED_TOPIC.to_owned());
    StateReply {
        revision: value as u64,
        entries,
        topic,
        feed: FEED,
        seq: value as u64,
        ..StateReply::default()
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn fixture() -> Fixture {
    let base = std::env::var_os("RNET_FUZZ_DIR").expect("scripts/fuzz.sh names a directory");
    let base = Path::new(&base).join(format!("state-{}", std::process::id()));
    let node = |host: &str, name: &str| {
        let dir = base.join(host);
        std::fs::create_dir_all(&dir).unwrap();
        Node::builder(name).dir(&dir).state_dir(&dir).domain("fuzz")
    };
    let net = MemoryNet::new();
    let link = |number: u64, host: &str| {
        let mut config = Config::from_toml("", Path::new("robot.toml")).unwrap();
        config.host = host.to_owned();
        let options = LinkOptions {
            node: node(host, "/_rnet/link"),
            presence: Presence { host: HostId(number), term: 1 },
            config,
            holds_role: Arc::new(|| true),
        };
        Link::open(options, |presence, sink| Ok(net.join(presence, sink))).unwrap()
    };
    let links = [link(1, "evil"), link(2, "desk")];
    let (hostile, desk) =
        (node("evil", "evil").open().unwrap(), node("desk", "desk").open().unwrap());
    let reply = Arc::new(Mutex::new(honest(1)));
    let serves = |end: &str| {
        let reply = reply.clone();
        let service_of = hostile.service::<StateAsk, StateReply>(&service("evil", end));
        service_of.serve(move |_| Ok::<_, HandlerError>(lock(&reply).clone())).unwrap()
    };
    let services = [serves("read"), serves("write")];
    let feed = hostile
        .publisher::<StateChange>(FEED_TOPIC)
        .reliable(OnFull::Refuse)
        .transient_local(1)
        .open()
        .unwrap();
    let home = serve_state(&desk, "desk", None).unwrap();
    let remote = desk.state_of("evil").unwrap().with_timeout(Duration::from_secs(2));
    until("the home is found", || remote.get("/a").is_ok());
    let replica = remote.mirror("/a").unwrap();
    feed.wait_for_subscribers_timeout(1, LIMIT).unwrap();
    let asks = ["read", "write"].map(|end| hostile.client(&service("desk", end)).open().unwrap());
    for ask in &asks {
        ask.call_timeout(&StateAsk::default(), LIMIT).unwrap();
    }
    Fixture {
        reply,
        feed,
        remote,
        replica,
        asks,
        desk,
        round: 1,
        _services: services,
        _home: home,
        _hostile: hostile,
        _links: links,
    }
}

fn bytes(input: &mut Input<'_>) -> Vec<u8> {
    (0..input.byte() % 32).map(|_| input.byte()).collect()
}

fn text(input: &mut Input<'_>) -> String {
    match usize::from(input.byte()) {
        at if at < 224 => KEYS[at % KEYS.len()].to_owned(),
        _ => String::from_utf8_lossy(&bytes(input)).into_owned(),
    }
}

fn optional(input: &mut Input<'_>) -> Option<u64> {
    (input.byte() % 2 == 1).then(|| input.word(1))
}

fn entry(input: &mut Input<'_>) -> StateEntry {
    let flags = input.byte();
    StateEntry {
        key: text(input),
        kind: match input.byte() {
            kind if kind < 224 => u32::from(kind % 12),
            _ => input.word(0) as u32,
        },
        value: bytes(input),
        r#type: input.word(1),
        type_description: if flags & 1 == 0 { Vec::new() } else { bytes(input) },
        revision: input.word(1),
        version: input.word(1),
        node: text(input),
        written_unix_ns: input.word(1),
        durable: flags & 2 != 0,
        ttl_left_ns: optional(input),
        deleted: flags & 4 != 0,
        expired: (flags & 8 != 0).then_some(flags & 16 != 0),
    }
}

fn reply(input: &mut Input<'_>) -> StateReply {
    let refusal = (input.byte() % 4 == 0).then(|| Refusal {
        code: ["conflict", "state_type", "bad_value", "limit_reached", "io", ""]
            [usize::from(input.byte() % 6)]
        .to_owned(),
        words: (0..input.byte() % 4).map(|_| text(input)).collect(),
        numbers: (0..input.byte() % 4).map(|_| input.word(1)).collect(),
    });
    StateReply {
        revision: input.word(1),
        entries: (0..input.byte() % 4).map(|_| entry(input)).collect(),
        topic: if input.byte() % 2 == 0 { FEED_TOPIC.to_owned() } else { text(input) },
        feed: if input.byte() % 2 == 0 { FEED } else { input.word(FEED) },
        seq: input.word(1),
        refusal,
    }
}

fn ask(input: &mut Input<'_>) -> StateAsk {
    let flags = input.byte();
    StateAsk {
        action: match input.byte() {
            action if action < 224 => i32::from(action % 8),
            _ => input.word(0) as i32,
        },
        key: text(input),
        entry: (flags & 1 != 0).then(|| entry(input)),
        if_revision: optional(input),
        ttl_ns: optional(input),
        // Durable writes are slow, so they are rare.
        durable: (flags & 0x78 == 0x78).then_some(flags & 2 != 0),
        change_type: flags & 4 != 0,
    }
}

fn is_under(entry: &Entry) -> bool {
    entry.key == "/a" || entry.key.starts_with("/a/")
}

fn run_input(fixture: &mut Fixture, input: &mut Input<'_>) {
    for _ in 0..STEPS {
        let Some(step) = input.step() else { break };
        match step % 4 {
            0 => {
                let reply = reply(input);
                *lock(&fixture.reply) = reply;
                if let Ok(known) = fixture.remote.entry("/a") {
                    assert!(known.value.is_none_or(|entry| entry.key == "/a"));
                }
                if let Ok(entries) = fixture.remote.list("/a") {
                    assert!(entries.iter().all(is_under));
                }
                let _ = fixture.remote.params();
                let _ = (fixture.remote.set("/a", 1), fixture.remote.delete("/a"));
            }
            1 => {
                let entry = (input.byte() % 4 != 0).then(|| entry(input));
                let seq = input.word(fixture.round as u64);
                let feed = if input.byte() % 4 == 0 { input.word(FEED) } else { FEED };
                let change = StateChange { feed, seq, entry, skipped: optional(input) };
                let _ = fixture.feed.send(&change);
            }
            _ => {
                let client = &fixture.asks[usize::from(step / 4 % 2)];
                client.call_timeout(&ask(input), LIMIT).unwrap();
            }
        }
        assert!(fixture.replica.list().value.iter().all(is_under));
        while let Ok(Some(_)) = fixture.replica.try_recv() {}
    }
    // Replies of an honest home still arrive, and the node's own keys are unchanged.
    fixture.round += 1;
    let round = fixture.round;
    *lock(&fixture.reply) = honest(round);
    let remote = &fixture.remote;
    until("the key is read", || {
        remote.get("/a").is_ok_and(|known| known.value == Some(Value::from(round)))
    });
    until("the replica has it", || {
        // A missing number makes it reload.
        let seq = round as u64 + 100;
        let _ = fixture.feed.send(&StateChange { feed: FEED, seq, ..StateChange::default() });
        fixture.replica.get("/a").is_ok_and(|known| known.value == Some(Value::from(round)))
    });
    let state = fixture.desk.state().unwrap();
    state.put("/own").change_type().set(round).unwrap();
    assert_eq!(state.get("/own").unwrap(), Some(Value::from(round)));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static FIXTURE: OnceLock<Mutex<Fixture>> = OnceLock::new();
    let fixture = FIXTURE.get_or_init(|| Mutex::new(fixture()));
    run_input(&mut lock(fixture), &mut Input::new(bytes));
});
