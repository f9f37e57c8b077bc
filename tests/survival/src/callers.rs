//! The use of services, actions, work queues and commands by victims and survivors: enough to pass each of
//! their fail points.

use std::path::Path;
use std::time::Duration;

use rnet::{CallOptions, Error, Node};

use crate::roles::node;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The service.
pub const SERVICE: &str = "/service";
/// The action.
pub const ACTION: &str = "/action";
/// The work queue.
pub const QUEUE: &str = "/queue";
/// The command.
pub const COMMAND: &str = "/command";

/// The first byte of a request that runs until it is cancelled.
pub const ENDLESS: u8 = 1;
/// Of the command.
pub const DEADLINE: Duration = Duration::from_millis(50);
/// So that no lease ends by itself.
pub const LEASE: Duration = Duration::from_secs(600);
/// The interval between two operations of a victim.
const PACE: Duration = Duration::from_millis(2);

/// The servers. They only have to exist.
pub struct Served {
    /// Returns the request.
    pub service: rnet::Service,
    /// Reaches the goal that it was given.
    pub action: rnet::Service,
    /// Ignores the commands that it applies.
    pub command: rnet::Command,
}

/// Opens a service, an action and a command receiver.
///
/// # Errors
/// The errors of opening them.
pub fn serve(node: &Node) -> Result<Served, Error> {
    let service =
        node.service::<[u8], [u8]>(SERVICE).at_once(4).serve_stream(|request, replies| {
            replies.send(request)?;
            while request.first() == Some(&ENDLESS) && !replies.is_cancelled() {
                std::thread::sleep(PACE); // sleep: interval between two checks
            }
            Ok(())
        })?;
    let action = node.action::<[u8], [u8], [u8]>(ACTION).policy(rnet::GoalPolicy::Queue(16));
    let action = action.serve(|goal, context| {
        context.feedback(goal)?;
        Ok(goal.to_vec())
    })?;
    let command = node.command::<[u8]>(COMMAND).deadline(DEADLINE).fallback(b"stop");
    let command = command.apply(|_| {})?;
    Ok(Served { service, action, command })
}

/// A victim that serves until it is killed or stopped.
///
/// # Errors
/// The errors of opening the servers.
pub fn server(dir: &Path, name: &str) -> Outcome {
    let node = node(dir, name)?;
    let served = serve(&node)?;
    let mut worker = node.pull::<[u8]>(QUEUE).open()?;
    println!("ready");
    std::thread::spawn(move || {
        for job in worker.iter() {
            job.ack();
        }
    });
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    drop(served);
    Ok(())
}

/// A driver's command in the hand-over test: its name and the number of its authority.
fn order(name: &str, number: u64) -> Vec<u8> {
    format!("{name} {number}").into_bytes()
}

/// The name and the number in such a command.
///
/// # Panics
/// If it is invalid.
pub fn read_order(command: &[u8]) -> (String, u64) {
    let text = std::str::from_utf8(command).expect("a command of text");
    let (name, number) = text.split_once(' ').expect("a name and a number");
    (name.to_owned(), number.parse().expect("a number"))
}

/// A driver that repeatedly takes authority with this priority, and drives until it loses it. It ends when
/// `stop` returns true.
///
/// # Errors
/// Errors that neither a receiver, a driver nor their end explains.
pub fn drive(node: &Node, name: &str, priority: i32, stop: impl Fn() -> bool) -> Outcome {
    let short = Duration::from_millis(300);
    while !stop() {
        let mut driver =
            match node.drive::<[u8]>(COMMAND).priority(priority).lease(LEASE).timeout(short).take()
            {
                Ok(driver) => driver,
                Err(
                    Error::NotInForce { .. } | Error::Timeout { .. } | Error::ServerLost { .. },
                ) => continue,
                Err(error) => return Err(error.into()),
            };
        let order = order(name, driver.number());
        while !stop() {
            match driver.send(&order) {
                Ok(()) => std::thread::sleep(PACE), // sleep: the interval of a driver
                Err(Error::NotInForce { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// A victim that takes authority from drivers with a lower priority.
///
/// # Errors
/// As for [`drive`].
pub fn taker(dir: &Path, name: &str) -> Outcome {
    let node = node(dir, name)?;
    println!("ready");
    drive(&node, name, 10, || false)
}

/// A victim that receives commands until it is killed.
///
/// # Errors
/// The errors of opening its endpoints.
pub fn receiver(dir: &Path, name: &str) -> Outcome {
    let node = node(dir, name)?;
    let command = node.command::<[u8]>(COMMAND).deadline(DEADLINE).fallback(b"stop 0");
    let command = command.apply(|_| {})?;
    println!("ready");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    drop(command);
    Ok(())
}

/// A victim that calls, sends goals, pushes and drives until it is killed.
///
/// # Errors
/// Errors that no surviving server explains.
pub fn caller(dir: &Path, name: &str) -> Outcome {
    let node = node(dir, name)?;
    let client = node.client::<[u8], [u8]>(SERVICE).open()?;
    let goals = node.action_client::<[u8], [u8], [u8]>(ACTION).open()?;
    let jobs = node.push::<[u8]>(QUEUE).open()?;
    println!("ready");
    loop {
        client.call_timeout(b"\0", crate::LONG)?;
        let mut endless = client.stream(&[ENDLESS], CallOptions::new().timeout(crate::LONG))?;
        endless.next()?;
        endless.cancel();
        goals.send(b"\0", CallOptions::new())?.result_timeout(crate::LONG)?;
        jobs.push(name.as_bytes())?;
        jobs.wait_until_done_timeout(crate::LONG)?;
        match node.drive::<[u8]>(COMMAND).lease(LEASE).timeout(crate::LONG).take() {
            Ok(mut driver) => {
                driver.send(b"go")?;
                driver.release()?;
            }
            // A survivor drives.
            Err(Error::NotInForce { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(PACE); // sleep: the interval of a caller
    }
}
