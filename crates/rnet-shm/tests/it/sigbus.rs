//! The handler of SIGBUS that a node installs leaves every other SIGBUS of the process as it was.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::ptr;

use rnet_core::{DomainId, NodeName};
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::OwnNode;

const ROLE: &str = "RNET_TEST_SIGBUS";
/// What the program's own handler ends the process with.
const HANDLED: i32 = 42;

extern "C" fn plain_handler(_: libc::c_int) {
    // SAFETY: async-signal-safe.
    unsafe { libc::_exit(HANDLED) };
}

extern "C" fn full_handler(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel hands a valid structure to a handler with SA_SIGINFO.
    let whole = unsafe { (*info).si_signo } == signal && !context.is_null();
    // SAFETY: async-signal-safe.
    unsafe { libc::_exit(if whole { HANDLED } else { 1 }) };
}

fn set(handler: libc::sighandler_t, flags: libc::c_int) {
    // SAFETY: all zero is a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    // SAFETY: the handlers above are async-signal-safe.
    assert_eq!(unsafe { libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) }, 0);
}

/// Touches memory that has lost its file and is none of robot-net's.
fn fault_elsewhere() {
    let file = rustix::fs::memfd_create("elsewhere", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, 4096).unwrap();
    let (prot, flags) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let at = unsafe { rustix::mm::mmap(ptr::null_mut(), 4096, prot, flags, &file, 0) }.unwrap();
    rustix::fs::ftruncate(&file, 0).unwrap();
    // SAFETY: mapped above; it faults, which is what this is for.
    unsafe { at.cast::<u8>().read_volatile() };
}

#[test]
#[ignore = "played by the children of the other tests"]
fn child_entry() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (before, then) = role.split_once(',').unwrap();
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a limit of this process.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &no_core) };
    match before {
        "rust" => {} // the handler of the standard library, which is there from the start
        "default" => set(libc::SIG_DFL, 0),
        "ignored" => set(libc::SIG_IGN, 0),
        "plain" => set(plain_handler as extern "C" fn(libc::c_int) as libc::sighandler_t, 0),
        "full" => {
            type Full = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            set(full_handler as Full as libc::sighandler_t, libc::SA_SIGINFO | libc::SA_NODEFER);
        }
        other => panic!("{other}"),
    }
    let dir = std::env::temp_dir().join(format!("rnet-sigbus-{}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    let id = DomainId::new("t").unwrap();
    let config = DomainConfig { id, base: Some(dir.clone()), group: None };
    // A node maps its bells, and the first mapping installs the handler.
    let node = DomainDir::open_or_create(&config)
        .and_then(|dir| OwnNode::create(&dir, &NodeName::new("n")?, "rust", "0"));
    std::fs::remove_dir_all(&dir).unwrap();
    let node = node.unwrap();
    match then {
        "fault" => fault_elsewhere(),
        // SAFETY: a signal to this thread.
        "sent" => assert_eq!(unsafe { libc::raise(libc::SIGBUS) }, 0),
        other => panic!("{other}"),
    }
    drop(node);
}

fn play(role: &str) -> ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sigbus::child_entry", "--ignored", "--test-threads=1"])
        .env(ROLE, role)
        .status()
        .unwrap()
}

#[test]
fn other_faults_and_signals_end_as_they_did() {
    for role in ["rust,fault", "default,fault", "ignored,fault", "default,sent"] {
        assert_eq!(play(role).signal(), Some(libc::SIGBUS), "{role}");
    }
    for role in ["plain,fault", "plain,sent", "full,fault", "full,sent"] {
        assert_eq!(play(role).code(), Some(HANDLED), "{role}");
    }
    // The handler of the standard library lets the first one that is sent pass.
    for role in ["ignored,sent", "rust,sent"] {
        assert!(play(role).success(), "{role}");
    }
}
