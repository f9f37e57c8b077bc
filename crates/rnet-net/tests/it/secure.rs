//! Secure sessions: who gets one, what a frame reveals, and what forged frames do.

mod hosts;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rnet::{Lane, OnFull};
use rnet_keys::KeysFile;
use rnet_net::{HostId, Presence, Sink, Transport};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use crate::common::{LONG, eventually};
use crate::hosts::Hosts;
use crate::random::Random;
pub use hosts::Keys;
use hosts::{Host, Notice, PLAIN, Recorder, Sent, Wire, both_see};

/// How long a test waits for what must not happen.
const QUIET: Duration = Duration::from_millis(300);
fn framed(bytes: &[u8]) -> Vec<u8> {
    [&PLAIN[..], bytes].concat()
}

#[test]
fn hosts_of_one_authority_exchange_sealed_frames() {
    let (wire, keys) = (Arc::new(Wire::default()), Keys::new());
    let robot = Host::join(&wire, 1, 7, &keys.host("robot"));
    let laptop = Host::join(&wire, 2, 9, &keys.host("laptop"));
    both_see(&robot, &laptop);
    assert_eq!(robot.network.identity(laptop.id()).unwrap().name, "laptop");
    assert_eq!(laptop.network.identity(robot.id()).unwrap().name, "robot");
    for lane in [Lane::Urgent, Lane::Bulk] {
        robot.send(lane, &laptop, b"a secret");
        laptop.send(lane, &robot, b"an answer");
        let expected = Notice::Frame(lane, robot.id(), framed(b"a secret"));
        eventually("it arrives", || laptop.notices.has(&expected));
        let expected = Notice::Frame(lane, laptop.id(), framed(b"an answer"));
        eventually("it arrives", || robot.notices.has(&expected));
    }
    let is_visible = |frame: &Sent| frame.bytes.windows(8).any(|part| part == b"a secret");
    assert!(!wire.sent().iter().any(is_visible));
    // The same message is sealed to other bytes.
    robot.send(Lane::Bulk, &laptop, b"a secret");
    let sealed: Vec<Sent> = wire.sent().into_iter().filter(|of| of.lane == Lane::Bulk).collect();
    assert_ne!(sealed[0].bytes[20..], sealed.last().unwrap().bytes[20..]);
    assert_eq!(robot.notices.refusals(), Vec::<String>::new());
}

#[test]
fn replayed_changed_and_forged_frames_do_not_arrive() {
    let (wire, keys) = (Arc::new(Wire::default()), Keys::new());
    let robot = Host::join(&wire, 1, 1, &keys.host("robot"));
    let laptop = Host::join(&wire, 2, 1, &keys.host("laptop"));
    let insider = Host::join(&wire, 3, 1, &keys.host("insider"));
    both_see(&robot, &laptop);
    both_see(&robot, &insider);
    both_see(&laptop, &insider);
    robot.send(Lane::Bulk, &laptop, b"once");
    eventually("it arrives", || laptop.notices.frames().len() == 1);
    let original = wire.sent().into_iter().rfind(|of| of.lane == Lane::Bulk).unwrap();
    // Again, on the other lane, as another host, and to another host.
    wire.deliver(&original);
    wire.deliver(&Sent { lane: Lane::Urgent, ..original.clone() });
    wire.deliver(&Sent { from: insider.id(), ..original.clone() });
    wire.deliver(&Sent { to: insider.id(), ..original.clone() });
    // Each byte changed, and each length, with a number that is still accepted.
    robot.send(Lane::Urgent, &laptop, b"x");
    eventually("it arrives", || laptop.notices.frames().len() == 2);
    *wire.to_lose.lock().unwrap() = 1;
    robot.send(Lane::Bulk, &laptop, b"lost");
    let mut next = original.clone();
    next.bytes[12] += 1;
    for at in 0..next.bytes.len() {
        let mut changed = next.clone();
        changed.bytes[at] ^= 1;
        wire.deliver(&changed);
        changed.bytes.truncate(at);
        wire.deliver(&changed);
    }
    // Plain frames, and those that the insider seals for its own session.
    wire.deliver(&Sent { bytes: framed(b"plain"), ..original.clone() });
    insider.send(Lane::Bulk, &laptop, b"of the insider");
    eventually("it arrives", || laptop.notices.frames().len() == 3);
    let sealed = wire.sent().into_iter().rfind(|of| of.from == insider.id()).unwrap();
    wire.deliver(&Sent { from: robot.id(), ..sealed });
    std::thread::sleep(QUIET); // sleep: nothing more may arrive
    let expected = [&b"once"[..], b"x", b"of the insider"].map(framed);
    assert_eq!(laptop.notices.frames(), expected);
    assert_eq!(insider.notices.frames(), Vec::<Vec<u8>>::new());
    // The sessions live on.
    robot.send(Lane::Bulk, &laptop, b"still");
    eventually("it arrives", || laptop.notices.frames().contains(&framed(b"still")));
}

#[test]
fn a_host_of_another_authority_is_refused_and_both_say_so() {
    let (wire, keys, foreign) = (Arc::new(Wire::default()), Keys::new(), Keys::new());
    for (id, of_stranger) in [(1, 2), (4, 3)] {
        let robot = Host::join(&wire, id, 1, &keys.host("robot"));
        let stranger = Host::join(&wire, of_stranger, 1, &foreign.host("stranger"));
        let says =
            |host: &Host, word: &str| host.notices.refusals().iter().any(|of| of.contains(word));
        eventually("the robot says who and why", || {
            says(&robot, "stranger") && says(&robot, "authority")
        });
        eventually("the stranger says so, too", || says(&stranger, "authority"));
        assert!(!robot.sees(&stranger) && !stranger.sees(&robot));
        robot.send(Lane::Bulk, &stranger, b"secret");
        assert!(!wire.sent().iter().any(|of| of.lane == Lane::Bulk));
        wire.sinks.write().unwrap().clear();
    }
}

#[test]
fn a_host_without_keys_is_refused() {
    let (wire, keys) = (Arc::new(Wire::default()), Keys::new());
    let robot = Host::join(&wire, 1, 1, &keys.host("robot"));
    let (notices, own) = (Arc::new(Recorder::default()), Presence { host: HostId(2), term: 1 });
    let plain = wire.join(own, notices.clone());
    plain.send(Lane::Urgent, robot.id(), framed(b"hello").into()).unwrap();
    eventually("the robot says why", || {
        robot.notices.refusals().iter().any(|of| of.contains("rnet keys add-host"))
    });
    assert_eq!(robot.notices.frames(), Vec::<Vec<u8>>::new());
    assert!(!robot.notices.has(&Notice::Up(own)));
}

#[test]
fn lost_parts_of_a_handshake_are_sent_again() {
    for lost in 1..4 {
        let (wire, keys) = (Arc::new(Wire::default()), Keys::new());
        *wire.to_lose.lock().unwrap() = lost;
        let robot = Host::join(&wire, 1, 1, &keys.host("robot"));
        let laptop = Host::join(&wire, 2, 1, &keys.host("laptop"));
        both_see(&robot, &laptop);
    }
}

#[test]
fn a_link_that_has_lost_its_sessions_gets_others() {
    let (wire, keys) = (Arc::new(Wire::default()), Keys::new());
    let (robot_keys, laptop_keys) = (keys.host("robot"), keys.host("laptop"));
    for robot_id in [1, 3] {
        let robot = Host::join(&wire, robot_id, 1, &robot_keys);
        let laptop = Host::join(&wire, 2, 1, &laptop_keys);
        both_see(&robot, &laptop);
        let laptop = Host::join(&wire, 2, 2, &laptop_keys);
        both_see(&robot, &laptop);
        eventually("frames of the new session arrive", || {
            robot.send(Lane::Bulk, &laptop, b"again");
            !laptop.notices.frames().is_empty()
        });
        wire.sinks.write().unwrap().clear();
    }
}

#[test]
fn a_request_for_another_handshake_interrupts_nothing() {
    let (wire, keys) = (Arc::new(Wire::default()), Keys::new());
    let robot = Host::join(&wire, 1, 1, &keys.host("robot"));
    let laptop = Host::join(&wire, 2, 1, &keys.host("laptop"));
    both_see(&robot, &laptop);
    let parts = || wire.sent().iter().filter(|of| of.bytes[3] == 1).count();
    let before = parts();
    let request = [&[0x53, 0x4E, 1, 4][..], &[7; 8]].concat();
    let mut number = 0_u32;
    eventually("another handshake has been made", || {
        wire.deliver(&Sent {
            from: laptop.id(),
            to: robot.id(),
            lane: Lane::Bulk,
            bytes: request.clone(),
        });
        robot.send(Lane::Bulk, &laptop, &number.to_le_bytes());
        number += 1;
        std::thread::sleep(Duration::from_millis(5)); // sleep: interval of the messages
        parts() >= before + 6
    });
    eventually("all have arrived", || laptop.notices.frames().len() == number as usize);
    let ups = robot.notices.all().iter().filter(|notices| matches!(notices, Notice::Up(_))).count();
    assert_eq!(ups, 1);
    assert!(!robot.notices.all().iter().any(|notices| matches!(notices, Notice::Down(_))));
    // A thousand requests do not make a thousand handshakes.
    let before = parts();
    for _ in 0..1000 {
        wire.deliver(&Sent {
            from: laptop.id(),
            to: robot.id(),
            lane: Lane::Bulk,
            bytes: request.clone(),
        });
    }
    std::thread::sleep(QUIET); // sleep: what must not happen
    assert!(parts() < before + 20);
}

#[test]
fn a_revoked_host_is_out_everywhere() {
    let (wire, keys) = (Arc::new(Wire::default()), Keys::new());
    let robot_keys = keys.host("robot");
    let robot = Host::join(&wire, 2, 1, &robot_keys);
    let arm = Host::join(&wire, 1, 1, &keys.host("arm"));
    let laptop = Host::join(&wire, 3, 1, &keys.host("laptop"));
    both_see(&robot, &arm);
    both_see(&robot, &laptop);
    both_see(&arm, &laptop);
    let camera_keys = keys.host("camera");
    keys.revoke("laptop", &robot_keys);
    for host in [&robot, &arm] {
        eventually("the others end their sessions with it", || {
            host.notices.has(&Notice::Down(laptop.presence))
                && host.network.identity(laptop.id()).is_none()
        });
        eventually("and say why", || {
            host.notices.refusals().iter().any(|of| of.contains("laptop") && of.contains("revoked"))
        });
    }
    eventually("it learns why", || {
        laptop.notices.refusals().iter().any(|of| of.contains("revoked"))
    });
    laptop.send(Lane::Bulk, &arm, b"still here");
    arm.send(Lane::Bulk, &laptop, b"secret");
    robot.send(Lane::Bulk, &arm, b"goes on");
    eventually("the others go on", || arm.notices.frames() == [framed(b"goes on")]);
    assert!(laptop.notices.frames().is_empty());
    assert!(robot.sees(&arm) && !robot.notices.has(&Notice::Down(arm.presence)));
    // Also for a host that comes later, and has keys from before.
    let camera = Host::join(&wire, 4, 1, &camera_keys);
    both_see(&camera, &arm);
    eventually("it refuses the laptop", || {
        camera.network.identity(laptop.id()).is_none()
            && camera.notices.refusals().iter().any(|of| of.contains("revoked"))
    });
}

#[test]
fn a_revoked_host_is_refused_in_the_handshake() {
    for id in [1, 3] {
        let (wire, keys) = (Arc::new(Wire::default()), Keys::new());
        let (robot_keys, laptop_keys) = (keys.host("robot"), keys.host("laptop"));
        keys.revoke("laptop", &robot_keys);
        let robot = Host::join(&wire, 2, 1, &robot_keys);
        let laptop = Host::join(&wire, id, 1, &laptop_keys);
        for host in [&robot, &laptop] {
            eventually("it says why", || {
                host.notices.refusals().iter().any(|of| of.contains("revoked"))
            });
        }
        assert!(!robot.notices.has(&Notice::Up(laptop.presence)));
        assert!(robot.network.identity(laptop.id()).is_none());
    }
}

#[test]
fn a_lost_revocation_list_is_sent_again() {
    let (wire, keys) = (Arc::new(Wire::default()), Keys::new());
    let robot_keys = keys.host("robot");
    let robot = Host::join(&wire, 2, 1, &robot_keys);
    let arm = Host::join(&wire, 1, 1, &keys.host("arm"));
    let laptop = Host::join(&wire, 3, 1, &keys.host("laptop"));
    both_see(&robot, &arm);
    both_see(&robot, &laptop);
    both_see(&arm, &laptop);
    let lists = || wire.sent().iter().filter(|of| of.bytes[3] == 3 && of.bytes.len() > 44).count();
    *wire.to_lose.lock().unwrap() = 6;
    keys.revoke("laptop", &robot_keys);
    eventually("the arm has the list", || arm.network.identity(laptop.id()).is_none());
    // It is not sent for ever.
    std::thread::sleep(QUIET); // sleep: the acknowledgement arrives
    let before = lists();
    std::thread::sleep(3 * QUIET); // sleep: what must not happen
    assert_eq!(lists(), before);
}

#[test]
fn random_frames_have_no_effect() {
    let (wire, keys, mut random) = (Arc::new(Wire::default()), Keys::new(), Random(1));
    let robot = Host::join(&wire, 2, 1, &keys.host("robot"));
    let laptop = Host::join(&wire, 3, 1, &keys.host("laptop"));
    both_see(&robot, &laptop);
    let seen: Vec<Vec<u8>> = wire.sent().into_iter().map(|of| of.bytes).collect();
    for _ in 0..20_000 {
        // Random bytes after a valid beginning, or a frame that was sent, with random changes.
        let mut bytes = vec![0x53, 0x4E, 1, random.below(8) as u8];
        if random.chance(1, 2) {
            bytes.extend((0..random.below(100)).map(|_| random.next() as u8));
        } else {
            bytes.clone_from(&seen[random.below(seen.len())]);
            for _ in 0..random.in_range(1..4) {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
        }
        let from = HostId(random.in_range(1..6));
        let lane = if random.chance(1, 2) { Lane::Urgent } else { Lane::Bulk };
        wire.deliver(&Sent { from, to: robot.id(), lane, bytes });
    }
    eventually("frames arrive as before", || {
        laptop.send(Lane::Bulk, &robot, b"after it");
        robot.notices.frames().contains(&framed(b"after it"))
    });
    assert!(robot.notices.frames().iter().all(|frame| *frame == framed(b"after it")));
    assert!(robot.sees(&laptop) && !robot.notices.has(&Notice::Down(laptop.presence)));
}

/// A part of a handshake that a client sends.
fn client_part(number: u8, bytes: &[u8]) -> Vec<u8> {
    let fields = [&[0x53, 0x4E, 1, 1][..], &7_u64.to_le_bytes(), &1_u64.to_le_bytes()].concat();
    [&fields, &[1, number][..], bytes].concat()
}

#[test]
fn bytes_after_the_end_of_a_handshake_are_refused() {
    let (wire, keys) = (Arc::new(Wire::default()), Keys::new());
    let robot = Host::join(&wire, 5, 1, &keys.host("robot"));
    let insider = KeysFile::load(&keys.host("insider")).unwrap();
    let name = ServerName::try_from("rnet").unwrap();
    let mut client = ClientConnection::new(insider.client_config(), name).unwrap();
    let (from, to, lane) = (HostId(1), robot.id(), Lane::Urgent);
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    wire.deliver(&Sent { from, to, lane, bytes: client_part(0, &bytes) });
    let mut answer = None;
    eventually("the robot answers", || {
        answer = wire.sent().into_iter().find(|of| of.to == from);
        answer.is_some()
    });
    let answer = answer.unwrap();
    let mut rest = &answer.bytes[22..];
    while !rest.is_empty() {
        client.read_tls(&mut rest).unwrap();
        client.process_new_packets().unwrap();
    }
    let mut bytes = Vec::new();
    client.send_close_notify();
    while client.wants_write() {
        client.write_tls(&mut bytes).unwrap();
    }
    bytes.resize(bytes.len() + 64 * 1024, 0);
    wire.deliver(&Sent { from, to, lane, bytes: client_part(1, &bytes) });
    // The thread of the keys goes on.
    let laptop = Host::join(&wire, 6, 1, &keys.host("laptop"));
    both_see(&robot, &laptop);
    assert!(robot.network.identity(from).is_none());
}

#[test]
fn a_number_stays_that_of_its_owner_while_its_link_restarts() {
    let (wire, keys) = (Arc::new(Wire::default()), Keys::new());
    let robot = Host::join(&wire, 2, 1, &keys.host("robot"));
    let (laptop_keys, other_keys) = (keys.host("laptop"), keys.host("other"));
    for id in [1, 3] {
        let laptop = Host::join(&wire, id, 1, &laptop_keys);
        both_see(&robot, &laptop);
        drop(laptop);
        let other = Host::join(&wire, id, 2, &other_keys);
        eventually("the robot refuses the other host", || {
            robot.notices.refusals().iter().any(|of| of.contains("other uses the number"))
        });
        assert!(!robot.notices.has(&Notice::Up(other.presence)));
        assert!(robot.network.identity(other.id()).is_none_or(|of| of.name != "other"));
        other.send(Lane::Bulk, &robot, b"as the laptop");
        drop(other);
        let laptop = Host::join(&wire, id, 3, &laptop_keys);
        both_see(&robot, &laptop);
        wire.sinks.write().unwrap().remove(&laptop.id());
    }
    assert!(robot.notices.frames().is_empty());
}

#[test]
fn the_number_of_a_host_cannot_be_taken() {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    let (wire, keys) = (Arc::new(Wire::default()), KEYS.get_or_init(Keys::new));
    let robot = Host::join(&wire, 2, 1, &keys.host("robot"));
    let laptop = Host::join(&wire, 1, 1, &keys.host("laptop"));
    both_see(&robot, &laptop);
    // It joins another network, whose frames reach the robot under the laptop's number.
    let (bridge, other) = (Arc::new(Wire::default()), keys.host("other"));
    let to_robot = wire.clone();
    let forward = Arc::new(Forward { wire: to_robot, from: laptop.id() });
    bridge.sinks.write().unwrap().insert(robot.id(), (robot.presence, forward));
    let _other = Host::join(&bridge, 1, 1, &other);
    // Answers of the robot to the laptop's number also reach the impostor.
    let relay = || {
        for frame in wire.sent().iter().filter(|of| of.to == laptop.id()) {
            bridge.deliver(frame);
        }
    };
    eventually("the robot refuses it", || {
        relay();
        std::thread::sleep(Duration::from_millis(20)); // sleep: interval between two checks
        robot.notices.refusals().iter().any(|of| of.contains("other uses the number"))
    });
    assert_eq!(robot.network.identity(laptop.id()).unwrap().name, "laptop");
    robot.send(Lane::Bulk, &laptop, b"for the laptop");
    eventually("the session lives on", || laptop.notices.frames() == [framed(b"for the laptop")]);
}

/// Delivers what it receives on another network.
struct Forward {
    wire: Arc<Wire>,
    from: HostId,
}

impl Sink for Forward {
    fn on_frame(&self, lane: Lane, _: HostId, frame: &[u8]) {
        let (from, to) = (self.from, HostId(2));
        self.wire.deliver(&Sent { from, to, lane, bytes: frame.to_vec() });
    }

    fn on_up(&self, _: Presence) {}

    fn on_down(&self, _: Presence) {}
}

#[test]
fn nodes_of_hosts_with_keys_exchange_messages_and_know_each_other_by_certificate() {
    let keys = Keys::new();
    let hosts = Hosts::with_keys("keys", &[keys.host("robot"), keys.host("laptop")]);
    let (lidar, map) = (hosts.node(0, "lidar"), hosts.node(1, "map"));
    let mut scans = lidar.publisher::<[u8]>("/scan").reliable(OnFull::Wait(LONG)).open().unwrap();
    let mut subscriber = map.subscriber::<[u8]>("/scan").reliable().open().unwrap();
    scans.wait_for_subscribers_timeout(1, LONG).unwrap();
    for number in 0..1000_u32 {
        scans.send(&number.to_le_bytes()).unwrap();
    }
    for number in 0..1000_u32 {
        let scan = subscriber.recv_timeout(LONG).unwrap();
        assert_eq!((&*scan, scan.node()), (&number.to_le_bytes()[..], "@robot/lidar"));
    }
    // Larger than a frame.
    let image = vec![7; 3 << 20];
    scans.send(&image).unwrap();
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), image[..]);
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn a_host_is_revoked_while_others_exchange_messages() {
    let keys = Keys::new();
    let robot = keys.host("robot");
    let files = [robot.clone(), keys.host("arm"), keys.host("laptop")];
    let hosts = Hosts::with_keys("revoked", &files);
    let (lidar, arm, laptop) = (hosts.node(0, "lidar"), hosts.node(1, "arm"), hosts.node(2, "spy"));
    let mut scans = lidar.publisher::<[u8]>("/scan").reliable(OnFull::Wait(LONG)).open().unwrap();
    let mut of_arm = arm.subscriber::<[u8]>("/scan").reliable().open().unwrap();
    let mut of_laptop = laptop.subscriber::<[u8]>("/scan").reliable().open().unwrap();
    scans.wait_for_subscribers_timeout(2, LONG).unwrap();
    let count = std::sync::atomic::AtomicU64::new(0);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let number = count.fetch_add(1, Ordering::SeqCst);
                scans.send(&number.to_le_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(1)); // sleep: a stream of 1 kHz
            }
        });
        let mut next = 0_u64;
        let mut receive = || {
            let scan = of_arm.recv_timeout(LONG).unwrap();
            assert_eq!(*scan, next.to_le_bytes());
            next += 1;
        };
        (0..200).for_each(|_| receive());
        of_laptop.recv_timeout(LONG).unwrap();
        keys.revoke("laptop", &robot);
        let began = std::time::Instant::now();
        let mut last = Duration::ZERO;
        // Its publisher stays known for as long as another link of its host could come.
        while of_laptop.publisher_count() > 0 {
            receive();
            while let Ok(Some(_)) = of_laptop.try_recv() {
                last = began.elapsed();
            }
        }
        println!(
            "step-note: the last message to it {} ms after the list was written",
            last.as_millis()
        );
        (0..200).for_each(|_| receive());
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(of_arm.lost().total(), 0);
}
