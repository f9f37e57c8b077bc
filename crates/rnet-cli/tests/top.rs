//! `rnet top`.

mod util;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use util::processes::until;
use util::{Place, Pump};

const LONG: Duration = Duration::from_secs(30);

#[test]
fn one_interval_is_printed() {
    let place = Place::new();
    let (imu, control) = (place.node("imu"), place.node("control"));
    let mut angles = control.subscriber::<[u8]>("/angles").unwrap();
    let pump = Pump::start(imu.publisher::<[u8]>("/angles").unwrap(), Box::from(*b"12345678"));
    angles.recv(Some(LONG)).unwrap();
    let document = rnet!(place, "top", "--once", "--json", "--interval", "0.5").json();
    let topic = &document["topics"][0];
    assert_eq!(topic["topic"], "/angles");
    let hz = topic["rate_hz"].as_f64().unwrap();
    assert!(hz > 1.0 && hz <= 1100.0, "{topic}");
    assert!((topic["bytes_per_s"].as_f64().unwrap() / hz - 8.0).abs() < 0.01, "{topic}");
    let pid = std::process::id();
    let nodes = document["nodes"].as_array().unwrap();
    assert!(
        nodes.iter().all(|n| n["pid"] == pid && n["rss_bytes"].as_u64() > Some(0)),
        "{nodes:?}"
    );
    assert!(nodes.iter().all(|n| n["state"] == "runs"), "{nodes:?}");
    let text = rnet!(place, "top", "--once", "--interval", "0.1", "--filter", "ang").ok();
    assert!(text.contains("/angles") && !text.contains("/imu"), "{text}");
    drop(pump);
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let place = Place::new();
    let error = rnet!(place, "top").fails(2);
    assert!(error.contains("--once"), "{error}");
}

/// A terminal of 80 × 24 with the program in it.
struct Terminal {
    master: File,
    shown: mpsc::Receiver<Vec<u8>>,
    seen: String,
    child: std::process::Child,
}

impl Terminal {
    fn start(place: &Place, args: &[&str]) -> Terminal {
        Terminal::open(place, args, true)
    }

    /// One that takes no output.
    fn deaf(place: &Place, args: &[&str]) -> Terminal {
        Terminal::open(place, args, false)
    }

    fn open(place: &Place, args: &[&str], reads: bool) -> Terminal {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = || {
            let file = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap());
            Stdio::from(file.unwrap())
        };
        if !reads {
            let out = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
            let out = rustix::fs::open(name.as_c_str(), out, Mode::empty()).unwrap();
            // What was written moves on for a while, which makes room again.
            let a_while = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
            while poll(&mut [PollFd::new(&out, PollFlags::OUT)], Some(&a_while)).unwrap() > 0 {
                let _ = rustix::io::write(&out, &[b'.'; 512]);
            }
        }
        let mut command = place.command();
        command.args(args).stdin(slave()).stdout(slave()).stderr(slave());
        let child = command.spawn().unwrap();
        drop(command);
        let master = File::from(master);
        let (tell, shown) = mpsc::channel();
        let mut reader = master.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of the program is an error of the terminal.
            while reads && let Ok(len @ 1..) = reader.read(&mut bytes) {
                if tell.send(bytes[..len].to_vec()).is_err() {
                    break;
                }
            }
        });
        Terminal { master, shown, seen: String::new(), child }
    }

    fn type_in(&mut self, keys: &str) {
        self.seen.clear();
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    fn until(&mut self, text: &str) {
        let until = Instant::now() + LONG;
        while !self.seen.contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.seen += &String::from_utf8_lossy(&bytes),
                Err(error) => {
                    let seen: String = self.seen.chars().take(2000).collect();
                    panic!("{text:?} is not shown ({error}): {seen:?}");
                }
            }
        }
    }

    fn end(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    fn modes(&self) -> rustix::termios::Termios {
        tcgetattr(self.master.as_fd()).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that has failed leaves it running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_choose_what_is_shown_and_the_terminal_is_restored() {
    let place = Place::new();
    let imu = place.node("imu");
    let pump = Pump::start(imu.publisher::<[u8]>("/angles").unwrap(), Box::from(*b"1"));
    let mut terminal = Terminal::start(&place, &["top", "--interval", "0.2"]);
    terminal.until("/angles");
    assert!(!terminal.modes().local_modes.contains(rustix::termios::LocalModes::ICANON));
    // Only what changes is drawn: the name stands where nothing stood, on the page of the node.
    terminal.type_in("\t\r");
    terminal.until("/angles");
    terminal.type_in("q");
    // It leaves the other screen, and shows the cursor.
    terminal.until("\u{1b}[?1049l");
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.modes().local_modes.contains(rustix::termios::LocalModes::ICANON));
    drop(pump);
}

#[test]
fn one_signal_is_enough_where_the_terminal_takes_no_output() {
    let place = Place::new();
    let _imu = place.node("imu");
    let mut terminal = Terminal::deaf(&place, &["top"]);
    let raw = |terminal: &Terminal| {
        !terminal.modes().local_modes.contains(rustix::termios::LocalModes::ICANON)
    };
    until("it takes the terminal", || raw(&terminal));
    let pid = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut code = None;
    until("it ends", || {
        code = terminal.child.try_wait().unwrap();
        code.is_some()
    });
    assert_eq!(code.and_then(|status| status.code()), Some(130));
    assert!(!raw(&terminal));
}

#[test]
fn a_signal_restores_the_terminal() {
    let place = Place::new();
    let _imu = place.node("imu");
    let mut terminal = Terminal::start(&place, &["top"]);
    terminal.until("domain");
    let pid = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    terminal.until("\u{1b}[?1049l");
    assert_eq!(terminal.end(), Some(130));
    assert!(terminal.modes().local_modes.contains(rustix::termios::LocalModes::ICANON));
}
