//! A terminal, and the real binary in it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::{HANG_LIMIT, TestEnv, processes};

/// Both ends of a new terminal.
pub fn pair() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
    (File::from(master), File::from(slave))
}

/// A terminal of 80 × 24 with the program in it.
pub struct Terminal {
    master: File,
    shown: mpsc::Receiver<Vec<u8>>,
    seen: String,
    child: std::process::Child,
}

impl Terminal {
    pub fn start(env: &TestEnv, args: &[&str]) -> Terminal {
        Terminal::open(env, &[], args, true)
    }

    /// With the program in the background of a shell.
    pub fn background(env: &TestEnv, args: &[&str]) -> Terminal {
        let shell = ["bash", "-c", "set -m; \"$0\" \"$@\" & wait $!"];
        Terminal::open(env, &shell, args, true)
    }

    /// A terminal that accepts no output.
    pub fn without_reader(env: &TestEnv, args: &[&str]) -> Terminal {
        Terminal::open(env, &[], args, false)
    }

    fn open(env: &TestEnv, before: &[&str], args: &[&str], reads: bool) -> Terminal {
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
            // Written data drains for a while, which frees buffer space again.
            let a_while = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
            while poll(&mut [PollFd::new(&out, PollFlags::OUT)], Some(&a_while)).unwrap() > 0 {
                let _ = rustix::io::write(&out, &[b'.'; 512]);
            }
        }
        let rnet = env.command();
        // The terminal controls its own session, as in a shell: its keys send signals.
        let mut command = Command::new("setsid");
        command.arg("--ctty").args(before).arg(rnet.get_program()).args(args);
        for (name, value) in rnet.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        // The tests may run without a terminal, and with TERM set accordingly.
        command.env("TERM", "xterm");
        command.stdin(slave()).stdout(slave()).stderr(slave());
        let child = command.spawn().unwrap();
        drop(command);
        let master = File::from(master);
        let (tell, shown) = mpsc::channel();
        let mut reader = master.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The exit of the program appears as a terminal error.
            while reads && let Ok(len @ 1..) = reader.read(&mut bytes) {
                if tell.send(bytes[..len].to_vec()).is_err() {
                    break;
                }
            }
        });
        Terminal { master, shown, seen: String::new(), child }
    }

    pub fn send_keys(&mut self, keys: &str) {
        self.seen.clear();
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is written. Considers the output since the last key press.
    #[track_caller]
    pub fn until(&mut self, text: &str) {
        self.until_shown(&format!("{text:?}"), |seen| seen.contains(text));
    }

    /// Waits until the screen matches: the output since the last clear.
    #[track_caller]
    pub fn wait_for_screen(&mut self, is_like: impl Fn(&str) -> bool) {
        let clear = "\u{1b}[H\u{1b}[J";
        self.until_shown("a screen like that", |seen| {
            seen.rsplit_once(clear).is_some_and(|(_, screen)| is_like(screen))
        });
    }

    #[track_caller]
    fn until_shown(&mut self, what: &str, is_shown: impl Fn(&str) -> bool) {
        let until = Instant::now() + HANG_LIMIT;
        while !is_shown(&self.seen) {
            let left = until.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.seen += &String::from_utf8_lossy(&bytes),
                Err(error) => {
                    let last = self.seen.chars().count().saturating_sub(2000);
                    let seen: String = self.seen.chars().skip(last).collect();
                    panic!("{what} is not shown ({error}): {seen:?}");
                }
            }
        }
    }

    /// Waits for the exit, and returns the exit code.
    pub fn end(&mut self) -> Option<i32> {
        let mut status = None;
        processes::until("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.and_then(|status| status.code())
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes the window: the program's next write finds the other end closed.
    pub fn hang_up(&mut self) {
        self.shown = mpsc::channel().1;
        self.master = File::open("/dev/null").unwrap();
    }

    /// The same, with keys whose echo or answer makes the program write.
    pub fn hang_up_after(&mut self, keys: &str) {
        self.shown = mpsc::channel().1;
        self.master.write_all(keys.as_bytes()).unwrap();
        self.hang_up();
    }

    /// Whether the program reads keys one by one.
    pub fn is_raw(&self) -> bool {
        !tcgetattr(self.master.as_fd()).unwrap().local_modes.contains(LocalModes::ICANON)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A failed test leaves it running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
