//! `rnet metrics --otlp`: the figures as OTLP over HTTP, from time to time.
//!
//! Counters are cumulative, so a push that fails loses no counts: the next one has them. Nor does a domain that cannot be
//! read for a while end it: it is opened anew.

use std::time::{Duration, Instant};

use rnet::inspect::Domain;
use rnet_monitor::{Figures, Look, otlp_json, problems};
use serde_json::Value;

use super::args::MetricsArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use crate::style::NOTE;
use crate::value::tame;

/// How long a collector may take for a push.
const LIMIT: Duration = Duration::from_secs(5);
/// What a collector may answer, in bytes.
const MAX_ANSWER_LEN_BYTES: u64 = 64 << 10;
/// Where a collector takes metrics.
const PATH: &str = "/v1/metrics";

pub fn run(context: &mut Context, args: &MetricsArgs, url: &str) -> Outcome {
    let url = address(url)?;
    let config = ureq::Agent::config_builder().timeout_global(Some(LIMIT)).max_redirects(0);
    let agent = ureq::Agent::new_with_config(config.build());
    let location = context.location_that_exists()?;
    let (mut domain, mut pushed, mut failed) = (Some(location.domain()?), 0u64, 0u64);
    while !signal::stopped() {
        let begun = Instant::now();
        let body = match domain.take().map_or_else(|| location.domain(), Ok) {
            Ok(opened) => body(domain.insert(opened), args),
            Err(error) => Err(error),
        };
        let done = match body {
            Ok(None) => break,
            Ok(Some(body)) => push(&agent, &url, &body),
            Err(error) => {
                domain = None;
                Err(format!("the domain cannot be read: {error}"))
            }
        };
        match done {
            Ok(()) => pushed += 1,
            Err(why) => {
                failed += 1;
                // A collector that is away for hours is not told of each time.
                if failed.is_power_of_two() {
                    let why = tame(&why);
                    context.say(format_args!(
                        "{NOTE}rnet:{NOTE:#} not pushed to {url}: {why} ({failed} so far)"
                    ));
                }
            }
        }
        if signal::sleep(args.every.saturating_sub(begun.elapsed())).is_err() {
            break;
        }
    }
    context.say(format_args!("{pushed} pushed, {failed} failed"));
    Err(Failure::Interrupted)
}

/// What is pushed now; `None` if somebody says stop meanwhile.
fn body(domain: &mut Domain, args: &MetricsArgs) -> rnet::Result<Option<Value>> {
    let before = Look::new(domain)?;
    if signal::sleep(args.over.min(args.every)).is_err() {
        return Ok(None);
    }
    let now = Look::after(&before, domain)?;
    let figures = Figures::new(&before, &now);
    let found = problems(&before, &now, &figures);
    let figures = if args.all { figures } else { figures.of_users() };
    let time_ns = rnet::now_ns().saturating_add_signed(rnet::wall_offset().offset_ns);
    Ok(Some(otlp_json(domain.id(), time_ns, &now, &figures, &found)))
}

/// Where to push.
fn address(url: &str) -> Outcome<String> {
    let wrong =
        |why: &str| Failure::Usage(format!("--otlp {url}: {why}; such as http://127.0.0.1:4318"));
    if url.starts_with("https://") {
        return Err(wrong(
            "TLS is not spoken here, a collector on this host speaks it with others",
        ));
    }
    let Some(rest) = url.strip_prefix("http://") else { return Err(wrong("it is no address")) };
    if rest.trim_end_matches('/').is_empty() {
        return Err(wrong("it names no host"));
    }
    let url = url.trim_end_matches('/');
    Ok(if url.ends_with(PATH) { url.to_owned() } else { format!("{url}{PATH}") })
}

fn push(agent: &ureq::Agent, url: &str, body: &Value) -> Result<(), String> {
    let request = agent.post(url).content_type("application/json");
    let mut answer = request.send(body.to_string()).map_err(|error| error.to_string())?;
    let text = answer.body_mut().with_config().limit(MAX_ANSWER_LEN_BYTES).read_to_string();
    // A collector that took a part says which.
    let said: Value =
        text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let part = &said["partialSuccess"];
    let rejected = match &part["rejectedDataPoints"] {
        Value::String(count) => count.parse().unwrap_or(0),
        count => count.as_u64().unwrap_or(0),
    };
    match rejected {
        0 => Ok(()),
        count => {
            let why = part["errorMessage"].as_str().unwrap_or("no reason given");
            Err(format!("{count} data points were rejected: {why}"))
        }
    }
}
