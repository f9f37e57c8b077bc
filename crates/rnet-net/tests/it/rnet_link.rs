//! The program `rnet-link`, run as nodes, people and systemd run it.

use crate::folder;
mod keys;
mod stopped;

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use folder::{Folder, LONG, eventually, free_port};
use rnet::msgs::LinkStatus;
use rustix::process::{Pid, Signal};

/// A host, and the program on it.
struct LinkFolder(Folder);

impl Deref for LinkFolder {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl LinkFolder {
    fn new() -> LinkFolder {
        LinkFolder(Folder::new("linktest"))
    }

    /// With a network of one host that listens on its own port.
    fn with_port() -> LinkFolder {
        let place = LinkFolder::new();
        place.configure(&format!(
            "[network]\nhost = \"one\"\nlisten = [\"tcp/127.0.0.1:{}\"]",
            free_port()
        ));
        place
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn holder(&self, role: &str) -> Option<u32> {
        self.location().role(role).unwrap().holder().unwrap()
    }

    /// Waits for a process that links and a standby.
    fn wait_for_both(&self) -> (u32, u32) {
        let mut both = None;
        eventually("a link and a standby run", || {
            both = self.holder("link").zip(self.holder("link-standby"));
            both.is_some_and(|(link, standby)| link != standby) && self.is_linked()
        });
        both.unwrap()
    }

    /// Whether the link publishes its status.
    fn is_linked(&self) -> bool {
        let snapshot = self.location().domain().unwrap().snapshot().unwrap();
        snapshot.publishers.iter().any(|publisher| publisher.topic == "/_rnet/link")
    }
}

impl Drop for LinkFolder {
    fn drop(&mut self) {
        for role in ["link", "link-standby"] {
            // Both, in case the test has failed: otherwise a link outlives the test.
            if let Some(pid) = self.holder(role) {
                signal(pid, Signal::KILL);
            }
        }
    }
}

fn signal(pid: u32, signal: Signal) {
    let _ = rustix::process::kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn nothing_starts_while_the_network_is_off() {
    let place = LinkFolder::new();
    let ran = place.run(&["start"]);
    assert_eq!(text(&ran.stdout), "the network is off (default): no link is started\n");
    assert!(ran.status.success() && ran.stderr.is_empty());
    assert!(!place.location().exists().unwrap(), "no domain was made");
    let ran = place.run(&["run"]);
    assert_eq!(ran.status.code(), Some(1));
    assert!(text(&ran.stderr).starts_with("rnet-link: the network is off (default). Set"));
    place.configure("[network]\nmode = \"off\"\nlisten = [\"tcp/127.0.0.1:7450\"]");
    assert!(text(&place.run(&["start"]).stdout).contains("off (robot.toml:2)"));
}

#[test]
fn invalid_setting_is_reported_before_anything_starts() {
    let place = LinkFolder::new();
    place.configure("[network]\nmode = \"lan\"\nlisen = []");
    for word in ["start", "run", "config"] {
        let ran = place.run(&[word]);
        assert_eq!(ran.status.code(), Some(1));
        let said = text(&ran.stderr);
        assert!(
            said.starts_with("rnet-link: robot.toml:3:1: network.lisen: unknown key"),
            "{said}"
        );
    }
    assert!(!place.location().exists().unwrap());
    assert_eq!(place.run(&["strat"]).status.code(), Some(2));
}

#[test]
fn link_beyond_this_host_needs_insecure() {
    let place = LinkFolder::new();
    let listen = "[network]\nlisten = [\"tcp/0.0.0.0:7450\"]\n";
    place.configure(listen);
    for word in ["start", "run"] {
        let ran = place.run(&[word]);
        assert_eq!(ran.status.code(), Some(1));
        let said = text(&ran.stderr);
        assert!(
            said.contains("network.listen: tcp/0.0.0.0:7450 reaches beyond this host"),
            "{said}"
        );
        assert!(said.contains("insecure = true") && said.contains("RNET_INSECURE=1"), "{said}");
    }
    let refused = || {
        let ran = place.run(&["config"]);
        let settings: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
        settings["refused"].is_string()
    };
    assert!(refused() && !place.location().exists().unwrap());
    place.configure(&format!("{listen}insecure = true"));
    assert!(!refused());
}

#[test]
fn config_prints_the_effective_settings() {
    let place = LinkFolder::new();
    place.configure("[network]\nmode = \"lan\"\ninterfaces = [\"lo\"]\nhost = \"one\"");
    let ran = place.run(&["config", "--connect", "tcp/10.0.0.2:7450"]);
    let settings: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(settings["mode"], "lan");
    assert_eq!(settings["mode_from"], "robot.toml:2");
    assert_eq!(settings["file"], "robot.toml");
    assert_eq!(settings["version"], rnet::VERSION);
    assert_eq!(settings["connect"], serde_json::json!(["tcp/10.0.0.2:7450"]));
}

/// `rnet-link config | grep -q mode` exits with success: the reader has closed the pipe before everything
/// is written.
#[test]
fn closed_pipe_is_not_an_error() {
    let place = LinkFolder::new();
    for word in ["start", "config"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = place.command(&[word]).stdout(writer).output().unwrap();
        assert!(ran.status.success(), "{word}: {}", text(&ran.stderr));
    }
}

#[test]
fn background_link_has_a_standby_and_exits_with_the_last_node() {
    let place = LinkFolder::with_port();
    let node = place.node();
    // A pipe of the starting process, which the link must close: it ends while the link runs.
    let (mut read, write) = std::io::pipe().unwrap();
    rustix::io::fcntl_setfd(&write, rustix::io::FdFlags::empty()).unwrap();
    let started = place.run(&["start"]);
    assert!(started.status.success(), "{}", text(&started.stderr));
    drop(write);
    read.read_to_end(&mut Vec::new()).unwrap();

    let (link, standby) = place.wait_for_both();
    for pid in [link, standby] {
        for fd in 0..3 {
            let file = fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap();
            assert_eq!(file.to_str(), Some("/dev/null"), "{fd} of {pid}");
        }
        let pid = Pid::from_raw(pid as i32);
        assert_eq!(rustix::process::getsid(pid).unwrap(), pid.unwrap());
    }
    let again = text(&place.run(&["start"]).stdout);
    assert_eq!(
        again,
        format!("process {link} is the link of this host, process {standby} is the standby\n")
    );

    // The standby takes over, and gets a standby itself.
    signal(link, Signal::KILL);
    eventually("the standby takes over", || place.holder("link") == Some(standby));
    let (second, third) = place.wait_for_both();
    assert_eq!(second, standby);
    // It exits on SIGTERM, too, and the next one takes over.
    signal(second, Signal::TERM);
    eventually("the third process links", || place.holder("link") == Some(third));
    let (_, fourth) = place.wait_for_both();

    // A tool does not keep it running.
    let _tool = place.builder("tool").tool().open().unwrap();
    drop(node);
    for pid in [third, fourth] {
        eventually("it exits with the last node", || has_ended(pid));
    }
    // The standby may have linked meanwhile, and have had a standby itself.
    eventually("no process is left", || {
        place.holder("link").or(place.holder("link-standby")).is_none()
    });
}

/// Whether a process has ended; its parent may not have waited for it.
fn has_ended(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn link_in_a_terminal_runs_until_it_is_stopped() {
    let place = LinkFolder::with_port();
    let mut link =
        place.command(&["run"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("it links", || place.holder("link") == Some(link.id()) && place.is_linked());
    drop(place.node());
    // Another one in a terminal waits for its turn.
    let mut next = place.command(&["run"]).spawn().unwrap();
    eventually("it is the standby", || place.holder("link-standby") == Some(next.id()));
    assert!(link.try_wait().unwrap().is_none(), "it runs without nodes");
    signal(link.id(), Signal::INT);
    let ended = link.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), text(&ended.stderr)), (Some(0), String::new()));
    eventually("the next one links", || place.holder("link") == Some(next.id()));
    signal(next.id(), Signal::TERM);
    assert!(next.wait().unwrap().success());
}

/// Runs a command of the link, and returns it with the first line of its output.
fn first_line(mut command: Command) -> (std::process::Child, String) {
    let (read, write) = std::io::pipe().unwrap();
    let child = command.stderr(write).spawn().unwrap();
    drop(command);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(read));
    (child, lines.next().unwrap().unwrap())
}

#[test]
fn reason_for_not_listening_is_reported() {
    let place = LinkFolder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("tcp/{}", taken.local_addr().unwrap());
    let _node = place.node();
    let end = |mut child: std::process::Child| {
        let holds = || place.holder("link");
        eventually("it has the role", || holds().is_some());
        signal(holds().unwrap(), Signal::TERM);
        child.wait().unwrap();
        eventually("no process is left", || holds().or(place.holder("link-standby")).is_none());
    };
    for words in [["run", "--listen"], ["start", "--listen"]] {
        let mut command = place.command(&words);
        command.arg(&at);
        // In the background it is reported as well.
        let (child, said) = first_line(command);
        let words = "rnet-link: --listen: cannot listen on tcp/127.0.0.1:";
        assert!(said.starts_with(words) && said.ends_with("retrying until it works"), "{said}");
        end(child);
    }
    for (config, words) in [
        (
            format!("[network]\nlisten = [\n  {at:?}\n]"),
            format!("robot.toml:3:3: network.listen: cannot listen on {at}: port"),
        ),
        (
            "network.listen = [\"tcp/192.0.2.1:7450\"]\nnetwork.insecure = true".into(),
            "robot.toml:1:19: network.listen: cannot listen on tcp/192.0.2.1:7450: ".into(),
        ),
    ] {
        place.configure(&config);
        let (child, said) = first_line(place.command(&["run"]));
        assert!(said.contains(&words), "{said}");
        end(child);
    }
}

#[test]
fn port_in_use_is_retried_until_it_is_free() {
    let place = LinkFolder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("tcp/{}", taken.local_addr().unwrap());
    let node = place.node();
    let mut command = place.command(&["run", "--listen"]);
    command.arg(&at);
    let (mut child, _) = first_line(command);
    let mut statuses =
        node.subscriber::<rnet::msgs::LinkStatus>("/_rnet/link").transient_local().open().unwrap();
    let mut until = |what: &str, is_so: &dyn Fn(&rnet::msgs::LinkStatus) -> bool| {
        eventually(what, || {
            let mut found = false;
            while let Ok(Some(status)) = statuses.try_recv() {
                found |= is_so(&status);
            }
            found
        });
    };
    until("it reports what it waits for", &|status| {
        status.listen.is_empty() && status.problems.iter().any(|problem| problem.contains(&at))
    });
    drop(taken);
    until("it listens", &|status| status.listen == [at.clone()] && status.problems.is_empty());
    signal(child.id(), Signal::TERM);
    assert!(child.wait().unwrap().success());
}

#[test]
fn lan_warns_that_anyone_can_join() {
    let place = LinkFolder::new();
    place.configure("[network]\nmode = \"lan\"\ninterfaces = [\"lo\"]");
    let mut command = place.command(&["run", "--listen"]);
    command.arg(format!("tcp/127.0.0.1:{}", free_port()));
    let (read, write) = std::io::pipe().unwrap();
    let mut child = command.stderr(write).spawn().unwrap();
    drop(command);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(read));
    let first = lines.next().unwrap().unwrap();
    assert_eq!(
        first,
        "rnet-link: the network of domain linktest is \"lan\": anyone on the LAN can join it, read its topics and \
         publish on them"
    );
    eventually("it links", || place.is_linked());
    signal(child.id(), Signal::TERM);
    assert!(child.wait().unwrap().success());
    assert!(lines.next().is_none(), "once");
}

#[test]
fn two_hosts_communicate() {
    let (one, two) = (LinkFolder::new(), LinkFolder::new());
    let port = free_port();
    one.configure(&format!("[network]\nhost = \"one\"\nlisten = [\"tcp/127.0.0.1:{port}\"]"));
    two.configure(&format!("[network]\nhost = \"two\"\nconnect = [\"tcp/127.0.0.1:{port}\"]"));
    let (lidar, map) = (one.node(), two.node());
    for place in [&one, &two] {
        let started = place.run(&["start"]);
        assert!(started.status.success(), "{}", text(&started.stderr));
    }
    let mut scans =
        lidar.publisher::<[u8]>("/scan").reliable(rnet::OnFull::Wait(LONG)).open().unwrap();
    let mut subscriber = map.subscriber::<[u8]>("/scan").reliable().open().unwrap();
    scans.wait_for_subscribers_timeout(1, LONG).unwrap();
    for n in 0..100_u8 {
        scans.send(&[n]).unwrap();
    }
    for n in 0..100 {
        let sample = subscriber.recv_timeout(LONG).unwrap();
        assert_eq!((&*sample, sample.node()), (&[n][..], "@one/robot"));
    }
    // Either host can read the state of the other.
    lidar.state().unwrap().set("/mode", "idle").unwrap();
    let state = map.state_of("one").unwrap();
    assert_eq!(state.get("/mode").unwrap().value, Some("idle".into()));
    state.set("/mode", "moving").unwrap();
    assert_eq!(lidar.state().unwrap().get("/mode").unwrap(), Some("moving".into()));
    // The link exits with the last node, and its endpoints are gone.
    drop((scans, lidar));
    eventually("the first link exits", || one.holder("link").is_none());
    eventually("its publisher is gone", || subscriber.publisher_count() == 0);
}

/// One link is stopped, then one is killed, and so on, on either side, while a publisher continues.
#[test]
fn links_change_hands_under_traffic() {
    let (one, two) = (LinkFolder::new(), LinkFolder::new());
    let port = free_port();
    // A stopped link is silent for 500 ms, and for longer on a busy machine.
    let network = "[network]\nlost_after_ms = 10000";
    one.configure(&format!("{network}\nhost = \"one\"\nlisten = [\"tcp/127.0.0.1:{port}\"]"));
    two.configure(&format!("{network}\nhost = \"two\"\nconnect = [\"tcp/127.0.0.1:{port}\"]"));
    let (from, to) = (one.node(), two.node());
    for place in [&one, &two] {
        assert!(place.run(&["start"]).status.success());
    }
    let mut numbers = from
        .publisher::<[u8]>("/numbers")
        .reliable(rnet::OnFull::Wait(LONG))
        .log_len_bytes(16 << 20)
        .transient_local(10_000)
        .open()
        .unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/numbers").reliable().open().unwrap();
    numbers.wait_for_subscribers_timeout(1, LONG).unwrap();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let sending = std::thread::spawn(move || {
        let mut number = 0_u64;
        // sleep: about a thousand a second, until it is stopped.
        while stopped.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
            numbers.send(&number.to_le_bytes()).unwrap();
            number += 1;
        }
        (numbers, number)
    });
    let mut next = 0;
    let mut take =
        |subscriber: &mut rnet::Subscriber<[u8]>, until: Option<u64>, limit: Duration| {
            let begun = Instant::now();
            while until.is_none_or(|until| next < until) {
                match subscriber.recv_timeout(limit.saturating_sub(begun.elapsed())) {
                    Ok(message) => {
                        let number = u64::from_le_bytes(message[..8].try_into().unwrap());
                        assert_eq!(number, next, "in order, and once");
                        next += 1;
                    }
                    Err(rnet::Error::Timeout { .. }) => return next,
                    Err(error) => panic!("{error} after {next}"),
                }
            }
            next
        };
    for (round, place) in [&one, &two, &one, &two].into_iter().enumerate() {
        let (link, standby) = place.wait_for_both();
        let before = take(&mut subscriber, None, Duration::from_millis(300));
        assert!(before > 0);
        signal(link, if round < 2 { Signal::STOP } else { Signal::KILL });
        let begun = Instant::now();
        eventually("the standby takes over", || place.holder("link") == Some(standby));
        eventually("it is heard again", || {
            take(&mut subscriber, None, Duration::from_millis(20)) > before + 500
        });
        println!("round {round}: {:?}", begun.elapsed());
        eventually("the earlier one is gone", || {
            fs::read_to_string(format!("/proc/{link}/stat")).map_or(true, |s| s.contains(") Z "))
        });
    }
    drop(stop);
    let (_numbers, sent) = sending.join().unwrap();
    assert_eq!(take(&mut subscriber, Some(sent), LONG), sent);
    assert_eq!(subscriber.lost().total(), 0);
}

/// A node that opens while the link exits with the previous node finds the link still present, and gets
/// another one.
#[test]
fn node_that_opens_as_the_link_exits_gets_a_link() {
    let place = LinkFolder::with_port();
    let mut node = place.node();
    assert!(place.run(&["start"]).status.success());
    for _ in 0..8 {
        place.wait_for_both();
        drop(node);
        node = place.node();
        assert!(place.run(&["start"]).status.success());
    }
    place.wait_for_both();
    eventually("it links", || place.is_linked());
}

#[test]
fn host_of_another_domain_is_reported() {
    let (one, two) = (LinkFolder::new(), LinkFolder(Folder::new("otherdomain")));
    let port = free_port();
    one.configure(&format!("[network]\nhost = \"one\"\nlisten = [\"tcp/127.0.0.1:{port}\"]"));
    two.configure(&format!("[network]\nhost = \"two\"\nconnect = [\"tcp/127.0.0.1:{port}\"]"));
    let nodes = [one.node(), two.node()];
    for place in [&one, &two] {
        assert!(place.run(&["start"]).status.success());
    }
    for (node, domain) in nodes.iter().zip(["otherdomain", "linktest"]) {
        let mut statuses =
            node.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
        loop {
            let status = statuses.recv_timeout(LONG).unwrap();
            assert!(status.peers.is_empty());
            let Some(problem) = status.problems.first() else { continue };
            assert!(problem.contains(&format!("it is in domain {domain}, this one")), "{problem}");
            assert!(problem.contains("RNET_DOMAIN"), "{problem}");
            break;
        }
    }
    // The problem disappears with that host.
    let [node, other] = nodes;
    drop((other, two));
    status(&node, "nothing is wrong", |status| status.problems.is_empty());
}

/// The first matching status; others are skipped.
fn status(node: &rnet::Node, what: &str, mut fits: impl FnMut(&LinkStatus) -> bool) -> LinkStatus {
    let mut statuses =
        node.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
    let mut found = None;
    eventually(what, || {
        found = statuses.latest_timeout(LONG).ok().map(|status| status.clone()).filter(&mut fits);
        found.is_some()
    });
    found.unwrap()
}

const RULE: &str = "\n[[network.rule]]\ntopic = \"/secret\"\nallow = false\n";

#[test]
fn changed_file_is_reloaded_and_a_mistake_is_reported() {
    let place = LinkFolder::new();
    let port = free_port();
    let file = |host: &str, more: &str| {
        format!("[network]\nhost = \"{host}\"\nlisten = [\"tcp/127.0.0.1:{port}\"]\n{more}")
    };
    place.configure(&file("one", ""));
    let node = place.node();
    assert!(place.run(&["start"]).status.success());
    let (link, standby) = place.wait_for_both();
    // A mistake changes nothing, and is reported with its location.
    place.configure(&file("two", "lisen = []\n"));
    let link_status = status(&node, "the mistake is reported", |status| {
        status.problems.iter().any(|problem| problem.contains("lisen"))
    });
    let problem = &link_status.problems[0];
    assert!(problem.contains("robot.toml:4") && problem.contains("lisen"), "{problem}");
    assert!(problem.contains("the previous settings stay in effect"), "{problem}");
    assert_eq!((link_status.host.as_str(), link_status.pid), ("one", link));
    // After the correction, the standby links with the new settings.
    place.configure(&file("two", RULE));
    let link_status = status(&node, "the new settings hold", |status| status.host == "two");
    assert_eq!((link_status.pid, link_status.problems.len()), (standby, 0));
    place.wait_for_both();
    // A file with the same settings in other words changes nothing.
    let before = place.wait_for_both();
    place.configure(&format!("{}# the same\n", file("two", RULE)));
    std::thread::sleep(Duration::from_secs(2)); // sleep: nothing shows that nothing happens
    assert_eq!(place.wait_for_both(), before);
}

#[test]
fn file_created_while_the_link_runs_is_read() {
    let place = LinkFolder::new();
    let at = format!("tcp/127.0.0.1:{}", free_port());
    let node = place.node();
    assert!(place.run(&["start", "--listen", &at]).status.success());
    let (link, standby) = place.wait_for_both();
    // A file that other users may have created is not read, and reading does not block on a pipe.
    let file = place.file();
    place.configure("[network]\nhost = \"evil\"\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let link_status =
        status(&node, "the problem is reported", |status| !status.problems.is_empty());
    let problem = &link_status.problems[0];
    assert!(problem.contains("mode 666") && problem.contains("--config"), "{problem}");
    fs::remove_file(&file).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &file, fifo, 0o600.into(), 0).unwrap();
    let seconds = |status: &LinkStatus| status.timestamp.as_ref().map_or(0, |at| at.seconds);
    let begun = status(&node, "the link runs", |_| true);
    status(&node, "the link still runs", |status| seconds(status) > seconds(&begun) + 2);
    fs::remove_file(&file).unwrap();
    // An empty file changes nothing, and a mistake is reported.
    place.configure("");
    place.configure("[network]\nlisen = []\n");
    let link_status = status(&node, "the mistake is reported", |status| {
        status.problems.iter().any(|problem| problem.contains("lisen"))
    });
    assert_eq!(link_status.pid, link);
    let problem = link_status.problems.last().unwrap();
    assert!(problem.contains("robot.toml:2") && problem.contains("lisen"), "{problem}");
    place.configure("[network]\nhost = \"two\"\n");
    let link_status = status(&node, "the new settings hold", |status| status.host == "two");
    assert_eq!((link_status.pid, link_status.listen.as_slice()), (standby, [at].as_slice()));
    place.wait_for_both();
}
