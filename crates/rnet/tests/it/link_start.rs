//! Nodes start the link between hosts if a network is configured, and only then.
//!
//! The nodes run in child processes, each with its own environment and working directory. A script replaces
//! the link and records how it was started.

use crate::common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Child, Net, eventually, role, tell};

/// Records how it was started in one file, which is renamed into place once complete.
const SCRIPT: &str = r#"#!/bin/sh
out=$(readlink /proc/$$/fd/1)
{
    echo "args $*"
    echo "cwd $(pwd)"
    echo "stdin $(readlink /proc/$$/fd/0)"
    echo "stdout $out"
    echo "group $(cut -d' ' -f5 /proc/$$/stat) of $$"
    for fd in /proc/$$/fd/*; do echo "fd $(readlink $fd)"; done
} > "$FACTS/.$$"
mv "$FACTS/.$$" "$FACTS/$$"
"#;

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    let mut nodes = Vec::new();
    match role.as_str() {
        // The next line holds the node's name.
        "nodes" => loop {
            tell("ready");
            let Ok(name) = orders.recv() else { return };
            nodes.push(net.node(&name));
        },
        "tool" => nodes.push(net.builder("tool").tool().open().unwrap()),
        // Simulates a running link.
        "link" => nodes.push(net.builder("/_rnet/link_1").tool().open().unwrap()),
        _ => nodes.push(rnet::Node::builder("plain").domain("t").open().unwrap()),
    }
    tell("ready");
    drop(orders.recv());
}

/// A fixture with the script, and the children that run in it.
struct LinkFixture {
    net: Net,
    work: PathBuf,
    facts: PathBuf,
}

impl LinkFixture {
    fn new(name: &str) -> LinkFixture {
        let net = Net::new(name);
        let (work, facts) = (net.base().join("work"), net.base().join("facts"));
        let bin = net.base().join("bin");
        for dir in [&work, &facts, &bin] {
            fs::create_dir(dir).unwrap();
        }
        let fixture = LinkFixture { net, work, facts };
        fixture.install(SCRIPT);
        fixture
    }

    fn bin(&self) -> PathBuf {
        self.net.base().join("bin")
    }

    fn install(&self, script: &str) {
        let (path, draft) = (self.bin().join("rnet-link"), self.bin().join("draft"));
        fs::write(&draft, script).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(draft, path).unwrap();
    }

    /// A child with role `role`, in the fixture's working directory, with the script in its path.
    fn order(&self, role: &str) -> Command {
        let program = std::env::current_exe().unwrap();
        let mut command = Child::order(Command::new(program), &self.net, role);
        let path = std::env::join_paths([self.bin(), "/usr/bin".into(), "/bin".into()]).unwrap();
        for name in [
            "RNET_NETWORK",
            "RNET_CONFIG",
            "RNET_LISTEN",
            "RNET_CONNECT",
            "RNET_INTERFACES",
            "RNET_LOST_AFTER_MS",
            "RNET_LINK",
            "RNET_GROUP",
        ] {
            command.env_remove(name);
        }
        command.env("PATH", path).env("FACTS", &self.facts).current_dir(&self.work);
        command
    }

    /// The records of the script, one per start.
    fn facts(&self) -> Vec<String> {
        let files = fs::read_dir(&self.facts).unwrap().map(|entry| entry.unwrap().path());
        let whole =
            files.filter(|path| !path.file_name().unwrap().as_encoded_bytes().starts_with(b"."));
        whole.map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    fn wait_for_starts(&self, n: usize) -> Vec<String> {
        eventually("the link is started", || self.facts().len() >= n);
        self.facts()
    }

    /// Whether a node, opened by a child with these settings, starts the link. If it must not start, a later
    /// start that does happen proves it.
    fn starts(&self, set: &[(&str, &str)]) -> bool {
        let before = self.facts().len();
        let mut command = self.order("nodes");
        command.envs(set.iter().copied());
        let mut child = Child::start(command);
        child.expect("ready");
        child.say(&format!("n{}", child.pid()));
        child.expect("ready");
        // A started link is a child of the node, or has already written its record.
        eventually("it has no children", || !has_children(child.pid()));
        self.facts().len() > before
    }
}

/// Whether a process has children, zombies included.
fn has_children(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let children =
        tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    children.into_iter().any(|children| !children.trim().is_empty())
}

fn line<'t>(facts: &'t str, key: &str) -> &'t str {
    facts
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .unwrap_or_else(|| panic!("{key} of {facts}"))
}

#[test]
fn without_configuration_nothing_is_started() {
    let fixture = LinkFixture::new("without_configuration_nothing_is_started");
    assert!(!fixture.starts(&[]));
    assert!(!fixture.starts(&[("RNET_NETWORK", ""), ("RNET_LISTEN", "")]));
    assert!(!fixture.starts(&[("RNET_NETWORK", "off"), ("RNET_CONNECT", "tcp/10.0.0.2:7450")]));
    let file = fixture.work.join("robot.toml");
    for text in ["network = \"off\"", "[network]\nmode = \"off\"", "# no word of it"] {
        fs::write(&file, text).unwrap();
        assert!(!fixture.starts(&[]), "{text}");
    }
    fs::write(&file, "network = \"lan\"").unwrap();
    assert!(!fixture.starts(&[("RNET_NETWORK", "off")]));
    let mut tool = Child::start(fixture.order("tool"));
    tool.expect("ready");
    assert!(!has_children(tool.pid()));
    assert_eq!(fixture.facts().len(), 0);
}

#[test]
fn each_way_to_configure_a_network_starts_the_link() {
    let fixture = LinkFixture::new("each_way_to_configure_a_network_starts_the_link");
    assert!(fixture.starts(&[("RNET_NETWORK", "lan")]));
    assert!(fixture.starts(&[("RNET_CONNECT", "tcp/10.0.0.2:7450")]));
    assert!(fixture.starts(&[("RNET_LISTEN", "tcp/0.0.0.0:7450")]));
    // The link itself reports a file that it cannot read.
    assert!(fixture.starts(&[("RNET_CONFIG", "/nonexistent.toml")]));
    let other = fixture.net.base().join("other.toml");
    fs::write(&other, "[network]\nmode = \"lan\"").unwrap();
    assert!(fixture.starts(&[("RNET_CONFIG", other.to_str().unwrap())]));
    fs::write(fixture.work.join("robot.toml"), "network = \"lan\"").unwrap();
    assert!(fixture.starts(&[]));
    fs::write(&other, "[network]\nmode = \"off\"").unwrap();
    assert!(!fixture.starts(&[("RNET_CONFIG", other.to_str().unwrap())]));
}

#[test]
fn link_gets_the_domain_and_inherits_nothing_else() {
    let fixture = LinkFixture::new("link_gets_the_domain_and_inherits_nothing_else");
    let mut command = fixture.order("nodes");
    command.env("RNET_NETWORK", "lan");
    let mut child = Child::start(command);
    child.expect("ready");
    child.say("node");
    child.expect("ready");
    let facts = fixture.wait_for_starts(1).pop().unwrap();
    let dir = fixture.net.base().display().to_string();
    assert_eq!(line(&facts, "args "), format!("start --domain t --dir {dir}"));
    assert_eq!(line(&facts, "cwd "), fixture.work.display().to_string());
    assert_eq!((line(&facts, "stdin "), line(&facts, "stdout ")), ("/dev/null", "/dev/null"));
    // In its own process group, which Ctrl-C in the node's terminal does not reach.
    let (group, own) = line(&facts, "group ").split_once(" of ").unwrap();
    assert_eq!(group, own);
    let open: BTreeSet<&str> = facts.lines().filter_map(|line| line.strip_prefix("fd ")).collect();
    let of_node = open.iter().filter(|file| file.contains("rnet-") && !file.contains("/facts/"));
    let of_node: Vec<_> = of_node.filter(|file| !file.ends_with("/bin/rnet-link")).collect();
    assert!(of_node.is_empty(), "{of_node:?}");
    // No zombie remains.
    eventually("it was waited for", || !has_children(child.pid()));
    // The next node starts it again, because the link may have died meanwhile.
    child.say("second");
    child.expect("ready");
    fixture.wait_for_starts(2);

    // Values that the environment already holds are not passed as arguments.
    let mut command = fixture.order("plain");
    command.env("RNET_NETWORK", "lan").env("RNET_DIR", fixture.net.base());
    Child::start(command).expect("ready");
    let facts = fixture.wait_for_starts(3);
    assert!(facts.iter().any(|facts| line(facts, "args ") == "start --domain t"), "{facts:?}");
}

#[test]
fn slow_link_start_delays_no_node() {
    let fixture = LinkFixture::new("slow_link_start_delays_no_node");
    fixture.install(
        &SCRIPT.replace("#!/bin/sh", "#!/bin/sh\nmkfifo \"$FACTS/gate\"; cat \"$FACTS/gate\""),
    );
    let mut command = fixture.order("nodes");
    command.env("RNET_NETWORK", "lan");
    let mut child = Child::start(command);
    child.expect("ready");
    child.say("node");
    child.expect("ready");
    let gate = fixture.facts.join("gate");
    eventually("the link start blocks", || gate.exists());
    // The gate's end releases the link, and the test with it.
    fs::write(&gate, "go").unwrap();
    fs::remove_file(&gate).unwrap();
    fixture.wait_for_starts(1);
}

#[test]
fn missing_link_program_is_reported_once() {
    let fixture = LinkFixture::new("missing_link_program_is_reported_once");
    let said = |set: &[(&str, &str)]| {
        let errors = fixture.net.base().join("stderr");
        let mut command = fixture.order("nodes");
        command.envs(set.iter().copied()).stderr(fs::File::create(&errors).unwrap());
        let mut child = Child::start(command);
        child.expect("ready");
        for name in ["one", "two"] {
            child.say(name);
            child.expect("ready");
        }
        drop(child);
        fs::read_to_string(errors).unwrap()
    };
    let missing = said(&[("RNET_NETWORK", "lan"), ("PATH", "/nonexistent")]);
    assert_eq!(missing.lines().count(), 1, "{missing}");
    let start =
        "rnet: a network is configured (RNET_NETWORK=lan), but this host cannot reach others: ";
    assert!(missing.starts_with(&format!("{start}rnet-link is not installed.")), "{missing}");
    assert!(missing.contains("docs/guide/two-computers.md"), "{missing}");
    let named = said(&[("RNET_CONNECT", "tcp/a:1"), ("RNET_LINK", "/nonexistent/link")]);
    assert_eq!(
        named,
        "rnet: a network is configured (RNET_CONNECT), but this host cannot reach others: RNET_LINK names \
         /nonexistent/link, which is not an executable program\n"
    );
    let broken = fixture.net.base().join("broken");
    fs::write(&broken, "#!/nonexistent/interpreter\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let named = said(&[("RNET_NETWORK", "lan"), ("RNET_LINK", broken.to_str().unwrap())]);
    assert!(named.contains("broken: No such file"), "{named}");
    assert!(said(&[("PATH", "/nonexistent")]).is_empty());
}

#[test]
fn link_program_is_found_by_rnet_link_and_path() {
    let fixture = LinkFixture::new("link_program_is_found_by_rnet_link_and_path");
    let link = fixture.bin().join("rnet-link");
    let elsewhere = fixture.net.base().join("elsewhere");
    fs::rename(&link, &elsewhere).unwrap();
    assert!(fixture.starts(&[("RNET_NETWORK", "lan"), ("RNET_LINK", elsewhere.to_str().unwrap())]));
    // Neither a folder nor a file without execute permission counts as a program.
    let folder = fixture.net.base().join("first");
    fs::create_dir_all(folder.join("rnet-link")).unwrap();
    fs::write(&link, "").unwrap();
    let last = fixture.net.base().join("last");
    fs::create_dir(&last).unwrap();
    fs::rename(&elsewhere, last.join("rnet-link")).unwrap();
    let paths = [folder.as_path(), &fixture.bin(), &last, Path::new("/usr/bin"), Path::new("/bin")];
    let path = std::env::join_paths(paths).unwrap();
    assert!(fixture.starts(&[("RNET_NETWORK", "lan"), ("PATH", path.to_str().unwrap())]));
}

#[test]
fn killed_link_is_restarted_by_a_running_node() {
    let fixture = LinkFixture::new("killed_link_is_restarted_by_a_running_node");
    let open = |network: &str, name: &str| {
        let mut command = fixture.order("nodes");
        command.env("RNET_NETWORK", network);
        let mut child = Child::start(command);
        child.expect("ready");
        child.say(name);
        child.expect("ready");
        child
    };
    let mut link = Child::start(fixture.order("link"));
    link.expect("ready");
    // They know the link, which existed before them.
    let _without = open("off", "without");
    let _node = open("lan", "node");
    fixture.wait_for_starts(1);
    link.kill();
    link.ended();
    let facts = fixture.wait_for_starts(2);
    assert_eq!(line(&facts[0], "args "), line(&facts[1], "args "));
}
