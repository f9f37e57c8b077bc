//! Attacks on the open ports of a real `rnet-link`: bytes that are not Zenoh, bytes of a real peer that are
//! cut, changed and repeated, and a joined Zenoh session that sends invalid frames. The link does not exit,
//! grow, or publish any of it.

use crate::attack;
use crate::folder;
use crate::sinks;

mod flood;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use attack::resident;
use folder::{Folder, LONG, eventually, free_port};
use rnet::{DomainId, Lane};
use rnet_net::config::Endpoint;
use rnet_net::wire::{ACK_ONLY, HEADER_LEN, Header};
use rnet_net::zenoh::{ZenohNet, ZenohOptions};
use rnet_net::{HostId, Transport};
use sinks::{Recorder, presence};

/// Different for each process: multicast finds other processes on this computer.
fn domain_name() -> String {
    format!("ports{}", std::process::id())
}

/// The most memory that the link may use beyond that before the attack, in bytes.
const MAX_GROWTH_BYTES: u64 = 64 << 20;

/// Random numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }

    /// The same bytes, truncated or with a few flipped bits.
    fn spoil(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut spoilt = bytes[..1 + self.below(bytes.len())].to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(spoilt.len());
            spoilt[at] ^= 1 << self.below(8);
        }
        spoilt
    }
}

/// A host, and its link.
struct Host {
    folder: Folder,
    link: Child,
}

impl Host {
    fn start(name: &str, config: &str) -> Host {
        let folder = Folder::new(&domain_name());
        folder.configure(&format!("[network]\nhost = {name:?}\n{config}"));
        let link = folder.command(&["run"]).stderr(Stdio::null()).spawn().unwrap();
        Host { folder, link }
    }

    /// The ports of its UDP sockets.
    fn udp_ports(&self) -> Vec<u16> {
        let sockets: Vec<String> = fs::read_dir(format!("/proc/{}/fd", self.link.id()))
            .unwrap()
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()?.to_str().map(str::to_owned))
            .collect();
        let table = fs::read_to_string("/proc/net/udp").unwrap();
        let ports = table.lines().skip(1).filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let ours = sockets.contains(&format!("socket:[{}]", words[9]));
            u16::from_str_radix(words[1].rsplit(':').next()?, 16).ok().filter(|_| ours)
        });
        ports.collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.link.kill();
        let _ = self.link.wait();
    }
}

fn endpoint(port: u16) -> Endpoint {
    format!("tcp/127.0.0.1:{port}").parse().unwrap()
}

/// Forwards bytes from the port `from` to the port `to`, and records them.
fn record(from: u16, to: u16) -> Arc<Mutex<Vec<u8>>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let listener = TcpListener::bind(("127.0.0.1", from)).unwrap();
    let said = kept.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { return };
            let (mut back, mut answers) =
                (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut answers, &mut back);
                let _ = back.shutdown(Shutdown::Both);
            });
            let (mut client, mut server, said) = (client, server, said.clone());
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(len @ 1..) = client.read(&mut bytes) {
                    let mut said = said.lock().unwrap();
                    // Only the beginning of a conversation is needed.
                    if said.len() < 64 << 10 {
                        said.extend_from_slice(&bytes[..len]);
                    }
                    drop(said);
                    if server.write_all(&bytes[..len]).is_err() {
                        break;
                    }
                }
                let _ = server.shutdown(Shutdown::Both);
            });
        }
    });
    kept
}

/// Sends bytes to a TCP port, and optionally waits for an answer.
fn attack(port: u16, bytes: &[u8], wait: bool) {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return };
    // A refused client sees the end of the connection.
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    let _ = stream.write_all(bytes);
    if wait {
        let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
        let _ = stream.read(&mut [0; 256]);
    }
}

fn options(port: u16) -> ZenohOptions {
    ZenohOptions { connect: vec![endpoint(port)], ..Default::default() }
}

/// Sends so many of each kind of bytes to the ports of a link.
fn attack_for(rounds: usize) {
    let (port, recorder_port) = (free_port(), free_port());
    let config = format!(
        "mode = \"lan\"\ninterfaces = [\"lo\"]\nlisten = [\"tcp/127.0.0.1:{port}\"]\n[[network.rule]]\n\
         topic = \"/cmd\"\ndirection = \"in\"\nallow = false\n"
    );
    let mut one = Host::start("one", &config);
    let node = one.folder.node();
    let mut hears = node.subscriber::<[u8]>("/t").open().unwrap();
    eventually("the link listens", || TcpStream::connect(("127.0.0.1", port + 1)).is_ok());

    // The bytes that a real peer sends on either lane.
    let said = [record(recorder_port, port), record(recorder_port + 1, port + 1)];
    let domain = DomainId::new(&domain_name()).unwrap();
    let recorder = Recorder::new();
    let evil = presence(0x666, 1);
    let net = ZenohNet::open(&options(recorder_port), evil, &domain, recorder.clone()).unwrap();
    let victim = recorder.wait("the link is heard", |events| {
        events.presences.iter().find(|(_, up, _)| *up).map(|(presence, ..)| presence.host)
    });
    let introduction = recorder.wait("it introduces itself", |events| {
        events.frames.iter().find(|(_, from, _)| *from == victim).map(|(_, _, frame)| frame.clone())
    });
    let before = resident(one.link.id());

    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (theirs, _) = Header::decode(&introduction).unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    for round in 0..rounds {
        let lane = if round % 2 == 0 { Lane::Urgent } else { Lane::Bulk };
        // As a joined session: invalid frames, and invalid items in valid frames.
        let len = random.below(2000);
        let noise = random.bytes(len);
        net.send(lane, victim, noise.clone().into()).unwrap();
        let spoilt = random.spoil(&introduction);
        net.send(lane, victim, spoilt.clone().into()).unwrap();
        net.send(lane, victim, introduction.clone().into()).unwrap();
        let mut frame = vec![0; HEADER_LEN];
        frame.extend_from_slice(&noise);
        let header = Header {
            flags: if random.below(4) == 0 { ACK_ONLY } else { 0 },
            len: frame.len() as u32,
            from_term: (1 << 32) + round as u64 / 8,
            to_term: theirs.from_term,
            number: random.below(3) as u64,
            next: random.below(3) as u64,
            sent_ns: rnet::now_ns(),
            ..Header::default()
        };
        header.encode(&mut frame);
        net.send(lane, victim, frame.clone().into()).unwrap();
        net.send(lane, HostId(random.below(9) as u64), frame.into()).unwrap();

        // As an unknown client.
        let to = port + (round % 2) as u16;
        attack(to, &noise, false);
        let recorded = said[round % 2].lock().unwrap().clone();
        attack(to, &random.spoil(&recorded), true);
        if round % 16 == 0 {
            attack(to, &recorded, true);
        }
        for to in one.udp_ports() {
            for bytes in [noise.as_slice(), &[0x02], &[0x01, 0x09, 0x07], &[0x62; 1400]] {
                let _ = udp.send_to(&bytes[..bytes.len().min(1400)], ("127.0.0.1", to));
            }
        }
    }
    assert!(one.link.try_wait().unwrap().is_none(), "the link lives");
    let grown = resident(one.link.id()).saturating_sub(before);
    println!("{rounds} rounds: {} KiB more than {} KiB", grown >> 10, before >> 10);
    assert!(grown < MAX_GROWTH_BYTES, "{grown} bytes more");
    let snapshot = one.folder.location().domain().unwrap().snapshot().unwrap();
    let of_evil = snapshot.publishers.iter().filter(|p| p.node.starts_with('@')).count();
    assert_eq!((of_evil, snapshot.remote.len()), (0, 0), "nothing has joined");
    assert!(hears.try_recv().unwrap().is_none(), "and nothing has come");
    drop(net);

    // It still links.
    let two = Host::start("two", &format!("connect = [\"tcp/127.0.0.1:{port}\"]"));
    let other = two.folder.node();
    let mut sends = other.publisher::<[u8]>("/t").open().unwrap();
    let mut not = other.publisher::<[u8]>("/cmd").open().unwrap();
    let mut command = node.subscriber::<[u8]>("/cmd").open().unwrap();
    sends.wait_for_subscribers_timeout(1, LONG).unwrap();
    not.send(b"no").unwrap();
    sends.send(b"yes").unwrap();
    assert_eq!(&*hears.recv_timeout(LONG).unwrap(), b"yes");
    assert!(command.try_recv().unwrap().is_none(), "a rule blocks it");
}

/// Like those of a scanner, which opens another connection for each that is closed. A new host is not
/// mistaken for one of them.
#[test]
fn silent_connections_do_not_block_a_host() {
    let port = free_port();
    let one = Host::start("one", &format!("listen = [\"tcp/127.0.0.1:{port}\"]"));
    let node = one.folder.node();
    eventually("the link listens", || TcpStream::connect(("127.0.0.1", port + 1)).is_ok());
    let connect = |port: u16| {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nonblocking(true).unwrap();
        (port, stream)
    };
    let each = (0..250).flat_map(|_| [port, port + 1]);
    let begun = Instant::now();
    let mut silent: Vec<(u16, TcpStream)> = each.map(connect).collect();
    let (is_met, mut closed) = (AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_met.load(Ordering::Relaxed) {
                for (port, stream) in &mut silent {
                    if stream.read(&mut [0; 1]).is_ok_and(|len| len == 0) {
                        *stream = connect(*port).1;
                        closed += 1;
                    }
                }
                std::thread::sleep(Duration::from_millis(10)); // sleep: between two checks
            }
        });
        let two = Host::start("two", &format!("connect = [\"tcp/127.0.0.1:{port}\"]"));
        let (sends, hears) = (two.folder.node(), node.subscriber::<[u8]>("/t").open().unwrap());
        let publisher = sends.publisher::<[u8]>("/t").open().unwrap();
        let met = publisher.wait_for_subscribers_timeout(1, LONG);
        is_met.store(true, Ordering::Relaxed);
        met.unwrap();
        drop(hears);
    });
    // Each is kept open as long as a host's would be, and not closed for exceeding the limit.
    let times = 1 + begun.elapsed().as_secs() as usize / 10;
    assert!(closed <= times * silent.len(), "{closed} were closed in {times} times 10 s");
}

#[test]
fn arbitrary_bytes_on_the_ports_have_no_effect() {
    attack_for(100);
}

#[test]
#[ignore = "for `make soak`: some minutes"]
fn soak_arbitrary_bytes_on_the_ports_have_no_effect() {
    attack_for(5_000);
}
