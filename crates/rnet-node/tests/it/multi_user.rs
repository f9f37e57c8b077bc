//! Users of one machine: a private domain is closed to others, and a group's domain works with each umask.
//! Leftovers of other users are reported and block no one.

use crate::common;

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use common::{Child, LONG, Net, eventually, not_run, role, tell, until_error};
use rnet::inspect::{Domain, Location};
use rnet::{Error, Node, OnFull};

/// Users and a group that need no entry in /etc/passwd.
const ALICE: u32 = 64_001;
const BOB: u32 = 64_002;
const GROUP: u32 = 64_100;
const STRANGER: u32 = 64_003;

fn group_node(net: &Net, name: &str) -> Result<Node, Error> {
    net.builder(name).group(&GROUP.to_string()).open()
}

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    match role.as_str() {
        // A node of its user's own domain.
        "private" => match net.builder("private").open() {
            Ok(_node) => {
                tell("ready");
                drop(orders.recv());
            }
            Err(error) => tell(&error.to_string()),
        },
        // The nodes that it sees, and what it can read of Alice's domain.
        "look" => {
            let mut domain = Domain::open(Some("t"), Some(net.base().to_owned()), None).unwrap();
            tell(&format!("{} nodes", domain.snapshot().unwrap().nodes.len()));
            let alice = net.base().join(format!("rnet-{ALICE}-t"));
            tell(&std::fs::read_dir(alice).map_or_else(|e| e.kind().to_string(), |_| "in".into()));
        }
        // Leftovers of this user in the group's domain after a sweep.
        "leftover_folders" => {
            let location = swept(&net);
            for path in location.leftover_folders().into_iter().chain(location.inaccessible_names())
            {
                let owner = path.symlink_metadata().unwrap().uid();
                tell(&format!("{} of user {owner}", path.display()));
            }
            tell("that is all");
        }
        // One side of a conversation in the group's domain: sends its number, receives the other's, and then
        // the other's death.
        "left" | "right" => {
            let (mine, other) = if role == "left" { ("left", "right") } else { ("right", "left") };
            let node = match group_node(&net, mine) {
                Ok(node) => node,
                Err(error) => return tell(&error.to_string()),
            };
            let mut says = node
                .publisher::<[u8]>(&format!("/{mine}"))
                .reliable(OnFull::Wait(LONG))
                .open()
                .unwrap();
            let mut hears =
                node.subscriber::<[u8]>(&format!("/{other}")).reliable().open().unwrap();
            says.wait_for_subscribers_timeout(1, LONG).unwrap();
            for len in [10, 200_000] {
                says.send(&vec![7; len]).unwrap();
                assert_eq!(hears.recv_timeout(LONG).unwrap().len(), len);
            }
            tell("talked");
            let (_, error) = until_error(&mut hears);
            tell(&error.to_string());
            drop(orders.recv());
        }
        other => panic!("unknown role: {other}"),
    }
}

/// A copy of this binary that each user can execute, removed when the last test drops it. Not in /dev/shm,
/// which may be small and mounted noexec.
struct Program(PathBuf);

impl Program {
    /// The shared copy for all running tests.
    fn shared() -> Arc<Program> {
        static SHARED: Mutex<Weak<Program>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = shared.upgrade() {
            return program;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("rnet-users-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir(&folder).unwrap();
        let program = Arc::new(Program(folder));
        std::fs::set_permissions(&program.0, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::copy(std::env::current_exe().unwrap(), program.path()).unwrap();
        std::fs::set_permissions(program.path(), PermissionsExt::from_mode(0o755)).unwrap();
        *shared = Arc::downgrade(&program);
        program
    }

    fn path(&self) -> PathBuf {
        self.0.join("program")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A domain that several users can reach, and the program that each of them can run.
struct Open {
    net: Net,
    program: Arc<Program>,
}

impl std::ops::Deref for Open {
    type Target = Net;

    fn deref(&self) -> &Net {
        &self.net
    }
}

/// A command that runs as another user.
fn command_of(user: u32, group: u32) -> Command {
    let mut command = Command::new("sh");
    // std clears the supplementary groups when root sets a user id.
    command.uid(user).gid(group).current_dir("/");
    command
}

/// A child that runs as another user.
fn child_of(net: &Open, user: u32, group: u32, umask: &str, role: &str) -> Child {
    let mut command = command_of(user, group);
    command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]).arg(net.program.path());
    Child::start(Child::order(command, net, role))
}

/// A domain for several users, if this user may switch to them.
fn net_for_all(name: &str) -> Option<Open> {
    if !rustix::process::geteuid().is_root() {
        not_run("only root can start processes of other users");
        return None;
    }
    let program = Program::shared();
    // Without a role it does nothing.
    let mut probe = command_of(ALICE, GROUP);
    probe.args(["-c", "exec \"$0\" --exact multi_user::child_entry --ignored"]).arg(program.path());
    match probe.output() {
        Ok(out) if out.status.success() => {}
        Ok(out) => {
            let why = String::from_utf8_lossy(&out.stderr);
            not_run(&format!(
                "other users can run nothing in the folder of temporary files, \
                              TMPDIR: {}",
                why.trim()
            ));
            return None;
        }
        // Root of a user namespace that has only one user.
        Err(why) => {
            not_run(&format!("root may not become another user here: {why}"));
            return None;
        }
    }
    let net = Net::new(name);
    std::fs::set_permissions(net.base(), PermissionsExt::from_mode(0o1777)).unwrap();
    Some(Open { net, program })
}

fn group_dir(net: &Net) -> PathBuf {
    net.base().join(format!("rnet-g{GROUP}-t"))
}

/// The group's domain after an inspection, which sweeps it.
fn swept(net: &Net) -> Location {
    let (dir, group) = (Some(net.base().to_owned()), Some(GROUP.to_string()));
    let location = Location::new(Some("t"), dir, group).unwrap();
    location.domain().unwrap().snapshot().unwrap();
    location
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_private_domain_is_closed_to_others() {
    let Some(net) = net_for_all("private") else { return };
    let mut alice = child_of(&net, ALICE, ALICE, "000", "private");
    alice.expect("ready");
    let mut bob = child_of(&net, BOB, BOB, "022", "look");
    bob.expect("0 nodes");
    bob.expect("permission denied");
    // A directory with Bob's name that Alice owns: Bob gets an error that says what to do.
    let planted = net.base().join(format!("rnet-{BOB}-t"));
    std::fs::create_dir(&planted).unwrap();
    chown(&planted, Some(ALICE), Some(ALICE)).unwrap();
    let mut bob = child_of(&net, BOB, BOB, "022", "private");
    let said = bob.hear();
    for part in [&format!("user {ALICE}"), "no permission", "RNET_GROUP", "sudo rm -r"] {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
}

#[test]
fn group_communicates_under_each_umask() {
    let Some(net) = net_for_all("group") else { return };
    for (left, right) in [("077", "000"), ("000", "077"), ("002", "077"), ("027", "777")] {
        let mut alice = child_of(&net, ALICE, GROUP, left, "left");
        let mut bob = child_of(&net, BOB, GROUP, right, "right");
        alice.expect("talked");
        bob.expect("talked");
        // Each side kills once and is killed once.
        let (killed, survivor) =
            if left == "077" { (&mut alice, &mut bob) } else { (&mut bob, &mut alice) };
        killed.kill();
        let said = survivor.hear();
        assert!(said.contains("is gone"), "{said}");
        let nodes = group_dir(&net).join("nodes");
        eventually("the other user's leftovers are swept", || names_in(&nodes).len() == 1);
        let names = group_dir(&net).join("names");
        eventually("the other user's name is swept", || names_in(&names).len() == 1);
        drop((alice, bob));
        let stat = std::fs::metadata(group_dir(&net)).unwrap();
        assert_eq!((stat.gid(), stat.mode() & 0o7777), (GROUP, 0o2770));
        std::fs::remove_dir_all(group_dir(&net)).unwrap();
    }
    // A user outside the group is refused with an error.
    let mut stranger = child_of(&net, STRANGER, STRANGER, "022", "left");
    let said = stranger.hear();
    assert!(said.contains("not a member"), "{said}");
}

/// Alice was killed between two steps of creating the domain or its folders.
#[test]
fn interrupted_domain_creation_is_finished_or_reported() {
    let Some(net) = net_for_all("begun") else { return };
    let begun = |path: &Path, group: u32| {
        std::fs::create_dir(path).unwrap();
        chown(path, Some(ALICE), Some(group)).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap();
    };
    for group in [ALICE, GROUP] {
        begun(&group_dir(&net), group);
        let mut bob = child_of(&net, BOB, GROUP, "022", "right");
        let said = bob.hear();
        for part in ["no permission", &format!("user {ALICE} began"), "sudo rm -r"] {
            assert!(said.contains(part), "{part:?} is not in {said:?}");
        }
        let mut alice = child_of(&net, ALICE, GROUP, "077", "left");
        let mut bob = child_of(&net, BOB, GROUP, "077", "right");
        alice.expect("talked");
        bob.expect("talked");
        drop((alice, bob));
        std::fs::remove_dir_all(group_dir(&net)).unwrap();
    }
    begun(&group_dir(&net), GROUP);
    std::fs::set_permissions(group_dir(&net), PermissionsExt::from_mode(0o2770)).unwrap();
    begun(&group_dir(&net).join("nodes"), GROUP);
    let mut bob = child_of(&net, BOB, GROUP, "022", "right");
    let said = bob.hear();
    assert!(said.contains("began to create it") && said.contains("/nodes"), "{said}");
}

/// Leftovers that Bob may not remove do not block him, and are reported.
#[test]
fn leftovers_of_other_users_are_reported_and_do_not_block() {
    let Some(net) = net_for_all("left-overs") else { return };
    let mut alice = child_of(&net, ALICE, GROUP, "077", "left");
    let mut bob = child_of(&net, BOB, GROUP, "077", "right");
    alice.expect("talked");
    bob.expect("talked");
    let nodes = group_dir(&net).join("nodes");
    // Empty, as after a kill right after `mkdir`: swept, though Bob cannot open it.
    let empty = nodes.join("empty@0123456789");
    let full = nodes.join("full@0123456789");
    for folder in [&empty, &full] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(full.join("node"), "").unwrap();
    for folder in [&empty, &full] {
        chown(folder, Some(STRANGER), Some(GROUP)).unwrap();
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).unwrap();
    }
    let name = group_dir(&net).join("names/left2");
    std::fs::write(&name, "").unwrap();
    std::fs::set_permissions(&name, PermissionsExt::from_mode(0o600)).unwrap();
    alice.kill();
    let said = bob.hear();
    assert!(said.contains("/left is gone"), "{said}");
    // Before another node could connect to it.
    drop(bob);
    let mut again = child_of(&net, ALICE, GROUP, "077", "left");
    let mut bob = child_of(&net, BOB, GROUP, "077", "right");
    again.expect("talked");
    bob.expect("talked");
    eventually("the empty one is swept", || !empty.exists());
    assert!(full.exists(), "Bob must not remove it");
    let mut observer = child_of(&net, BOB, GROUP, "022", "leftover_folders");
    observer.expect(&format!("{} of user {STRANGER}", full.display()));
    observer.expect(&format!("{} of user 0", name.display()));
    observer.expect("that is all");
    bob.kill();
    drop(again);
    // Root may remove everything, so no leftovers remain.
    let location = swept(&net);
    assert!(location.leftover_folders().is_empty() && location.inaccessible_names().is_empty());
    assert!(!full.exists());
}
