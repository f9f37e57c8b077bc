//! Figures as text for Prometheus and what scrapes as it does: OpenMetrics 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>) or the older format of Prometheus.
//!
//! Names begin with `rnet_` and end in their base unit; counters end in `_total`. Counters are sums over the ends that
//! are there: they begin anew when an end is gone, as those of a program that was started again, which queries of rates
//! expect.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::figures::{Figures, Look, TopicRow};
use crate::findings::{Finding, Level};

/// Topics, nodes and hosts that are shown, of each; `rnet_series_left_out` says how many more there are. Each has a
/// dozen series at most, and a robot that makes topics without end must not fill a database.
pub const MAX_OF_A_KIND: usize = 500;
/// Bounds of latencies, in s.
const BOUNDS_S: [f64; 15] =
    [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 1e-1, 1.0];

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// With units and an end mark.
    OpenMetrics,
    /// The text format of Prometheus, version 0.0.4, which more programs read.
    Prometheus,
}

/// The metrics of a domain.
pub fn metrics(
    format: MetricsFormat,
    domain: &str,
    look: &Look,
    figures: &Figures,
    problems: &[Finding],
) -> String {
    let mut text = Text { text: String::new(), format, domain };
    text.domain_wide(figures, problems);
    let topics = &figures.topics[..figures.topics.len().min(MAX_OF_A_KIND)];
    let counted: BTreeMap<&str, Counted> =
        topics.iter().map(|topic| (topic.topic.as_str(), Counted::of(look, topic))).collect();
    text.topics(topics, &counted);
    text.nodes(figures);
    text.hosts(figures);
    if format == MetricsFormat::OpenMetrics {
        text.text.push_str("# EOF\n");
    }
    text.text
}

/// Counters of a topic, of all its ends.
struct Counted {
    sent: u64,
    sent_bytes: u64,
    received: u64,
    skipped: u64,
    latency: Vec<u64>,
    latency_sum_s: f64,
}

impl Counted {
    fn of(look: &Look, topic: &TopicRow) -> Counted {
        let publishers = || look.snapshot.publishers.iter().filter(|p| p.topic == topic.topic);
        let channels = || {
            let of = look.snapshot.subscriptions.iter().filter(|s| s.topic == topic.topic);
            of.flat_map(|s| s.channels.iter().chain(&s.past))
        };
        let mut latency = Vec::new();
        for channel in channels() {
            latency.resize(latency.len().max(channel.latency.len()), 0);
            let both = latency.iter_mut().zip(&channel.latency);
            both.for_each(|(sum, count): (&mut u64, &u64)| *sum = sum.saturating_add(*count));
        }
        let time = |c: &rnet::inspect::ChannelInfo| {
            c.mean_latency_ns as f64 * c.latency.iter().sum::<u64>() as f64 / 1e9
        };
        Counted {
            sent: publishers().map(|p| p.sent).sum(),
            sent_bytes: publishers().map(|p| p.bytes).sum(),
            received: channels().map(|c| c.received).sum(),
            skipped: channels().map(|c| c.skipped).sum(),
            latency,
            latency_sum_s: channels().map(time).fold(0.0, |a, b| a + b),
        }
    }

    /// How many messages took no longer than `bound_s`, by the upper bounds of the buckets.
    fn within(&self, bound_s: f64) -> u64 {
        let fits = |at: &usize| rnet::bucket_high(*at) as f64 / 1e9 <= bound_s;
        (0..self.latency.len()).filter(fits).map(|at| self.latency[at]).sum()
    }
}

struct Text<'a> {
    text: String,
    format: MetricsFormat,
    domain: &'a str,
}

impl Text<'_> {
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        // To a String nothing fails.
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if !unit.is_empty() && self.format == MetricsFormat::OpenMetrics {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {help}");
    }

    fn sample(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        let all = [("domain", self.domain)].into_iter().chain(labels.iter().copied());
        let all: Vec<String> = all.map(|(k, v)| format!("{k}=\"{}\"", escaped(v))).collect();
        let _ = writeln!(self.text, "{name}{{{}}} {value}", all.join(","));
    }

    fn gauge(&mut self, name: &str, unit: &str, help: &str, of: &[(Labels<'_>, f64)]) {
        self.family(name, "gauge", unit, help);
        of.iter().for_each(|(labels, value)| self.sample(name, labels, *value));
    }

    fn counter(&mut self, name: &str, unit: &str, help: &str, of: &[(Labels<'_>, f64)]) {
        match self.format {
            MetricsFormat::OpenMetrics => self.family(name, "counter", unit, help),
            MetricsFormat::Prometheus => {
                self.family(&format!("{name}_total"), "counter", unit, help);
            }
        }
        of.iter().for_each(|(labels, value)| self.sample(&format!("{name}_total"), labels, *value));
    }

    fn domain_wide(&mut self, figures: &Figures, problems: &[Finding]) {
        let of =
            |kind, count: usize| (vec![("kind", kind)], count.saturating_sub(MAX_OF_A_KIND) as f64);
        let left_out = [
            of("topic", figures.topics.len()),
            of("node", figures.nodes.len()),
            of("host", figures.hosts.len()),
        ];
        let help = "Topics, nodes and hosts of which no series are here.";
        self.gauge("rnet_series_left_out", "", help, &left_out);
        let mut by_check: BTreeMap<&str, f64> = BTreeMap::new();
        for problem in problems.iter().filter(|problem| problem.level == Level::Problem) {
            *by_check.entry(problem.check).or_default() += 1.0;
        }
        let found: Vec<_> =
            by_check.iter().map(|(check, count)| (vec![("check", *check)], *count)).collect();
        self.gauge("rnet_problems", "", "What is wrong now, by the check that found it.", &found);
    }

    fn topics(&mut self, topics: &[TopicRow], counted: &BTreeMap<&str, Counted>) {
        let each = |value: &dyn Fn(&TopicRow, &Counted) -> f64| -> Vec<(Labels<'_>, f64)> {
            let of = topics.iter().filter_map(|topic| {
                let counted = counted.get(topic.topic.as_str())?;
                Some((vec![("topic", topic.topic.as_str())], value(topic, counted)))
            });
            of.collect()
        };
        let sent = each(&|_, c| c.sent as f64);
        self.counter(
            "rnet_topic_sent_messages",
            "messages",
            "Messages that publishers sent.",
            &sent,
        );
        let bytes = each(&|_, c| c.sent_bytes as f64);
        self.counter("rnet_topic_sent_bytes", "bytes", "Payload that publishers sent.", &bytes);
        let received = each(&|_, c| c.received as f64);
        let help = "Messages that subscribers received, of all together.";
        self.counter("rnet_topic_received_messages", "messages", help, &received);
        let skipped = each(&|_, c| c.skipped as f64);
        let help = "Messages that subscribers passed over by their choice.";
        self.counter("rnet_topic_skipped_messages", "messages", help, &skipped);
        let mut lost = Vec::new();
        for topic in topics {
            lost.extend(topic.lost.parts().map(|(cause, count)| {
                (vec![("topic", topic.topic.as_str()), ("cause", cause)], count as f64)
            }));
        }
        let help = "Messages that subscribers lost, by cause.";
        self.counter("rnet_topic_lost_messages", "messages", help, &lost);
        let behind = each(&|t, _| t.behind.age_ns as f64 / 1e9);
        let help = "Age of the oldest message that the subscriber furthest behind has not taken.";
        self.gauge("rnet_topic_lag_seconds", "seconds", help, &behind);
        let publishers = each(&|t, _| t.publishers.len() as f64);
        self.gauge("rnet_topic_publishers", "", "Publishers.", &publishers);
        let subscribers = each(&|t, _| t.subscribers.len() as f64);
        self.gauge("rnet_topic_subscribers", "", "Subscriptions.", &subscribers);
        let memory = each(&|t, _| t.memory_bytes as f64);
        let help = "Shared memory of the publishers: logs and pools.";
        self.gauge("rnet_topic_memory_bytes", "bytes", help, &memory);
        let name = "rnet_topic_latency_seconds";
        self.family(name, "histogram", "seconds", "From the send to the receive.");
        for (topic, counted) in counted {
            for bound in BOUNDS_S {
                let bound_text = bound.to_string();
                let labels = vec![("topic", *topic), ("le", bound_text.as_str())];
                self.sample(&format!("{name}_bucket"), &labels, counted.within(bound) as f64);
            }
            let count = counted.latency.iter().sum::<u64>() as f64;
            self.sample(&format!("{name}_bucket"), &vec![("topic", *topic), ("le", "+Inf")], count);
            let labels = vec![("topic", *topic)];
            self.sample(&format!("{name}_count"), &labels, count);
            self.sample(&format!("{name}_sum"), &labels, counted.latency_sum_s);
        }
    }

    fn nodes(&mut self, figures: &Figures) {
        let nodes = || figures.nodes.iter().take(MAX_OF_A_KIND);
        let named = |node: &str| node.to_owned();
        let each = |value: &dyn Fn(&crate::NodeRow) -> Option<f64>| -> Vec<(String, String, f64)> {
            nodes().filter_map(|n| Some((named(&n.node), n.host.clone(), value(n)?))).collect()
        };
        let mut gauge = |name: &str, unit: &str, help: &str, of: Vec<(String, String, f64)>| {
            let labelled: Vec<_> = of
                .iter()
                .map(|(node, host, value)| {
                    (vec![("node", node.as_str()), ("host", host.as_str())], *value)
                })
                .collect();
            self.gauge(name, unit, help, &labelled);
        };
        gauge("rnet_node_up", "", "1 for each node that is there.", each(&|_| Some(1.0)));
        let help = "How often rnet launch has started its process again.";
        gauge("rnet_node_restarts", "", help, each(&|n| n.restarts.map(f64::from)));
        let help = "Cores that its process used in the last interval: 1 is one core.";
        gauge("rnet_node_cpu_cores", "cores", help, each(&|n| n.cpu));
        let memory = each(&|n| n.rss_bytes.map(|bytes| bytes as f64));
        gauge("rnet_node_memory_bytes", "bytes", "Memory of its process in RAM.", memory);
        gauge("rnet_node_uptime_seconds", "seconds", "How long it has run.", each(&|n| n.uptime_s));
    }

    fn hosts(&mut self, figures: &Figures) {
        let hosts = || figures.hosts.iter().take(MAX_OF_A_KIND);
        let each = |value: &dyn Fn(&crate::HostRow) -> Option<f64>| -> Vec<(Labels<'_>, f64)> {
            hosts().filter_map(|h| Some((vec![("host", h.host.as_str())], value(h)?))).collect()
        };
        let up = each(&|h| Some(f64::from(u8::from(h.state == "connected"))));
        self.gauge("rnet_host_connected", "", "Whether the link hears it.", &up);
        let rtt = each(&|h| h.round_trip_s);
        self.gauge("rnet_host_round_trip_seconds", "seconds", "Time there and back.", &rtt);
        let uncertain = each(&|h| h.clock_offset_uncertainty_s);
        let help = "How far off the measured offset of its clock may be, either way.";
        self.gauge("rnet_host_clock_uncertainty_seconds", "seconds", help, &uncertain);
        let lost = each(&|h| Some(h.lost as f64));
        let help = "Messages lost between the hosts.";
        self.counter("rnet_host_lost_messages", "messages", help, &lost);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
