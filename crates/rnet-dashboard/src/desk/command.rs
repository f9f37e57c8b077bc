//! Authority over commands: taken to stop a robot, and held until somebody gives it back.
//!
//! It belongs to the dashboard, not to the page: a phone that loses its network must not let the robot go on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rnet::inspect::{CallType, Snapshot};
use rnet::{Driver, MessageType};
use rnet_monitor::documents::receivers;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::seat::Seat;
use crate::wire::{Answer, Refusal, fields_of};

/// How long authority lasts should the dashboard be killed.
const LEASE: Duration = Duration::from_millis(500);
/// Longest time for a receiver.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Commands that are held at one moment.
const MAX_HELD: usize = 32;

#[derive(Default)]
pub struct Authority {
    held: Mutex<BTreeMap<String, Held>>,
}

struct Held {
    wanted: Arc<AtomicBool>,
    /// Whether it is in force still.
    in_force: Arc<AtomicBool>,
    thread: JoinHandle<rnet::Result<()>>,
}

#[derive(Deserialize)]
struct Take {
    command: String,
    #[serde(default = "high")]
    priority: i32,
}

fn high() -> i32 {
    100
}

impl Authority {
    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this dashboard has authority over a command.
    pub fn has(&self, command: &str) -> bool {
        self.held().get(command).is_some_and(|held| held.in_force.load(Ordering::Acquire))
    }

    /// `command.take`.
    pub fn take(&self, seat: &Seat, fields: Json) -> Answer {
        let Take { command, priority } = fields_of(fields)?;
        if self.has(&command) {
            return Ok(json!({"held": true}));
        }
        if self.held().len() >= MAX_HELD {
            return Err(Refusal::new(
                "limit",
                format!("{MAX_HELD} commands are held; release one"),
            ));
        }
        let snapshot = seat.world.options.location.domain()?.snapshot()?;
        let message_type = type_of(&snapshot, &command)?;
        let node = seat.node()?;
        let drive = node.drive::<[u8]>(&command).priority(priority).lease(LEASE);
        let driver = drive.message_type(message_type).take(Some(TIMEOUT))?;
        let wanted = Arc::new(AtomicBool::new(true));
        let in_force = Arc::new(AtomicBool::new(true));
        let (on, force) = (wanted.clone(), in_force.clone());
        let thread = std::thread::Builder::new().name("rnet-dash-drive".to_owned());
        let thread = thread.spawn(move || hold(driver, &on, &force));
        let thread = thread.map_err(|why| Refusal::failed(format!("no thread: {why}")))?;
        self.held().insert(command, Held { wanted, in_force, thread });
        Ok(json!({"held": true}))
    }

    /// `command.release`.
    pub fn release(&self, fields: Json) -> Answer {
        #[derive(Deserialize)]
        struct Release {
            command: String,
        }
        let Release { command } = fields_of(fields)?;
        let Some(held) = self.held().remove(&command) else {
            return Err(Refusal::not_found(format!(
                "this dashboard has no authority over {command}"
            )));
        };
        end(held)?;
        Ok(json!({"held": false}))
    }

    /// Gives all of it back.
    pub fn close(&self) {
        for held in std::mem::take(&mut *self.held()).into_values() {
            let _ = end(held);
        }
    }
}

fn end(held: Held) -> Result<(), Refusal> {
    held.wanted.store(false, Ordering::Release);
    held.thread.thread().unpark();
    match held.thread.join() {
        Ok(done) => Ok(done?),
        Err(_) => Err(Refusal::failed("the thread that held it has panicked")),
    }
}

/// Renews authority and sends nothing, so that the receiver falls back.
fn hold(mut driver: Driver<[u8]>, wanted: &AtomicBool, in_force: &AtomicBool) -> rnet::Result<()> {
    while wanted.load(Ordering::Acquire) {
        if driver.renew().is_err() {
            // Somebody of a higher priority has it now, which the command's state tells.
            in_force.store(false, Ordering::Release);
            return Ok(());
        }
        std::thread::park_timeout(LEASE / 3);
    }
    in_force.store(false, Ordering::Release);
    driver.release()
}

/// The type of what the receiver takes.
fn type_of(snapshot: &Snapshot, command: &str) -> Result<MessageType, Refusal> {
    if !receivers(snapshot).iter().any(|(of, _)| *of == command) {
        return Err(Refusal::not_found(format!("there is no command {command}")));
    }
    let mut ends = snapshot.subscriptions.iter().filter(|of| of.topic == command);
    let Some(end) = ends.find(|of| of.type_desc.name().is_some()) else {
        return Ok(MessageType::Raw);
    };
    let taken = CallType { desc: &end.type_desc, schema: end.schema.as_ref() };
    let unread =
        || Refusal::failed(format!("the type of {command} in {} cannot be read", end.node));
    taken.message_type().ok_or_else(unread)
}
