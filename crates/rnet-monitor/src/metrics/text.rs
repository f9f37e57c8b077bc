//! Metrics as text for Prometheus-compatible scrapers: OpenMetrics 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>) or the older Prometheus format.

use std::fmt::Write;

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// With units and an end marker.
    OpenMetrics,
    /// The text format of Prometheus, version 0.0.4, which more programs read.
    Prometheus,
}

/// Unit suffixes of metric names.
const UNITS: [&str; 4] = ["messages", "bytes", "seconds", "cores"];

pub type Labels<'a> = Vec<(&'static str, &'a str)>;
pub type Sample<'a> = (Labels<'a>, f64);

/// The text written so far.
pub struct MetricsText<'a> {
    text: String,
    format: MetricsFormat,
    domain: &'a str,
}

impl<'a> MetricsText<'a> {
    pub fn new(format: MetricsFormat, domain: &'a str) -> MetricsText<'a> {
        MetricsText { text: String::new(), format, domain }
    }

    pub fn end(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    pub fn gauge(&mut self, name: &str, help: &str, of: &[Sample<'_>]) {
        self.head(name, "gauge", help);
        of.iter().for_each(|(labels, value)| self.sample(name, labels, *value));
    }

    /// A counter; `name` is without `_total`.
    pub fn counter(&mut self, name: &str, help: &str, of: &[Sample<'_>]) {
        let total = format!("{name}_total");
        match self.format {
            MetricsFormat::OpenMetrics => self.head(name, "counter", help),
            MetricsFormat::Prometheus => self.head(&total, "counter", help),
        }
        of.iter().for_each(|(labels, value)| self.sample(&total, labels, *value));
    }

    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        let unit = UNITS.iter().find(|unit| name.ends_with(*unit));
        if let Some(unit) = unit.filter(|_| self.format == MetricsFormat::OpenMetrics) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {help}");
    }

    pub fn sample(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        let all = [("domain", self.domain)].into_iter().chain(labels.iter().copied());
        let all: Vec<String> = all.map(|(k, v)| format!("{k}=\"{}\"", escaped(v))).collect();
        let _ = writeln!(self.text, "{name}{{{}}} {value}", all.join(","));
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
