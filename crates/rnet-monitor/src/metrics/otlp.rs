//! Metrics as OTLP, in its JSON encoding (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>): the body of
//! a request to `/v1/metrics` of a collector.
//!
//! Names are those of the text, without the `_total` of counters: a collector that writes for Prometheus puts it there.
//! Units are those of UCUM. Counters are cumulative, and say of no time when they began: ends come and go.

use serde_json::{Value, json};

use super::{BOUNDS_S, Buckets, Family, Labels, Series, families};
use crate::figures::{Figures, Look};
use crate::findings::Finding;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;

/// The metrics of a domain as they were at `time_ns`, in ns since 1970 UTC.
pub fn otlp_json(
    domain: &str,
    time_ns: u64,
    look: &Look,
    figures: &Figures,
    problems: &[Finding],
) -> Value {
    let families = families(look, figures, problems);
    let metrics: Vec<Value> =
        families.iter().map(|family| metric(family, domain, time_ns)).collect();
    json!({"resourceMetrics": [{
        "resource": {"attributes": [
            attribute("service.name", "robot-net"),
            attribute("service.version", rnet::VERSION),
            attribute("host.name", &look.own_host),
        ]},
        "scopeMetrics": [{"scope": {"name": "rnet", "version": rnet::VERSION}, "metrics": metrics}],
    }]})
}

fn metric(family: &Family<'_>, domain: &str, time_ns: u64) -> Value {
    let number = |(labels, value): &(Labels<'_>, f64)| {
        let mut point = point(labels, domain, time_ns);
        point["asDouble"] = (*value).into();
        point
    };
    let histogram = |(labels, buckets): &(Labels<'_>, Buckets)| {
        let mut point = point(labels, domain, time_ns);
        // Each by itself; numbers of 64 bits are texts in this encoding.
        let counts = buckets.within.iter().chain([&buckets.count]);
        let mut below = 0;
        let counts = counts.map(|within| {
            let inside = within.saturating_sub(below);
            below = *within;
            inside.to_string()
        });
        point["bucketCounts"] = counts.collect::<Vec<_>>().into();
        point["explicitBounds"] = json!(BOUNDS_S);
        point["count"] = buckets.count.to_string().into();
        point["sum"] = buckets.sum.into();
        point
    };
    let mut metric = json!({
        "name": family.name, "description": family.help, "unit": ucum(family.unit),
    });
    match &family.series {
        Series::Gauge(of) => {
            metric["gauge"] = json!({"dataPoints": of.iter().map(number).collect::<Vec<_>>()});
        }
        Series::Counter(of) => {
            metric["sum"] = json!({
                "aggregationTemporality": CUMULATIVE,
                "isMonotonic": true,
                "dataPoints": of.iter().map(number).collect::<Vec<_>>(),
            });
        }
        Series::Histogram(of) => {
            metric["histogram"] = json!({
                "aggregationTemporality": CUMULATIVE,
                "dataPoints": of.iter().map(histogram).collect::<Vec<_>>(),
            });
        }
    }
    metric
}

fn point(labels: &Labels<'_>, domain: &str, time_ns: u64) -> Value {
    let all = [("domain", domain)].into_iter().chain(labels.iter().copied());
    let attributes: Vec<Value> = all.map(|(key, value)| attribute(key, value)).collect();
    json!({"attributes": attributes, "timeUnixNano": time_ns.to_string()})
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// A unit as UCUM has it; what is counted stands in braces.
fn ucum(unit: &str) -> &'static str {
    match unit {
        "seconds" => "s",
        "bytes" => "By",
        "messages" => "{message}",
        "cores" => "{core}",
        _ => "1",
    }
}
