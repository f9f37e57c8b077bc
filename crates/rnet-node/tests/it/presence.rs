//! Containers: nodes in separate mount and pid namespaces, which share only `RNET_DIR`, communicate and
//! detect each other's death.

use crate::common;

use std::process::Command;

use common::{Child, LONG, Net, eventually, role, tell, until_error};
use rnet::{Error, NodeEvent, OnFull};

/// Path of the domain's directory inside a container; the others see it elsewhere.
const INSIDE: &str = "/mnt";
/// More than a log holds, so that chunks are mapped.
const LARGE_LEN_BYTES: usize = 300_000;

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    match role.as_str() {
        // Sends back what it receives, until the other node dies.
        "echo" => {
            tell(&std::process::id().to_string());
            let node = net.node("echo");
            let mut subscriber = node.subscriber::<[u8]>("/ask").reliable().open().unwrap();
            let mut answers =
                node.publisher::<[u8]>("/answer").reliable(OnFull::Wait(LONG)).open().unwrap();
            tell("ready");
            let error = loop {
                match subscriber.recv_timeout(LONG) {
                    Ok(sample) => answers.send(&sample).unwrap(),
                    Err(Error::Timeout { .. }) => {}
                    Err(error) => break error,
                }
            };
            tell(&format!("{error:?}"));
            drop(orders.recv());
        }
        // Sends requests, and reports the other node's death.
        "ask" => {
            tell(&std::process::id().to_string());
            let node = net.node("ask");
            let (died, deaths) = std::sync::mpsc::channel();
            node.on_node(move |event| {
                if let NodeEvent::Died(node) = event {
                    died.send(node.clone()).unwrap();
                }
            })
            .detach();
            let mut answers = node.subscriber::<[u8]>("/answer").reliable().open().unwrap();
            let mut asks =
                node.publisher::<[u8]>("/ask").reliable(OnFull::Wait(LONG)).open().unwrap();
            asks.wait_for_subscribers_timeout(1, LONG).unwrap();
            answers.wait_for_publishers_timeout(1, LONG).unwrap();
            for len in [1, 100, LARGE_LEN_BYTES, 5, LARGE_LEN_BYTES] {
                let message: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
                asks.send(&message).unwrap();
                assert!(
                    *answers.recv_timeout(LONG).unwrap() == *message,
                    "{len} bytes came back wrong"
                );
            }
            tell("talked");
            let taken = net.builder("echo").open().unwrap_err();
            tell(&format!("{taken:?}"));
            let (rest, error) = until_error(&mut answers);
            assert!(rest.is_empty());
            tell(&format!("{error:?}"));
            tell(&deaths.recv_timeout(LONG).unwrap());
            drop(orders.recv());
        }
        other => panic!("unknown role: {other}"),
    }
}

/// A command that runs this binary in a container, or the reason why it cannot.
fn container(net: &Net, role: &str) -> Result<Child, String> {
    let own = |more: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]).args(more);
        command
    };
    let user: &[&str] = match rustix::process::geteuid().is_root() {
        true => &[],
        false => &["--user", "--map-current-user", "--keep-caps"],
    };
    let probe = own(user).args(["mount", "-t", "tmpfs", "none", INSIDE]).output();
    match probe {
        Ok(out) if out.status.success() => {}
        Ok(out) => return Err(String::from_utf8_lossy(&out.stderr).trim().to_owned()),
        Err(e) => return Err(format!("unshare cannot be started: {e}")),
    }
    // The killed process is pid 1 of its namespace, as in a container.
    let script = format!(
        "mount --bind \"$RNET_TEST_DIR\" {INSIDE} && mount -t tmpfs none /dev/shm && \
         export RNET_TEST_DIR={INSIDE} && exec \"$0\" \"$@\""
    );
    let mut command = own(user);
    command.args(["sh", "-c", &script]).arg(std::env::current_exe().unwrap());
    Ok(Child::start(Child::order(command, net, role)))
}

/// Starts a container, or reports that this test does not run.
fn in_container(net: &Net, role: &str) -> Option<Child> {
    container(net, role)
        .inspect_err(|why| common::not_run(&format!("no mount and pid namespaces here: {why}")))
        .ok()
}

fn folders(net: &Net) -> usize {
    let uid = rustix::process::geteuid().as_raw();
    std::fs::read_dir(net.base().join(format!("rnet-{uid}-t/nodes"))).unwrap().count()
}

/// Two containers with the same few process ids.
#[test]
fn containers_communicate_and_detect_death() {
    let net = Net::new("containers");
    let Some(mut echo) = in_container(&net, "echo") else { return };
    assert_eq!(echo.hear(), "1", "the first process of its namespace");
    echo.expect("ready");
    let mut ask = in_container(&net, "ask").expect("as the one before");
    assert_eq!(ask.hear(), "1", "the two share a number");
    ask.expect("talked");
    // The number alone would name the asking process itself.
    let taken = ask.hear();
    assert!(taken.contains("/echo") && !taken.contains("(process"), "{taken}");
    echo.kill();
    let lost = ask.hear();
    assert!(lost.contains("/echo is gone"), "{lost}");
    ask.expect("/echo");
    eventually("the dead node's leftovers are swept", || folders(&net) == 1);
    drop(ask);
    // No node is left to sweep; the next inspection does it. The container's first process exits some time
    // after its launcher.
    eventually("the last node is gone", || net.inspect().nodes.is_empty());
    assert_eq!(folders(&net), 0);
}

/// A container and the host, where the domain's directory has another path.
#[test]
fn container_and_host_detect_each_others_death() {
    let net = Net::new("container and host");
    let Some(mut echo) = in_container(&net, "echo") else { return };
    echo.hear();
    echo.expect("ready");
    let mut ask = Child::spawn(&net, "ask");
    ask.hear();
    ask.expect("talked");
    let taken = ask.hear();
    assert!(taken.contains("/echo") && !taken.contains("(process"), "{taken}");
    ask.kill();
    let lost = echo.hear();
    assert!(lost.contains("/ask is gone"), "{lost}");
    eventually("the dead node's leftovers are swept", || folders(&net) == 1);
}
