//! What happens at a fail point: this process kills or stops itself where it stands.
//!
//! Only in development builds (`debug_assertions`). `RNET_FAIL_POINT=<name>[@<n-th pass>][=kill|stop]` arms one;
//! `kill`, at the first pass, is what happens when nothing else is said.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

struct Armed {
    name: String,
    /// At which pass it fires, counted from 1.
    at: u64,
    signal: libc::c_int,
    passed: AtomicU64,
}

/// Arms what the environment names; called by whoever joins a domain, and by programs that pass points without one.
pub fn install() {
    rnet_ring::failpoint::install(pass);
}

fn pass(name: &'static str) {
    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    let armed = ARMED.get_or_init(|| parse(&std::env::var("RNET_FAIL_POINT").ok()?));
    let Some(armed) = armed.as_ref().filter(|armed| armed.name == name) else { return };
    if armed.passed.fetch_add(1, Ordering::Relaxed) + 1 == armed.at {
        // To this thread and not to the process: it is delivered before the call returns, so that the
        // thread does not go on while the kernel tells another. Both signals then are for all threads.
        // SAFETY: takes nothing and cannot fail.
        let process = unsafe { libc::getpid() };
        // SAFETY: takes nothing and cannot fail.
        let thread = unsafe { libc::gettid() };
        // SAFETY: the call takes no pointers.
        unsafe { libc::syscall(libc::SYS_tgkill, process, thread, armed.signal) };
    }
}

/// `None`, and a line that says so, if the text is no fail point: a run that arms nothing is no test.
fn parse(text: &str) -> Option<Armed> {
    let (place, action) = text.split_once('=').unwrap_or((text, "kill"));
    let (name, at) = place.split_once('@').unwrap_or((place, "1"));
    let signal = match action {
        "kill" => Some(libc::SIGKILL),
        "stop" => Some(libc::SIGSTOP),
        _ => None,
    };
    match (at.parse(), signal) {
        (Ok(at @ 1..), Some(signal)) => {
            Some(Armed { name: name.to_owned(), at, signal, passed: AtomicU64::new(0) })
        }
        _ => {
            eprintln!("RNET_FAIL_POINT={text}: expected <name>[@<n-th pass>][=kill|stop]");
            None
        }
    }
}
