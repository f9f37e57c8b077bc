//! `rnet metrics --otlp`: the figures as OTLP over HTTP, from time to time.
//!
//! Counters are cumulative, so a push that fails loses no counts: the next one has them.

use std::time::{Duration, Instant};

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
    let mut domain = context.domain()?;
    let (mut pushed, mut failed) = (0u64, 0u64);
    while !signal::stopped() {
        let begun = Instant::now();
        let before = Look::new(&mut domain)?;
        if signal::sleep(args.over.min(args.every)).is_err() {
            break;
        }
        let now = Look::new(&mut domain)?;
        let figures = Figures::new(&before, &now);
        let found = problems(&before, &now, &figures);
        let figures = if args.all { figures } else { figures.of_users() };
        let time_ns = rnet::now_ns().saturating_add_signed(rnet::wall_offset().offset_ns);
        let body = otlp_json(domain.id(), time_ns, &now, &figures, &found);
        match push(&agent, &url, &body) {
            Ok(()) => pushed += 1,
            Err(why) => {
                failed += 1;
                // A collector that is away for hours is not told of each time.
                if failed.is_power_of_two() {
                    let why = tame(&why);
                    context.say(format_args!("{NOTE}rnet:{NOTE:#} {url}: {why} ({failed} so far)"));
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
