//! A hostile node sends arbitrary requests, jobs, controls, replies and statuses, with valid and invalid call
//! numbers, to a server of a service, of an action and of a command, a client, and a worker and a pusher of a
//! queue.

#![no_main]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rnet::inspect::Domain;
use rnet::{Client, Command, Meta, Node, OnFull, Publisher, Pusher, Service};
use rnet_fuzz::Input;

const STEPS: usize = 32;
/// Far longer than a call takes.
const LIMIT: Duration = Duration::from_secs(15);
const ROOT: &str = "/_rnet/call";
/// Longer than a forged job.
const JOB: &[u8] = &[7; 100];

struct Fixture {
    client: Client<[u8], [u8]>,
    /// The hostile endpoints, and the ids of the clients whose numbers they use.
    hostile: Vec<Publisher<[u8]>>,
    clients: Vec<u64>,
    command: Command,
    pusher: Pusher<[u8]>,
    /// Jobs of the pusher that the worker has done.
    jobs: Arc<AtomicU64>,
    _served: [Service; 3],
    _nodes: [Node; 2],
}

/// The id of the client that owns this topic.
fn client_of(topic: &str) -> Option<u64> {
    let (own, _) = topic.rsplit_once('/')?;
    u64::from_str_radix(own.rsplit_once("/c")?.1, 16).ok().filter(|id| *id <= u32::MAX.into())
}

fn fixture() -> Fixture {
    let base = std::env::var_os("RNET_FUZZ_DIR").expect("scripts/fuzz.sh names a directory");
    let dir = std::path::PathBuf::from(base).join(format!("calls-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let node =
        |name: &str| Node::builder(name).dir(&dir).state_dir(&dir).domain("fuzz").open().unwrap();
    let (server, hostile) = (node("server"), node("evil"));
    let service = server.service::<[u8], [u8]>("/s").at_once(2);
    let service = service.serve_stream(|request, replies| {
        // The number of requested replies.
        for _ in 0..request.first().copied().unwrap_or(1) % 4 + 1 {
            replies.send(request)?;
        }
        Ok(())
    });
    let action = server.action::<[u8], [u8], [u8]>("/a").policy(rnet::GoalPolicy::Replace);
    let action = action.serve(|goal, context| {
        context.feedback(goal)?;
        Ok(goal.to_vec())
    });
    let jobs = Arc::new(AtomicU64::new(0));
    let done = jobs.clone();
    let worker = server.pull::<[u8]>("/q").on(move |job, _| {
        done.fetch_add(u64::from(job == JOB), Ordering::SeqCst);
        Ok(())
    });
    let served = [service.unwrap(), action.unwrap(), worker.unwrap()];
    let pusher = server.push::<[u8]>("/q").open().unwrap();
    let command = server.command::<[u8]>("/c").fallback(b"stop").apply(|_| {}).unwrap();
    let client = server.client::<[u8], [u8]>("/s").open().unwrap();
    // Clients of the hostile node, which get unsolicited answers.
    let (own, goals) =
        (hostile.client("/s").open().unwrap(), hostile.action_client("/a").open().unwrap());
    let own: Client<[u8], [u8]> = own;
    own.call_timeout(b"\0", LIMIT).unwrap();
    client.call_timeout(b"\0", LIMIT).unwrap();
    let goals: rnet::ActionClient<[u8], [u8], [u8]> = goals;
    goals.send(b"\0", rnet::CallOptions::new()).unwrap().result_timeout(LIMIT).unwrap();
    pusher.push(JOB).unwrap();
    pusher.wait_until_done_timeout(LIMIT).unwrap();
    let driver = hostile.drive::<[u8]>("/c").timeout(LIMIT).take().unwrap();
    let mut domain = Domain::open(Some("fuzz"), Some(dir.clone()), None).unwrap();
    let snapshot = domain.snapshot().unwrap();
    let (mut publishers, mut clients) = (Vec::new(), Vec::new());
    for heard in
        snapshot.subscriptions.iter().filter(|s| s.topic.starts_with(ROOT) || s.topic == "/c")
    {
        clients.extend(client_of(&heard.topic));
        let ty = match &heard.schema {
            Some(schema) => schema.clone().into(),
            None => rnet::MessageType::try_from(heard.type_desc.clone()).unwrap(),
        };
        let publisher = hostile.publisher::<[u8]>(&heard.topic);
        let mut publisher = publisher.reliable(OnFull::Refuse).message_type(ty);
        if heard.qos.lane == Some(rnet::Lane::Urgent) || heard.topic == "/c" {
            publisher = publisher.urgent();
        }
        let publisher = publisher.open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LIMIT).unwrap();
        publishers.push(publisher);
    }
    assert!(
        publishers.len() > 8 && clients.len() > 1,
        "{} endpoints, {clients:?}",
        publishers.len()
    );
    // They stay open, so that answers keep arriving.
    std::mem::forget((own, goals, driver));
    Fixture {
        client,
        hostile: publishers,
        clients,
        command,
        pusher,
        jobs,
        _served: served,
        _nodes: [server, hostile],
    }
}

fn run_input(fixture: &mut Fixture, input: &mut Input<'_>) {
    for _ in 0..STEPS {
        let Some(step) = input.step() else { break };
        let end = usize::from(step) % fixture.hostile.len();
        // An existing client or an arbitrary id.
        let client = match input.byte() {
            0..64 => input.word(1) & u64::from(u32::MAX),
            at => fixture.clients[usize::from(at) % fixture.clients.len()],
        };
        let number = input.word(1) & u64::from(u32::MAX);
        let meta = match input.byte() % 8 {
            0 => Meta::default(),
            _ => Meta::default().with_correlation(client << 32 | number),
        };
        let bytes: Vec<u8> = (0..input.byte() % 64).map(|_| input.byte()).collect();
        // Ignores a full log: it is the hostile node's own.
        let _ = fixture.hostile[end].send_with(&bytes, meta);
    }
    // All other nodes are still served.
    assert_eq!(&*fixture.client.call_timeout(b"\0honest", LIMIT).unwrap(), b"\0honest");
    let before = fixture.jobs.load(Ordering::SeqCst);
    fixture.pusher.push(JOB).unwrap();
    fixture.pusher.wait_until_done_timeout(LIMIT).unwrap();
    assert!(fixture.jobs.load(Ordering::SeqCst) > before, "{:?}", fixture.pusher.stats());
    let _ = (fixture.client.stats(), fixture.command.status(), fixture.command.stats());
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static FIXTURE: OnceLock<Mutex<Fixture>> = OnceLock::new();
    let fixture = FIXTURE.get_or_init(|| Mutex::new(fixture()));
    run_input(&mut fixture.lock().unwrap_or_else(PoisonError::into_inner), &mut Input::new(bytes));
});
