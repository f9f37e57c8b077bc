//! Metrics as text for Prometheus and what scrapes as it does: OpenMetrics 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>) or the older format of Prometheus.

use std::fmt::Write;

use super::{BOUNDS_S, Family, Labels, Series};

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// With units and an end mark.
    OpenMetrics,
    /// The text format of Prometheus, version 0.0.4, which more programs read.
    Prometheus,
}

pub fn text(format: MetricsFormat, domain: &str, families: &[Family<'_>]) -> String {
    let mut text = Text { text: String::new(), format, domain };
    families.iter().for_each(|family| text.family(family));
    if format == MetricsFormat::OpenMetrics {
        text.text.push_str("# EOF\n");
    }
    text.text
}

struct Text<'a> {
    text: String,
    format: MetricsFormat,
    domain: &'a str,
}

impl Text<'_> {
    fn family(&mut self, family: &Family<'_>) {
        let name = family.name;
        match &family.series {
            Series::Gauge(of) => {
                self.head(name, "gauge", family);
                of.iter().for_each(|(labels, value)| self.sample(name, labels, *value));
            }
            Series::Counter(of) => {
                let total = format!("{name}_total");
                match self.format {
                    MetricsFormat::OpenMetrics => self.head(name, "counter", family),
                    MetricsFormat::Prometheus => self.head(&total, "counter", family),
                }
                of.iter().for_each(|(labels, value)| self.sample(&total, labels, *value));
            }
            Series::Histogram(of) => {
                self.head(name, "histogram", family);
                for (labels, buckets) in of {
                    let bucket = format!("{name}_bucket");
                    let bounds = BOUNDS_S.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
                    let counts = buckets.within.iter().chain([&buckets.count]);
                    for (bound, count) in bounds.zip(counts) {
                        let mut labels = labels.clone();
                        labels.push(("le", &bound));
                        self.sample(&bucket, &labels, *count as f64);
                    }
                    self.sample(&format!("{name}_count"), labels, buckets.count as f64);
                    self.sample(&format!("{name}_sum"), labels, buckets.sum);
                }
            }
        }
    }

    fn head(&mut self, name: &str, kind: &str, family: &Family<'_>) {
        // To a String nothing fails.
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if !family.unit.is_empty() && self.format == MetricsFormat::OpenMetrics {
            let _ = writeln!(self.text, "# UNIT {name} {}", family.unit);
        }
        let _ = writeln!(self.text, "# HELP {name} {}", family.help);
    }

    fn sample(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        let all = [("domain", self.domain)].into_iter().chain(labels.iter().copied());
        let all: Vec<String> = all.map(|(k, v)| format!("{k}=\"{}\"", escaped(v))).collect();
        let _ = writeln!(self.text, "{name}{{{}}} {value}", all.join(","));
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
