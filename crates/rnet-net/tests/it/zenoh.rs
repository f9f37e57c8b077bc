//! The Zenoh network: two and three hosts on 127.0.0.1, in this process and in separate processes.

use crate::cable;
use crate::sinks;

use std::env;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cable::Cable;
use rnet::{DomainId, Lane};
use rnet_net::zenoh::{ZenohNet, ZenohOptions};
use rnet_net::{Presence, Transport};
use rustix::process::{Pid, Signal, kill_process};
use sinks::{LIMIT, Recorder, numbered, presence};
use zenoh::Wait;

const LANES: [Lane; 2] = [Lane::Urgent, Lane::Bulk];

/// A port whose successor is free too, for now.
fn free_port() -> u16 {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        if port
            .checked_add(1)
            .is_some_and(|second| TcpListener::bind(("127.0.0.1", second)).is_ok())
        {
            return port;
        }
    }
}

fn options(listen: &[u16], connect: &[u16]) -> ZenohOptions {
    let endpoints = |ports: &[u16]| {
        ports.iter().map(|port| format!("tcp/127.0.0.1:{port}").parse().unwrap()).collect()
    };
    ZenohOptions { listen: endpoints(listen), connect: endpoints(connect), ..Default::default() }
}

fn open(options: &ZenohOptions, own: Presence) -> (Arc<ZenohNet>, Arc<Recorder>) {
    let recorder = Recorder::new();
    let net =
        ZenohNet::open(options, own, &DomainId::new("test").unwrap(), recorder.clone()).unwrap();
    (net, recorder)
}

/// Sends this many frames on both lanes, and waits until all have come in order.
fn exchange(from: (&ZenohNet, Presence), to: (&Recorder, Presence), count: u64) {
    for number in 0..count {
        for lane in LANES {
            from.0.send(lane, to.1.host, numbered(number).into()).unwrap();
        }
    }
    for lane in LANES {
        assert_eq!(to.0.wait_number(lane, from.1.host, count - 1), (0..count).collect::<Vec<_>>());
    }
}

#[test]
fn frames_of_three_hosts_arrive_in_order_on_both_lanes() {
    let [one, two] = [free_port(), free_port()];
    let ids = [presence(1, 1), presence(2, 5), presence(3, 1)];
    // The third does not listen: it is reached over the connections that it has made.
    let hosts = [
        open(&options(&[one], &[two]), ids[0]),
        open(&options(&[two], &[one]), ids[1]),
        open(&options(&[], &[one, two]), ids[2]),
    ];
    for (a, (_, recorder)) in hosts.iter().enumerate() {
        for (b, other) in ids.iter().enumerate() {
            if a != b {
                recorder.wait_presence(*other, true);
            }
        }
    }
    for (a, (net, _)) in hosts.iter().enumerate() {
        for (b, (_, recorder)) in hosts.iter().enumerate() {
            if a != b {
                exchange((net, ids[a]), (recorder, ids[b]), 500);
            }
        }
    }
    for (_, recorder) in &hosts {
        recorder.wait("no other link, and none gone", |events| {
            (events.presences.len() == 2).then_some(())
        });
    }
}

#[test]
fn frame_of_64_kib_arrives_intact() {
    let port = free_port();
    let (a, recorder_a) = open(&options(&[port], &[]), presence(1, 1));
    let (_b, recorder_b) = open(&options(&[], &[port]), presence(2, 1));
    recorder_a.wait_presence(presence(2, 1), true);
    let frame: Vec<u8> = (0..65_536_u32).map(|at| (at % 251) as u8).collect();
    a.send(Lane::Bulk, presence(2, 1).host, frame.clone().into()).unwrap();
    recorder_b.wait("the frame", |events| {
        events.frames.first().map(|(.., received)| assert!(*received == frame))
    });
}

#[test]
fn leaving_host_is_reported_and_returns_with_another_term() {
    let port = free_port();
    let (a, recorder) = open(&options(&[port], &[]), presence(1, 1));
    let (b, _) = open(&options(&[], &[port]), presence(2, 1));
    recorder.wait_presence(presence(2, 1), true);
    let began = Instant::now();
    drop(b);
    let gone = recorder.wait_presence(presence(2, 1), false);
    println!("gone after its goodbye: {:?}", gone - began);
    let (_b, recorder_b) = open(&options(&[], &[port]), presence(2, 2));
    recorder.wait_presence(presence(2, 2), true);
    exchange((&a, presence(1, 1)), (&recorder_b, presence(2, 2)), 10);
    // Sending to an absent host is not an error.
    a.send(Lane::Bulk, presence(9, 1).host, numbered(0).into()).unwrap();
}

/// Each boot of a host creates another target. The data kept for absent hosts must not delay frames of the
/// others.
#[test]
fn hundreds_of_absent_hosts_delay_no_frame() {
    let port = free_port();
    let (own, other) = (presence(1, 1), presence(2, 1));
    let (a, recorder_a) = open(&options(&[port], &[]), own);
    let (b, recorder_b) = open(&options(&[], &[port]), other);
    recorder_a.wait_presence(other, true);
    recorder_b.wait_presence(own, true);
    let count = 500;
    for number in 0..count {
        for lane in LANES {
            a.send(lane, presence(1000 + number, 1).host, numbered(0).into()).unwrap();
            a.send(lane, other.host, numbered(number).into()).unwrap();
            b.send(lane, own.host, numbered(number).into()).unwrap();
        }
    }
    for lane in LANES {
        let all: Vec<u64> = (0..count).collect();
        assert_eq!(recorder_b.wait_number(lane, own.host, count - 1), all);
        assert_eq!(recorder_a.wait_number(lane, other.host, count - 1), all);
    }
}

#[test]
fn host_with_a_late_listener_is_found_repeatedly() {
    let port = free_port();
    let (_b, recorder_b) = open(&options(&[], &[port]), presence(2, 1));
    for term in 1..3 {
        let (a, _) = open(&options(&[port], &[]), presence(1, term));
        let opened = Instant::now();
        println!("found after {:?}", recorder_b.wait_presence(presence(1, term), true) - opened);
        a.send(Lane::Urgent, presence(2, 1).host, numbered(term).into()).unwrap();
        recorder_b.wait_number(Lane::Urgent, presence(1, term).host, term);
        drop(a);
        recorder_b.wait_presence(presence(1, term), false);
    }
}

#[test]
fn domains_that_share_a_connection_do_not_hear_each_other() {
    let port = free_port();
    let (_a, recorder) = open(&options(&[port], &[]), presence(1, 1));
    let other = Recorder::new();
    let stranger = options(&[], &[port]);
    let gone =
        ZenohNet::open(&stranger, presence(2, 1), &DomainId::new("else").unwrap(), other.clone())
            .unwrap();
    let (_b, _) = open(&stranger, presence(3, 1));
    recorder.wait_presence(presence(3, 1), true);
    // A link of the same domain that connects later than the stranger: the stranger has been present long
    // enough to be seen.
    let (_c, _) = open(&stranger, presence(4, 1));
    recorder.wait_presence(presence(4, 1), true);
    recorder.wait("the two of its own domain only", |events| {
        (events.presences.len() == 2).then_some(())
    });
    other.wait("no host", |events| events.presences.is_empty().then_some(()));
    // But each knows why.
    let met = |domain: &str| vec![(domain.to_owned(), 1)];
    recorder.wait("the stranger is reported", |events| {
        (events.incompatible == met("else")).then_some(())
    });
    other.wait("the other way round, too", |events| {
        (events.incompatible == met("test")).then_some(())
    });
    drop(gone);
    recorder.wait("it is gone", |events| events.incompatible.is_empty().then_some(()));
}

#[test]
fn link_of_another_version_is_reported_and_not_heard() {
    let port = free_port();
    let (_a, recorder) = open(&options(&[port], &[]), presence(1, 1));
    let mut config = zenoh::Config::default();
    for (key, value) in [
        ("mode", "\"peer\"".to_owned()),
        ("connect/endpoints", format!("[\"tcp/127.0.0.1:{port}\"]")),
        ("scouting/multicast/enabled", "false".to_owned()),
    ] {
        config.insert_json5(key, &value).unwrap();
    }
    let session = zenoh::open(config).wait().unwrap();
    let token = |key: String| session.liveliness().declare_token(key).wait().unwrap();
    let of = |version: &str| format!("rnet/{version}/test/urgent/host/{:016x}/{:016x}", 2, 1);
    // The others are invented tokens.
    let _tokens = ["x", "-1", "9", "99999999999"].map(|version| token(of(version)));
    recorder.wait("it is reported", |events| {
        (events.incompatible == [("test".to_owned(), 9)]).then_some(())
    });
    // Only a few of the invented versions are reported.
    let many: Vec<_> = (100..200).map(|version| token(of(&version.to_string()))).collect();
    let (_b, _) = open(&options(&[], &[port]), presence(3, 1));
    recorder.wait_presence(presence(3, 1), true);
    recorder.wait("no more than a few", |events| (events.incompatible.len() == 16).then_some(()));
    recorder.wait("one that is heard", |events| (events.presences.len() == 1).then_some(()));
    drop(many);
    recorder.wait("only one is left", |events| {
        (events.incompatible == [("test".to_owned(), 9)]).then_some(())
    });
}

/// A host in its own process, for the tests that kill or stop it.
struct Process(Child);

impl Process {
    fn spawn(port: u16, own: Presence) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["--exact", "zenoh::a_process", "--ignored", "--nocapture"])
            .stdin(Stdio::piped());
        command.env("A_PROCESS", format!("{port} {} {}", own.host.0, own.term));
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "run by the tests that need a separate process"]
fn a_process() {
    let Ok(given) = env::var("A_PROCESS") else { return };
    let numbers: Vec<u64> = given.split(' ').map(|number| number.parse().unwrap()).collect();
    let port = u16::try_from(numbers[0]).unwrap();
    let (_net, _heard) = open(&options(&[], &[port]), presence(numbers[1], numbers[2]));
    // Until the parent has closed it, or exited.
    let _ = std::io::read_to_string(std::io::stdin());
}

#[test]
fn killed_process_is_reported_as_gone() {
    let port = free_port();
    let (_a, recorder) = open(&options(&[port], &[]), presence(1, 1));
    let other = Process::spawn(port, presence(2, 1));
    recorder.wait_presence(presence(2, 1), true);
    let began = Instant::now();
    other.signal(Signal::KILL);
    println!("gone after its kill: {:?}", recorder.wait_presence(presence(2, 1), false) - began);
}

#[test]
fn stopped_process_delays_no_other_for_long_and_returns() {
    let port = free_port();
    let (a, recorder) = open(&options(&[port], &[]), presence(1, 1));
    let (_c, recorder_c) = open(&options(&[], &[port]), presence(3, 1));
    let other = Process::spawn(port, presence(2, 1));
    for there in [presence(2, 1), presence(3, 1)] {
        recorder.wait_presence(there, true);
    }
    other.signal(Signal::STOP);
    let stopped = Instant::now();
    // More than the buffers of the kernel accept, to both, for longer than Zenoh's own time-out of 5 s.
    let mut longest = Duration::ZERO;
    let mut number = 0;
    let mut frame = vec![0; 16 << 10];
    while stopped.elapsed() < Duration::from_secs(8) {
        frame[..8].copy_from_slice(&u64::to_le_bytes(number));
        let began = Instant::now();
        a.send(Lane::Bulk, presence(2, 1).host, frame.clone().into()).unwrap();
        a.send(Lane::Bulk, presence(3, 1).host, frame.clone().into()).unwrap();
        longest = longest.max(began.elapsed());
        if number % 100 == 0 {
            recorder_c.wait_number(Lane::Bulk, presence(1, 1).host, number);
        }
        number += 1;
    }
    let gone = recorder.wait_presence(presence(2, 1), false);
    println!(
        "gone {:?} after its stop; the longest send took {longest:?}; {number} frames",
        gone - stopped
    );
    let received = recorder_c.wait_number(Lane::Bulk, presence(1, 1).host, number - 1);
    assert!(received.iter().copied().eq(0..number), "each frame, in order");
    recorder.wait("the other is never reported as gone", |events| {
        (events.is_up(presence(3, 1)) == Some(true)).then_some(())
    });
    let other_count = recorder.wait("reported", |events| {
        Some(events.presences.iter().filter(|seen| seen.0 == presence(3, 1)).count())
    });
    assert_eq!(other_count, 1);

    let goes_on = Instant::now();
    other.signal(Signal::CONT);
    println!(
        "back after {:?} of {LIMIT:?}",
        recorder.wait_presence(presence(2, 1), true) - goes_on
    );
}

/// Zenoh ends a connection that is silent, and one that accepts no frame. If both happened to one
/// connection, the second end removed the connection that was made in between from Zenoh's table: it stayed
/// open, the hosts were reported as present, and no frame left over it any more.
#[test]
fn silent_connection_with_a_waiting_frame_is_replaced() {
    let [far, near] = [free_port(), free_port()];
    let cable = Cable::lay(near, far);
    let (a, recorder_a) = open(&options(&[far], &[]), presence(1, 1));
    let (b, recorder_b) = open(&options(&[], &[near]), presence(2, 1));
    // Increasing with time, so that none is mistaken for an earlier one.
    let mut number = 0;
    let mut hear = |net: &ZenohNet, to: Presence, recorder: &Recorder, from: Presence, lane| {
        let end = Instant::now() + LIMIT;
        loop {
            number += 1;
            net.send(lane, to.host, numbered(number).into()).unwrap();
            std::thread::sleep(Duration::from_millis(20)); // sleep: interval of the frames
            let received = recorder.wait("frames", |events| Some(events.numbers(lane, from.host)));
            if received.contains(&number) {
                return;
            }
            assert!(Instant::now() < end, "{lane:?} frames to {to:?} do not come: {number}");
        }
    };
    for _ in 0..3 {
        recorder_a.wait_presence(presence(2, 1), true);
        recorder_b.wait_presence(presence(1, 1), true);
        for lane in LANES {
            hear(&a, presence(2, 1), &recorder_b, presence(1, 1), lane);
            hear(&b, presence(1, 1), &recorder_a, presence(2, 1), lane);
        }
        let gone = |recorder: &Recorder| {
            recorder.wait("reported", |events| {
                Some(events.presences.iter().filter(|seen| !seen.1).count())
            })
        };
        let before = gone(&recorder_a);
        cable.freeze();
        let frozen = Instant::now();
        // So that the silence is over before the frame is dropped.
        std::thread::sleep(Duration::from_millis(700)); // sleep: half of the silence that Zenoh tolerates
        let frame = [numbered(0), vec![0; 32 << 10]].concat();
        while gone(&recorder_a) == before {
            assert!(frozen.elapsed() < LIMIT, "the silence is reported");
            a.send(Lane::Bulk, presence(2, 1).host, frame.clone().into()).unwrap();
        }
        println!("gone {:?} after the cable froze", frozen.elapsed());
    }
    recorder_a.wait_presence(presence(2, 1), true);
    for lane in LANES {
        hear(&a, presence(2, 1), &recorder_b, presence(1, 1), lane);
        hear(&b, presence(1, 1), &recorder_a, presence(2, 1), lane);
    }
}

#[test]
fn failed_open_is_reported_with_advice() {
    let port = free_port();
    let taken = TcpListener::bind(("127.0.0.1", port + 1)).unwrap();
    let try_open = |options: &ZenohOptions| {
        ZenohNet::open(options, presence(1, 1), &DomainId::default(), Recorder::new())
            .err()
            .unwrap()
            .to_string()
    };
    let error = try_open(&options(&[port], &[]));
    assert!(error.contains(&format!("tcp/127.0.0.1:{port}")), "{error}");
    assert!(
        error.contains(&format!("port {} is in use", port + 1)) && error.contains("the bulk lane"),
        "{error}"
    );
    drop(taken);

    let foreign = ZenohOptions {
        listen: vec!["tcp/192.0.2.1:7450".parse().unwrap()],
        ..ZenohOptions::default()
    };
    let error = try_open(&foreign);
    assert!(
        error.contains("tcp/192.0.2.1:7450") && error.contains("an address of this host"),
        "{error}"
    );

    let unknown = ZenohOptions { lan: Some(vec!["eth77".into()]), ..ZenohOptions::default() };
    let error = try_open(&unknown);
    assert!(error.contains("no network interface \"eth77\"") && error.contains("lo"), "{error}");
}
