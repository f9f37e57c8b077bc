//! The session of a page: its subscriptions and its calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet::{LOG_TOPIC, LogLevel, TopicName};
use rnet_access::{Access, Role, User};
use rnet_monitor::link::own_host;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::app_state::{DropGuard, lock};
use crate::hub::Hub;
use crate::operations::{self, JobContext, Operations};
use crate::outbox::{Outbox, Output};
use crate::ticks::{
    FullUpdateSink, HistorySink, Read, StatePlotSink, StateSink, figures, launched, params,
    recordings, remote_params, services,
};
use crate::topic::{
    Buckets, CommandLogSink, CommandsSink, EncodePicture, Filter, LogsSink, MessagesSink,
    PictureSink, PlotSink, TfSink, TopicFilter, TopicSink, TopicSubscription, cloud, image,
    is_status, is_transform, scan,
};
use crate::wire::{
    Answer, MAX_CLOUD_POINTS, MAX_IMAGE_PX, MAX_MESSAGE_JSON_LEN_BYTES, MAX_REQUEST_LEN_BYTES,
    MAX_SUBSCRIPTIONS, PROTOCOL, Refusal, Request, answer,
};

/// Maximum number of concurrent changes and calls of a page.
const MAX_JOBS: usize = 8;
/// Maximum number of concurrent stops and releases of a page, which have their own limit.
const MAX_STOPS: usize = 8;
/// Polling intervals of services, launched nodes, parameters and the state of recordings.
const LIST_INTERVAL: Duration = Duration::from_millis(500);
const PARAMS_INTERVAL: Duration = Duration::from_millis(200);
const RECORD_INTERVAL: Duration = Duration::from_secs(1);
/// Prefix of the topics of robot-net itself.
const RESERVED: &str = "/_rnet/";
/// Length of `{"ack": 1}` with the longest number.
const MAX_ACK_LEN_BYTES: usize = 32;

struct PageJob {
    cancel: Arc<AtomicBool>,
    is_stop: bool,
}

type Jobs = Arc<Mutex<HashMap<u64, PageJob>>>;

pub struct Session {
    hub: Arc<Hub>,
    pub access: Arc<Access>,
    pub user: User,
    pub outbox: Arc<Outbox>,
    /// The guards of the subscriptions, by id.
    subs: HashMap<u64, DropGuard>,
    /// Running jobs, with their cancellation.
    jobs: Jobs,
}

impl Drop for Session {
    fn drop(&mut self) {
        // Their results are no longer needed.
        lock(&self.jobs).values().for_each(|job| job.cancel.store(true, Ordering::Release));
    }
}

impl Session {
    pub fn new(hub: Arc<Hub>, access: Arc<Access>, user: User) -> Session {
        let (outbox, subs, jobs) = Default::default();
        Session { hub, access, user, outbox, subs, jobs }
    }

    pub fn is_over(&self) -> bool {
        self.hub.app.is_stopped()
    }

    /// The first message.
    pub fn hello(&self) -> String {
        let options = &self.hub.app.options;
        let host = own_host(&rnet::inspect::Snapshot::default());
        json!({"hello": {
            "protocol": PROTOCOL,
            "version": rnet::VERSION,
            "domain": options.location.id(),
            "host": host,
            "read_only": options.access.read_only,
            "token": self.user.token(),
            "role": self.user.role().as_str(),
            "limits": {
                "subscriptions": MAX_SUBSCRIPTIONS,
                "request_bytes": MAX_REQUEST_LEN_BYTES,
                "message_json_bytes": MAX_MESSAGE_JSON_LEN_BYTES,
                "image_px": MAX_IMAGE_PX,
                "cloud_points": MAX_CLOUD_POINTS,
            },
        }})
        .to_string()
    }

    /// Handles an acknowledgement, and returns whether the text is one. It has no answer.
    pub fn acknowledge(&self, text: &str) -> bool {
        #[derive(Deserialize)]
        struct Ack {
            ack: u64,
        }
        let is_short = text.len() <= MAX_ACK_LEN_BYTES;
        let ack = if is_short { serde_json::from_str(text).ok() } else { None };
        ack.is_some_and(|Ack { ack }| self.outbox.acknowledge(ack))
    }

    /// Handles a request, or starts a job for it; answers are sent through the outbox.
    pub fn request(&mut self, text: &str) {
        let request = match Request::parse(text) {
            Ok(request) => request,
            Err((id, refusal)) => {
                return match id {
                    Some(id) => self.outbox.answer(answer(id, Err(refusal))),
                    None => self.outbox.answer(json!({"error": refusal.json()}).to_string()),
                };
            }
        };
        let id = request.id;
        let done = match request.op.as_str() {
            "sub" => self.subscribe(&request),
            "unsub" => self.unsubscribe(&request),
            "cancel" => self.cancel(&request),
            _ => match self.begin(request) {
                // The job sends the answer.
                Ok(()) => return,
                Err(refusal) => Err(refusal),
            },
        };
        self.outbox.answer(answer(id, done));
    }

    fn unsubscribe(&mut self, request: &Request) -> Answer {
        #[derive(Deserialize)]
        struct Unsub {
            sub: u64,
        }
        let Unsub { sub } = request.fields()?;
        match self.subs.remove(&sub) {
            Some(guard) => {
                drop(guard);
                self.outbox.forget(sub);
                Ok(json!({}))
            }
            None => Err(Refusal::not_found(format!("subscription {sub} does not exist"))),
        }
    }

    fn cancel(&self, request: &Request) -> Answer {
        #[derive(Deserialize)]
        struct Cancel {
            call: u64,
        }
        let Cancel { call } = request.fields()?;
        match lock(&self.jobs).get(&call) {
            Some(job) => {
                job.cancel.store(true, Ordering::Release);
                Ok(json!({}))
            }
            None => Err(Refusal::not_found(format!("call {call} is not running"))),
        }
    }

    /// Starts a job for a request that may take a while, on a thread of the pool.
    fn begin(&self, request: Request) -> Result<(), Refusal> {
        let Some(job) = job_of(&request.op) else {
            return Err(Refusal::new("unknown_op", format!("unknown op {:?}", request.op)));
        };
        self.user.check(role_of(&request), &request.op).map_err(|why| {
            let read_only = self.hub.app.options.access.read_only;
            Refusal::new(if read_only { "read_only" } else { "role" }, why)
        })?;
        let is_stop = request.op.starts_with("command.");
        let (places, max) = match is_stop {
            true => (&self.hub.stops, MAX_STOPS),
            false => (&self.hub.jobs, MAX_JOBS),
        };
        let busy = |_| Refusal::new("limit", "the dashboard is busy with other pages");
        let cancel = Arc::new(AtomicBool::new(false));
        let place = {
            let mut jobs = lock(&self.jobs);
            if jobs.values().filter(|job| job.is_stop == is_stop).count() >= max {
                let why = format!("{max} requests are already running; wait for one, or cancel it");
                return Err(Refusal::new("limit", why));
            }
            if jobs.contains_key(&request.id) {
                return Err(Refusal::bad(format!("request {} is still running", request.id)));
            }
            // Before a thread is taken: waiting requests must not block a stop.
            let place = places.clone().try_acquire_owned().map_err(busy)?;
            jobs.insert(request.id, PageJob { cancel: cancel.clone(), is_stop });
            place
        };
        let (hub, outbox, jobs) = (self.hub.clone(), self.outbox.clone(), self.jobs.clone());
        tokio::task::spawn_blocking(move || {
            let id = request.id;
            let running = JobContext {
                operator: &hub.operations.operator,
                outbox: &outbox,
                id,
                cancelled: &cancel,
            };
            let done = job((&hub.operations, &running), &request.op, Json::Object(request.rest));
            lock(&jobs).remove(&id);
            outbox.answer(answer(id, done));
            drop(place);
        });
        Ok(())
    }

    fn subscribe(&mut self, request: &Request) -> Answer {
        let sub = request.id;
        if self.subs.contains_key(&sub) {
            return Err(Refusal::bad(format!("subscription {sub} already exists")));
        }
        if self.subs.len() >= MAX_SUBSCRIPTIONS {
            let why = format!("{MAX_SUBSCRIPTIONS} subscriptions are open, the limit; close one");
            return Err(Refusal::new("limit", why));
        }
        let guard = self.serve(sub, &request.fields()?)?;
        self.subs.insert(sub, guard);
        Ok(json!({}))
    }

    fn serve(&self, sub: u64, asked: &SubscribeRequest) -> Result<DropGuard, Refusal> {
        let ticks = &self.hub.ticks;
        let read = |wants, sink: Box<dyn TopicSink>| {
            self.hub.reader.add(TopicSubscription::new(wants, sink))
        };
        let output = Output::new(sub, self.outbox.clone());
        let poll = |output, interval, of: Read| {
            ticks.add(Box::new(FullUpdateSink::of_view(output, interval, of)))
        };
        let ask = |output, interval, of: Read| {
            ticks.add(Box::new(FullUpdateSink::new(output, interval, of)))
        };
        let topic = || asked.topic();
        let of_topic = || topic().map(TopicFilter::Topic);
        let hz = |default| within("hz", asked.hz, default, 0.1..=30.0);
        let picture =
            |output: Output, default, draw: EncodePicture| -> Result<DropGuard, Refusal> {
                if asked.ack {
                    output.enable_acknowledgement();
                }
                Ok(read(of_topic()?, Box::new(PictureSink::new(output, hz(default)?, draw))))
            };
        Ok(match asked.what.as_str() {
            "figures" => {
                let interval_ms = within("interval_ms", asked.interval_ms, 500.0, 250.0..=5_000.0)?;
                poll(output, Duration::from_secs_f64(interval_ms / 1e3), figures(asked.all))
            }
            "history" => ticks.add(Box::new(HistorySink::new(output, topic()?))),
            "services" => poll(output, LIST_INTERVAL, services()),
            "params" => match asked.host()? {
                // The next request follows the host's answer; the answer is polled in each tick.
                Some(host) => ask(output, Duration::ZERO, remote_params(host)),
                None => ask(output, PARAMS_INTERVAL, params()),
            },
            "record" => poll(output, RECORD_INTERVAL, recordings()),
            "launch" => ask(output, LIST_INTERVAL, launched()),
            "state" => {
                let prefix = asked.prefix.clone().unwrap_or_default();
                ticks.add(Box::new(StateSink::new(output, asked.host()?, prefix)))
            }
            "plot" => {
                let bucket_ms = within("bucket_ms", asked.bucket_ms, 20.0, 1.0..=10_000.0)?;
                let buckets = Buckets::new(bucket_ms);
                let field = asked.field.clone().unwrap_or_default();
                match &asked.state {
                    Some(key) => {
                        let key = key.clone();
                        let sink = StatePlotSink::new(output, key, &field, buckets)?;
                        ticks.add(Box::new(sink))
                    }
                    None => read(of_topic()?, Box::new(PlotSink::new(output, field, buckets))),
                }
            }
            "messages" => read(of_topic()?, Box::new(MessagesSink::new(output, hz(5.0)?))),
            "image" => {
                let max_px = asked.max_px.unwrap_or(MAX_IMAGE_PX).clamp(1, MAX_IMAGE_PX);
                picture(
                    output,
                    10.0,
                    Box::new(move |observed, bytes| image(observed, bytes, max_px)),
                )?
            }
            "cloud" => {
                let max = asked.max_points.unwrap_or(MAX_CLOUD_POINTS).clamp(1, MAX_CLOUD_POINTS);
                picture(output, 5.0, Box::new(move |observed, bytes| cloud(observed, bytes, max)))?
            }
            "scan" => picture(output, 10.0, Box::new(scan))?,
            "tf" => {
                read(TopicFilter::Matching(is_transform), Box::new(TfSink::new(output, hz(5.0)?)))
            }
            "logs" => {
                let filter = asked.filter()?;
                let history = asked.history.unwrap_or(500);
                let sink = LogsSink::new(output, filter, history);
                read(TopicFilter::Topic(LOG_TOPIC.to_owned()), Box::new(sink))
            }
            "commands" => {
                let sink = CommandsSink::new(output, self.hub.operations.clone());
                read(TopicFilter::Matching(is_status), Box::new(sink))
            }
            "command_log" => {
                let command = name_of("command", asked.command.as_deref())?;
                let topic = rnet::command_log_topic(&command);
                read(TopicFilter::Topic(topic), Box::new(CommandLogSink::new(output)))
            }
            other => return Err(Refusal::bad(format!("cannot subscribe to {other:?}"))),
        })
    }
}

/// The fields of all kinds of subscriptions.
#[derive(Deserialize)]
struct SubscribeRequest {
    what: String,
    topic: Option<String>,
    state: Option<String>,
    command: Option<String>,
    field: Option<String>,
    host: Option<String>,
    prefix: Option<String>,
    interval_ms: Option<f64>,
    bucket_ms: Option<f64>,
    hz: Option<f64>,
    max_px: Option<usize>,
    max_points: Option<usize>,
    history: Option<usize>,
    level: Option<String>,
    node: Option<String>,
    text: Option<String>,
    #[serde(default)]
    all: bool,
    #[serde(default)]
    ack: bool,
}

impl SubscribeRequest {
    fn topic(&self) -> Result<String, Refusal> {
        name_of("topic", self.topic.as_deref())
    }

    /// The requested other host, if any.
    fn host(&self) -> Result<Option<String>, Refusal> {
        match self.host.as_deref() {
            Some("") => Err(Refusal::bad("host is empty; omit it for this host")),
            host => Ok(host.map(str::to_owned)),
        }
    }

    fn filter(&self) -> Result<Filter, Refusal> {
        let level = self.level.as_deref().unwrap_or("debug").parse::<LogLevel>();
        Ok(Filter {
            level: level.map_err(|error| Refusal::bad(error.to_string()))?,
            node: self.node.clone().unwrap_or_default(),
            text: self.text.clone().unwrap_or_default(),
        })
    }
}

fn name_of(what: &str, name: Option<&str>) -> Result<String, Refusal> {
    let name = name.ok_or_else(|| Refusal::bad(format!("{what} is missing")))?;
    let name = TopicName::new(name).map_err(|error| Refusal::bad(error.to_string()))?;
    Ok(name.as_str().to_owned())
}

fn within(
    what: &str,
    given: Option<f64>,
    default: f64,
    range: std::ops::RangeInclusive<f64>,
) -> Result<f64, Refusal> {
    let given = given.unwrap_or(default);
    match range.contains(&given) {
        true => Ok(given),
        false => Err(Refusal::bad(format!(
            "{what} is {given}, must be {} to {}",
            range.start(),
            range.end()
        ))),
    }
}

/// The role that a request needs.
fn role_of(request: &Request) -> Role {
    let of_robot_net =
        |service: &Json| service.as_str().is_some_and(|name| name.starts_with(RESERVED));
    match request.op.as_str() {
        "type" | "launch.logs" => Role::Look,
        // A service below /_rnet gives authority over a command.
        "call" if request.rest.get("service").is_some_and(of_robot_net) => Role::Drive,
        op if op.starts_with("command.") => Role::Drive,
        _ => Role::Operate,
    }
}

type Job = fn((&Operations, &JobContext<'_>), &str, Json) -> Answer;

/// The job for an operation that may take a while.
fn job_of(op: &str) -> Option<Job> {
    Some(match op {
        "type" => |(operations, _), _, fields| operations::form_of(&operations.operator, fields),
        "state.set" => {
            |(operations, _), _, fields| operations::state_set(&operations.operator, fields)
        }
        "state.delete" => {
            |(operations, _), _, fields| operations::state_delete(&operations.operator, fields)
        }
        "param.set" => {
            |(operations, _), _, fields| operations::param_set(&operations.operator, fields)
        }
        "param.reset" => {
            |(operations, _), _, fields| operations::param_reset(&operations.operator, fields)
        }
        "command.take" => {
            |(operations, _), _, fields| operations.authority.take(&operations.operator, fields)
        }
        "command.take_all" => {
            |(operations, _), _, fields| operations.authority.take_all(&operations.operator, fields)
        }
        "command.release" => |(operations, _), _, fields| operations.authority.release(fields),
        "command.release_all" => |(operations, _), _, _| operations.authority.release_all(),
        "call" => |(_, running), _, fields| operations::call(running, fields),
        "record.start" => {
            |(operations, _), _, fields| operations.recording.start(&operations.operator, fields)
        }
        "record.stop" => |(operations, _), _, _| operations.recording.stop(),
        "play.start" => {
            |(operations, _), _, fields| operations.playback.start(&operations.operator, fields)
        }
        "play.pause" => |(operations, _), _, _| operations.playback.pause(),
        "play.stop" => |(operations, _), _, _| operations.playback.stop(),
        "blackbox.trigger" => {
            |(operations, _), _, fields| operations::trigger(&operations.operator, fields)
        }
        "launch.stop" | "launch.restart" | "launch.kill" => {
            |(operations, _), op, fields| operations::order(&operations.operator, op, fields)
        }
        "launch.logs" => {
            |(operations, _), _, fields| operations::logs(&operations.operator, fields)
        }
        _ => return None,
    })
}
