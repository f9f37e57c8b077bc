//! The service, action, command and work queue endpoints of an actor, and its steps on them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet::{
    ActionClient, ActionContext, CallContext, CallOptions, Client, Command, Driver, Error,
    FallbackReason, Goal, GoalPolicy, HandlerError, Job, Node, Pending, Puller, Pusher, Responder,
    Result, Service, Undelivered,
};
use serde::{Deserialize, Serialize};

use crate::common::{LONG, eventually};

const SERVICE: &str = "/count";
const ACTION: &str = "/turn";
const COMMAND: &str = "/wheels";
const QUEUE: &str = "/jobs";

/// What a handler does after it has counted as far as requested.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Then {
    Return,
    Fail,
    /// Waits until the call is cancelled.
    Wait,
}

/// A step of an actor on these endpoints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Part {
    /// Opens a service that counts.
    Serve {
        backlog: usize,
    },
    /// Opens an action that counts in its feedback. Without `queue` and `replace` it rejects a second goal.
    ServeGoals {
        queue: usize,
        replace: bool,
    },
    /// Opens the client of the service and waits for this many servers.
    Call {
        servers: usize,
    },
    /// Begins a call: the replies to count, and the handler's next action.
    Begin {
        count: u8,
        then: Then,
        timeout_ms: u64,
    },
    /// Reads the replies of a call to its end. Calls are numbered in the order of their start.
    Hear {
        call: usize,
    },
    /// Fails with the error of a call.
    Error {
        call: usize,
    },
    /// Drops a call.
    Drop {
        call: usize,
    },
    /// Replies that arrived after their call had ended.
    Late,
    /// Sends a goal: the feedback to count, and the handler's next action.
    Send {
        count: u8,
        then: Then,
    },
    /// Reads the feedback of a goal, and its result.
    Reach {
        goal: usize,
    },
    CancelGoal {
        goal: usize,
    },
    /// Calls of the server that run, are queued, were refused and were cancelled, once the counts match.
    Served {
        running: usize,
        waiting: usize,
        refused: u64,
        cancelled: u64,
    },
    /// Opens a receiver of commands.
    Obey {
        deadline_ms: u64,
    },
    Take {
        priority: i32,
        lease_ms: u64,
    },
    Drive {
        value: u8,
    },
    Release,
    /// Waits until this node has authority.
    Holder {
        is: String,
    },
    Push {
        job: u8,
    },
    Pull,
    /// Takes a job and keeps it.
    Job,
    Acknowledge,
    FailJob,
    /// Waits until no job is left. Reports how many are done, were redelivered and handed back.
    JobsDone,
    /// Reports of the actor's handlers and callbacks, once this many exist.
    Said {
        at_least: usize,
    },
    /// Closes all server, receiver and worker endpoints.
    Close,
    /// Closes all client, driver and pusher endpoints.
    Leave,
}

/// Reports of handlers.
#[derive(Clone, Default)]
struct Words(Arc<Mutex<Vec<String>>>);

impl Words {
    fn say(&self, word: impl Into<String>) {
        self.0.lock().expect("unpoisoned").push(word.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().expect("unpoisoned").clone()
    }
}

/// Fields are dropped in order: calls before their clients.
#[derive(Default)]
pub struct Parts {
    calls: Vec<Option<Pending<[u8]>>>,
    client: Option<Client<[u8], [u8]>>,
    goals: Vec<Goal<[u8], [u8]>>,
    action: Option<ActionClient<[u8], [u8], [u8]>>,
    service: Option<Service>,
    driver: Option<Driver<[u8]>>,
    command: Option<Command>,
    job: Option<Job<[u8]>>,
    puller: Option<Puller<[u8]>>,
    pusher: Option<Pusher<[u8]>>,
    words: Words,
}

fn wire(count: u8, then: Then) -> [u8; 2] {
    [count, then as u8]
}

/// The handler's action after its count.
fn finish(then: u8, context: &CallContext, words: &Words) -> Result<(), HandlerError> {
    if then == Then::Fail as u8 {
        return Err(HandlerError::new("TooMany", "it counts no further"));
    }
    if then == Then::Wait as u8 {
        let reason = loop {
            match context.cancel_reason() {
                Some(reason) => break reason,
                None => std::thread::sleep(Duration::from_millis(1)), // sleep: polling interval
            }
        };
        words.say(reason.name());
    }
    Ok(())
}

/// An error as the behaviours compare it: its kind and its node.
fn word_of(error: &Error) -> String {
    match error {
        Error::CallFailed { node, failure, .. } => format!("failed {} of {node}", failure.kind),
        Error::Cancelled { reason, .. } => format!("cancelled {}", reason.name()),
        Error::Refused { running, .. } if !running.is_empty() => format!("refused for {running}"),
        _ => match error.node() {
            Some(node) => format!("{} {node}", error.code()),
            None => error.code().to_owned(),
        },
    }
}

/// The name of a reason, as in the other languages: "driver_lost".
fn name_of(reason: FallbackReason) -> String {
    let word = format!("{reason:?}");
    let underscored = word.char_indices().flat_map(|(at, letter)| {
        (at > 0 && letter.is_uppercase()).then_some('_').into_iter().chain(letter.to_lowercase())
    });
    underscored.collect()
}

impl Parts {
    pub fn act(&mut self, node: &Node, part: Part) -> Result<Vec<String>> {
        match part {
            Part::Serve { .. } | Part::ServeGoals { .. } | Part::Obey { .. } | Part::Pull => {
                self.open(node, part)?;
            }
            Part::Call { servers } => {
                let client = node.client(SERVICE).open()?;
                eventually("its servers are matched", || client.server_count() == servers);
                self.client = Some(client);
            }
            Part::Begin { count, then, timeout_ms } => {
                let client = self.client.as_ref().expect("a client was opened");
                let options = CallOptions::new().timeout(Duration::from_millis(timeout_ms));
                self.calls.push(Some(client.stream(&wire(count, then), options)?));
            }
            Part::Hear { call } => return Ok(self.hear(call)),
            Part::Error { call } => {
                let call = self.calls[call].as_mut().expect("the call is open");
                while call.next()?.is_some() {}
            }
            Part::Drop { call } => self.calls[call] = None,
            Part::Late => {
                let stats = self.client.as_ref().expect("a client was opened").stats();
                return Ok(vec![format!("{} late, {} open", stats.late, stats.open)]);
            }
            Part::Send { count, then } => {
                if self.action.is_none() {
                    self.action = Some(node.action_client(ACTION).open()?);
                }
                let action = self.action.as_ref().expect("the endpoint was opened");
                let options = CallOptions::new().timeout(LONG);
                self.goals.push(action.send(&wire(count, then), options)?);
            }
            Part::Reach { goal } => return Ok(self.reach(goal)),
            Part::CancelGoal { goal } => self.goals[goal].cancel()?,
            Part::Served { running, waiting, refused, cancelled } => {
                let service = self.service.as_ref().expect("a service was opened");
                eventually("the call counts match", || {
                    let now = service.stats();
                    (now.running, now.waiting, now.refused, now.cancelled)
                        == (running, waiting, refused, cancelled)
                });
            }
            Part::Take { priority, lease_ms } => {
                let lease = Duration::from_millis(lease_ms);
                let drive = node.drive(COMMAND).priority(priority).lease(lease);
                self.driver = Some(drive.timeout(LONG).take()?);
            }
            Part::Drive { value } => self.driver().send(&[value])?,
            Part::Release => self.driver.take().expect("the driver has authority").release()?,
            Part::Holder { is } => {
                let command = self.command.as_ref().expect("a receiver was opened");
                eventually("the driver has authority", || command.status().holder == is);
            }
            Part::Push { job } => {
                if self.pusher.is_none() {
                    let words = self.words.clone();
                    let back = move |back: Undelivered<[u8]>| {
                        words.say(format!("back {} {}", back.job[0], word_of(&back.error)));
                    };
                    self.pusher = Some(node.push(QUEUE).on_undelivered(back).open()?);
                }
                self.pusher.as_ref().expect("the endpoint was opened").push(&[job])?;
            }
            Part::Job => {
                let job = self.puller.as_mut().expect("a worker was opened").recv_timeout(LONG)?;
                let job = job.expect("a job arrives");
                let again = if job.context().redelivered() { " again" } else { "" };
                let word = format!("job {}{again}", job[0]);
                self.job = Some(job);
                return Ok(vec![word]);
            }
            Part::Acknowledge => self.job.take().expect("it has a job").ack(),
            Part::FailJob => {
                self.job.take().expect("it has a job").fail(HandlerError::new("Jammed", "no"));
            }
            Part::JobsDone => {
                let pusher = self.pusher.as_ref().expect("a pusher was opened");
                pusher.wait_until_done_timeout(LONG)?;
                let stats = pusher.stats();
                let (again, back) = (stats.redelivered, stats.undelivered);
                return Ok(vec![format!("{} done, {again} again, {back} back", stats.done)]);
            }
            Part::Said { at_least } => {
                eventually("the reports arrived", || self.words.all().len() >= at_least);
                return Ok(self.words.all());
            }
            Part::Close => {
                (self.service, self.command, self.puller) = (None, None, None);
            }
            Part::Leave => {
                self.calls.clear();
                self.goals.clear();
                (self.client, self.action, self.driver, self.pusher) = (None, None, None, None);
            }
        }
        Ok(Vec::new())
    }

    fn driver(&mut self) -> &mut Driver<[u8]> {
        self.driver.as_mut().expect("the driver has authority")
    }

    fn open(&mut self, node: &Node, part: Part) -> Result<()> {
        let words = self.words.clone();
        match part {
            Part::Serve { backlog } => {
                let handler = move |request: &[u8], responder: &mut Responder<'_, [u8]>| {
                    words.say(format!("begun {}", request[0]));
                    for number in 0..request[0] {
                        responder.send(&[number])?;
                    }
                    finish(request[1], &responder.context(), &words)
                };
                let service = node.service::<[u8], [u8]>(SERVICE).backlog(backlog);
                self.service = Some(service.serve_stream(handler)?);
            }
            Part::ServeGoals { queue, replace } => {
                let handler = move |goal: &[u8], context: &mut ActionContext<'_, [u8]>| {
                    words.say(format!("begun {}", goal[0]));
                    for number in 0..goal[0] {
                        context.feedback(&[number])?;
                    }
                    finish(goal[1], &context.context(), &words).map(|()| goal.to_vec())
                };
                let policy = match (queue, replace) {
                    (_, true) => GoalPolicy::Replace,
                    (0, false) => GoalPolicy::Reject,
                    (goals, false) => GoalPolicy::Queue(goals),
                };
                let action = node.action::<[u8], [u8], [u8]>(ACTION).policy(policy);
                self.service = Some(action.serve(handler)?);
            }
            Part::Obey { deadline_ms } => {
                let applied = words.clone();
                let command = node
                    .command::<[u8]>(COMMAND)
                    .deadline(Duration::from_millis(deadline_ms))
                    .fallback_handler(move |why| words.say(format!("fallback {}", name_of(why))))
                    .apply(move |value| applied.say(format!("applied {}", value[0])))?;
                self.command = Some(command);
            }
            _ => self.puller = Some(node.pull(QUEUE).open()?),
        }
        Ok(())
    }

    fn hear(&mut self, call: usize) -> Vec<String> {
        let call = self.calls[call].as_mut().expect("the call is open");
        let mut received = Vec::new();
        loop {
            match call.next() {
                Ok(Some(reply)) => received.push(reply[0].to_string()),
                Ok(None) => received.push("end".to_owned()),
                Err(error) => received.push(word_of(&error)),
            }
            if received.last().is_some_and(|word| word.parse::<u8>().is_err()) {
                return received;
            }
        }
    }

    fn reach(&mut self, goal: usize) -> Vec<String> {
        let goal = &self.goals[goal];
        let mut received = Vec::new();
        while let Ok(Some(feedback)) = goal.feedback() {
            received.push(feedback[0].to_string());
        }
        received.push(match goal.result_timeout(LONG) {
            Ok(result) => format!("reached {}", result[0]),
            Err(error) => word_of(&error),
        });
        received
    }
}
