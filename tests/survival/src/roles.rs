//! The processes around the judge: the surviving writer and the victims.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rnet::bridge::{BridgePublisher, BridgePublisherBuilder};
use rnet::inspect::{Domain, Follower};
use rnet::schema::{Schema, compile_text};
use rnet::{
    Dynamic, Error, MatchEvent, Meta, Node, OnFull, Origin, OwnedSample, Proxy, Publisher,
    PublisherBuilder, Subscriber, Subscription, Wait,
};

use crate::callers;
use crate::ledger::{Ledger, STREAMS};
use crate::readers::ReportViolation;
use crate::rng::Rng;
use crate::state::{User, count_on};
use crate::{LONG, message};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The readers of a victim's streams: topic, and how many the judge has.
pub const VICTIM_TOPICS: [(&str, usize); STREAMS] =
    [("/v/small", 4), ("/v/large", 2), ("/v/latched", 1)];

/// The folder of durable state, in the directory of the domain.
pub const DISK: &str = "disk";

/// A node of the domain in `dir`.
pub fn node(dir: &Path, name: &str) -> Result<Node, Error> {
    Node::builder(name).domain("s").dir(dir).state_dir(dir.join(DISK)).open()
}

/// Runs the role in the arguments; its process ends with the judge's.
pub fn run(args: &[String]) -> Outcome {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let [role, dir, name, flags @ ..] = args else {
        return Err("usage: ROLE DIR NAME".into());
    };
    let dir = PathBuf::from(dir);
    match role.as_str() {
        "writer" => writer(&dir, name),
        "victim" => victim(&dir, name, &Flags::of(flags)),
        "partner" => partner(&dir, name),
        "server" => callers::server(&dir, name),
        "caller" => callers::caller(&dir, name),
        "taker" => callers::taker(&dir, name),
        "receiver" => callers::receiver(&dir, name),
        _ => Err(format!("unknown role: {role}").into()),
    }
}

fn say(line: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Waits until the judge closes the input.
fn wait_for_end() -> Outcome {
    std::io::stdin().lock().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn small_log(node: &Node, topic: &str) -> PublisherBuilder<[u8]> {
    node.publisher(topic).log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
}

/// Sends the next message of a stream; `false` if a reader blocked it, and then it stays the next one.
fn send(publisher: &mut Publisher<[u8]>, len: usize, buf: &mut Vec<u8>) -> Result<bool, Error> {
    let (id, number) = (publisher.id(), publisher.sent());
    buf.resize(len, 0);
    message::fill(buf, id, number);
    match publisher.send(buf) {
        Ok(()) => Ok(true),
        // Too many samples of the large ones are held.
        Err(Error::Full { .. } | Error::OutOfMemory { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The surviving writer: one publisher of each kind, all in turn.
fn writer(dir: &Path, name: &str) -> Outcome {
    let node = node(dir, name)?;
    let wait = OnFull::Wait(Duration::from_secs(20));
    let mut small = small_log(&node, "/k/small").open()?;
    let mut large = small_log(&node, "/k/large").reliable(wait).pool_limit_bytes(2 << 20).open()?;
    let mut mixed = small_log(&node, "/k/mixed")
        .reliable(OnFull::Refuse)
        .transient_local(4)
        .pool_limit_bytes(2 << 20)
        .open()?;
    let stall = Duration::from_millis(50);
    let mut detach = small_log(&node, "/k/detach").reliable(OnFull::Detach { stall }).open()?;
    for publisher in [&small, &large, &mixed, &detach] {
        publisher.wait_for_subscribers_timeout(1, LONG)?;
    }
    let state = node.state()?;
    say("ready")?;
    std::thread::spawn(|| {
        let _ = wait_for_end();
        std::process::exit(0);
    });
    let (mut buf, mut rng) = (Vec::new(), Rng::new(1));
    for turn in 0_u64.. {
        send(&mut small, 24 + rng.below(200) as usize, &mut buf)?;
        send(&mut detach, 24 + rng.below(400) as usize, &mut buf)?;
        count_on(&state)?;
        if turn.is_multiple_of(4) {
            send(&mut large, 20_000 + rng.below(60_000) as usize, &mut buf)?;
            let len = if turn.is_multiple_of(8) { 9_000 } else { 1_000 };
            send(&mut mixed, len + rng.below(100) as usize, &mut buf)?;
        }
        std::thread::sleep(Duration::from_millis(1)); // sleep: the interval of this writer
    }
    Ok(())
}

/// Holds a sample of a victim beyond its subscription, and is then killed: the victim has to remove its
/// remains.
fn partner(dir: &Path, name: &str) -> Outcome {
    let node = node(dir, &name.replace('.', "_"))?;
    let mut large = node.subscriber::<[u8]>("/v/large").reliable().open()?;
    let sample = large.recv_timeout(LONG)?.into_owned();
    drop(large);
    say("ready")?;
    wait_for_end()?;
    drop(sample);
    Ok(())
}

/// The behavior of a victim.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    /// No other node is present.
    lonely: bool,
    /// Does not read the survivors' messages: otherwise a stopped victim would block them.
    deaf: bool,
    /// Also passes the points that only a stopped reader leads to.
    stubborn: bool,
    /// One life, then it leaves.
    once: bool,
    /// Reports when it has joined, and stays.
    stays: bool,
    /// Reports when it is about to send for the first time, and continues.
    tells: bool,
    /// Writes to disk, too.
    durable: bool,
    /// Its first life continues until it is killed.
    endless: bool,
}

impl Flags {
    fn of(words: &[String]) -> Flags {
        let has = |word: &str| words.iter().any(|w| w == word);
        Flags {
            lonely: has("lonely"),
            deaf: has("deaf"),
            stubborn: has("stubborn"),
            once: has("once"),
            stays: has("stays"),
            tells: has("tells"),
            durable: has("durable"),
            endless: has("endless"),
        }
    }
}

/// Lives repeatedly until it is killed.
fn victim(dir: &Path, name: &str, flags: &Flags) -> Outcome {
    let ledger = Ledger::create(&dir.join(format!("ledger.{name}")))?;
    for life in 0..if flags.once { 1 } else { 1000 } {
        let node = node(dir, &format!("v_{}", name.replace('.', "_")))?;
        let mut user = User::begin(&node, name)?;
        if flags.stays {
            let _watch = node.state()?.watch("/")?;
            user.turn(0)?;
            if flags.durable {
                user.durable()?;
            }
            say("ready")?;
            return wait_for_end();
        }
        if flags.stubborn {
            stubborn(&node, name)?;
        }
        beside(&node)?;
        let tells = flags.tells && life == 0;
        if life == 0 && flags.once {
            user.once()?;
        }
        if flags.durable {
            user.durable()?;
        }
        if !flags.deaf && !flags.lonely {
            observe(dir)?;
        }
        live(&node, &mut user, &ledger, life * STREAMS, &Flags { tells, ..*flags })?;
    }
    Ok(())
}

/// Operations that the streams do not use: messages of another host that become visible together, and a
/// last will that changes. They have no reader; the judge checks that a death in the middle harms no other
/// node.
fn beside(node: &Node) -> Outcome {
    let mut forwarded = node
        .publisher::<[u8]>("/v/forwarded")
        .proxy(Proxy::new("elsewhere", node.name(), 1)?)
        .open()?;
    let mut willing = node.publisher::<[u8]>("/v/willing").last_will(b"gone".as_slice()).open()?;
    for number in 0..4 {
        let meta = Meta::default().with_origin(Origin { host: 1, publisher: 1, seq: number });
        forwarded.forward_uncommitted(b"forwarded", meta, rnet::now_ns())?;
        if number % 2 == 1 {
            forwarded.commit();
        }
        willing.set_last_will(&number.to_le_bytes()[..])?;
    }
    Ok(())
}

fn publish(node: &Node, stream: usize, flags: &Flags) -> Result<Publisher<[u8]>, Error> {
    let (topic, readers) = VICTIM_TOPICS[stream];
    let builder = match stream {
        0 => small_log(node, topic),
        1 => small_log(node, topic).pool_limit_bytes(768 << 10).large_depth(2),
        // Its log grows.
        _ => node.publisher(topic).transient_local(3),
    };
    let publisher = builder.reliable(OnFull::Wait(LONG)).open()?;
    if !flags.lonely {
        publisher.wait_for_subscribers_timeout(readers, LONG)?;
    }
    Ok(publisher)
}

/// The topic for messages of types that differ slightly between survivors and victims.
const TYPED_TOPIC: &str = "/typed";

/// The type of the typed topic for `victims` or for a survivor: they are compatible.
pub fn level(victims: bool) -> Result<Schema, Box<dyn std::error::Error>> {
    let more = if victims { "double ampere = 2;" } else { "" };
    let text = format!("syntax = \"proto3\"; message Level {{ double volt = 1; {more} }}");
    Ok(compile_text("level.proto", &text)?.schema("Level")?)
}

/// A survivor's subscription to typed messages. It must never get the error that a victim's type is
/// incompatible, or that a message is invalid.
///
/// # Errors
/// The errors of subscribing.
pub fn typed_subscriber(
    node: &Node,
    report: ReportViolation,
) -> Result<Subscription, Box<dyn std::error::Error>> {
    let ear = node.subscriber::<Dynamic>(TYPED_TOPIC).schema(&level(false)?).open()?;
    let say = report.clone();
    ear.on_match(move |event| {
        if let MatchEvent::Incompatible(error) = event {
            say(format!("{TYPED_TOPIC}: {error}"));
        }
    })
    .detach();
    Ok(ear.on_result(move |result| match result {
        Ok(_) | Err(Error::PeerLost { .. }) => {}
        Err(error) => report(format!("{TYPED_TOPIC}: {error}")),
    }))
}

/// Publishes and subscribes to messages of a type that its node announces to its peers.
fn typed(node: &Node, flags: &Flags) -> Outcome {
    let schema = level(true)?;
    let mut publisher = node.publisher::<Dynamic>(TYPED_TOPIC).schema(&schema).open()?;
    let mut subscriber = node.subscriber::<Dynamic>(TYPED_TOPIC).schema(&schema).open()?;
    publisher.wait_for_subscribers_timeout(if flags.lonely { 1 } else { 2 }, LONG)?;
    subscriber.wait_for_publishers_timeout(1, LONG)?;
    publisher.send(&Dynamic::new(&schema))?;
    loop {
        match subscriber.recv_timeout(LONG) {
            Ok(sample) if sample.publisher() == publisher.id() => return Ok(()),
            // Other victims are heard, too, and die.
            Ok(_) | Err(Error::PeerLost { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads the surviving writer's messages as an observer, after a sleep.
fn observe(dir: &Path) -> Outcome {
    let domain = Domain::open(Some("s"), Some(dir.to_owned()), None)?;
    let mut follow = Follower::new(domain, "/k/small", false)?;
    let (mut bytes, until) = (Vec::new(), Instant::now() + LONG);
    follow.poll(&mut bytes)?;
    while Instant::now() < until {
        follow.wait(LONG);
        if follow.poll(&mut bytes)?.is_some() {
            return Ok(());
        }
    }
    Err("an observer does not hear the survivor".into())
}

fn live(node: &Node, user: &mut User, ledger: &Ledger, lines: usize, flags: &Flags) -> Outcome {
    typed(node, flags)?;
    let mut publishers = Vec::new();
    for stream in 0..STREAMS {
        let publisher = publish(node, stream, flags)?;
        ledger.open_line(lines + stream, publisher.id())?;
        publishers.push(publisher);
    }
    let mut ears: Vec<Subscriber<[u8]>> = Vec::new();
    if !flags.deaf && !flags.lonely {
        let reliable = |topic| node.subscriber(topic).reliable().wait(Wait::Block);
        ears.push(node.subscriber("/k/small").open()?);
        ears.push(reliable("/k/large").open()?);
        ears.push(reliable("/k/mixed").transient_local().open()?);
        ears.push(reliable("/k/detach").open()?);
    }
    if flags.tells {
        say("ready")?;
    }
    let (mut buf, mut held) = (Vec::new(), Vec::<OwnedSample<[u8]>>::new());
    for turn in 0..if flags.endless { u64::MAX } else { 60 } {
        user.turn(turn)?;
        for (stream, publisher) in publishers.iter_mut().enumerate() {
            let line = lines + stream;
            let len = match (stream, turn % 4) {
                (0, 0) => 3_900,
                (0, odd) => 24 + (turn * 37 + odd) as usize % 300,
                (1, 0) => 20_000 + 40_000 * (turn as usize / 4 % 3),
                (1, _) => continue,
                _ => 640 + turn as usize % 5,
            };
            let (id, count) = (publisher.id(), publisher.sent() + 1);
            ledger.starts(line, count)?;
            let sent = if stream == 1 && turn.is_multiple_of(8) {
                match publisher.loan(len) {
                    Ok(mut loan) => {
                        message::fill(&mut loan, id, count - 1);
                        loan.send().map_err(|(_, error)| error)?;
                        true
                    }
                    Err(Error::OutOfMemory { .. }) => false,
                    Err(error) => return Err(error.into()),
                }
            } else {
                send(publisher, len, &mut buf)?
            };
            if sent {
                ledger.committed(line, count)?;
            }
        }
        for ear in &mut ears {
            listen(ear, turn, &mut held)?;
        }
    }
    Ok(())
}

/// Reads the available messages and holds some of them; the messages of a victim must be intact as well.
fn listen(ear: &mut Subscriber<[u8]>, turn: u64, held: &mut Vec<OwnedSample<[u8]>>) -> Outcome {
    if turn.is_multiple_of(16) {
        match ear.recv_timeout(Duration::from_millis(3)) {
            Ok(sample) => check(&sample)?,
            Err(Error::Timeout { .. } | Error::Detached { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    while let Some(sample) = match ear.try_recv() {
        Err(Error::Detached { .. }) => None,
        other => other?,
    } {
        check(&sample)?;
        held.push(sample.into_owned());
        if held.len() > 3 {
            held.remove(0);
        }
    }
    Ok(())
}

fn check(bytes: &[u8]) -> Outcome {
    message::check(bytes).map(drop).map_err(|why| format!("VIOLATION at a victim: {why}").into())
}

/// A writer that sleeps for capacity, and the slow reader that wakes it.
fn held_up(node: &Node, topic: &str) -> Outcome {
    let mut publisher = small_log(node, topic).reliable(OnFull::Wait(LONG)).open()?;
    let mut reader = node.subscriber::<[u8]>(topic).reliable().open()?;
    reader.wait_for_publishers_timeout(1, LONG)?;
    const COUNT: usize = 60;
    let sender = std::thread::spawn(move || {
        let mut buf = Vec::new();
        (0..COUNT).try_for_each(|_| send(&mut publisher, 1000, &mut buf).map(drop))
    });
    for _ in 0..COUNT {
        check(&reader.recv_timeout(LONG)?)?;
        // Longer than the millisecond for which the writer waits for more than a little capacity.
        std::thread::sleep(Duration::from_millis(3)); // sleep: a slow reader
    }
    Ok(sender.join().map_err(|_| "the sender panicked")??)
}

/// Both sides of a stopped reader, in one process: it is refused, detached and comes back.
fn stubborn(node: &Node, name: &str) -> Outcome {
    let topic = format!("/stubborn/{name}");
    for on_full in [OnFull::Refuse, OnFull::Detach { stall: Duration::from_millis(2) }] {
        let mut publisher = small_log(node, &topic).reliable(on_full).open()?;
        let mut reader = node.subscriber::<[u8]>(&topic).reliable().open()?;
        reader.wait_for_publishers_timeout(1, LONG)?;
        let until = Instant::now() + LONG;
        let mut buf = Vec::new();
        // More than the log holds, so that the reader blocks it.
        for _ in 0..40 {
            send(&mut publisher, 1000, &mut buf)?;
        }
        if on_full != OnFull::Refuse {
            loop {
                match reader.recv_timeout(LONG) {
                    Err(Error::Detached { .. }) => break,
                    Ok(_) if Instant::now() < until => {}
                    other => return Err(format!("not detached: {other:?}").into()),
                }
            }
        }
    }
    held_up(node, &format!("/held/{name}"))?;
    let topic = format!("/crowd/{name}");
    let _publisher = small_log(node, &topic).open()?;
    let crowd = rnet::limits::MAX_READERS_PER_CHANNEL + 1;
    let readers: Result<Vec<Subscriber<[u8]>>, Error> =
        (0..crowd).map(|_| node.subscriber(&topic).open()).collect();
    drop(readers?);
    Ok(())
}
