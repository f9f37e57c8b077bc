//! Content of `delivered.json`; see the crate's first page.

use bench_harness::Result;
use bench_harness::file::write_whole;
use std::path::{Path, PathBuf};

/// The whole file.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Report {
    /// "zenoh-vs-nats".
    pub study: String,
    /// Whether criterion ran with `--quick`.
    pub quick: bool,
    /// Messages in an iteration.
    pub messages_per_iteration: u64,
    /// Bytes of each message.
    pub message_len_bytes: usize,
    /// In the order in which they ran.
    pub functions: Vec<Row>,
}

/// One function.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Row {
    /// The study's name for it, for instance "nats_with_mutex".
    pub function: String,
    /// The system, for instance "NATS".
    pub system: String,
    /// Whether an `Arc<Mutex<>>` wraps the publisher.
    pub mutex: bool,
    /// How the system is set up.
    pub setup: String,
    /// Why it did not run here.
    pub why_not: Option<String>,
    /// The study's figure: group "Pub-Sub".
    pub pub_sub: Option<Figures>,
    /// Ours: group "Pub-Sub-delivered".
    pub delivered: Option<Figures>,
}

/// Results of one function in one group.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Figures {
    /// Messages published in all iterations, warm-up included.
    pub published: u64,
    /// How many of them the subscriber has counted.
    pub delivered: u64,
    /// Time of an iteration.
    pub time_ns: Option<Time>,
}

/// Criterion's estimate of an iteration's time, in ns.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Time {
    /// Lower end of the confidence interval.
    pub low: f64,
    /// The estimate.
    pub estimate: f64,
    /// Upper end of the confidence interval.
    pub high: f64,
}

/// Where the file goes: `STUDY3_OUT`, or `study3/delivered.json` in cargo's target directory.
pub fn out_path() -> PathBuf {
    match (std::env::var_os("STUDY3_OUT"), std::env::var_os("CARGO_TARGET_DIR")) {
        (Some(path), _) => path.into(),
        (None, Some(target)) => PathBuf::from(target).join("study3/delivered.json"),
        (None, None) => {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/study3/delivered.json")
        }
    }
}

impl Time {
    /// The estimate that criterion left in its directory `criterion`, the one that it prints: the
    /// slope over samples of growing length, or the mean where all samples are equally long.
    pub fn of(criterion: &Path, group: &str, function: &str) -> Option<Self> {
        let path = criterion.join(group).join(function).join("new/estimates.json");
        Self::from_estimates(&std::fs::read_to_string(path).ok()?)
    }

    fn from_estimates(text: &str) -> Option<Self> {
        let estimates: serde_json::Value = serde_json::from_str(text).ok()?;
        let typical = match &estimates["slope"] {
            serde_json::Value::Null => &estimates["mean"],
            slope => slope,
        };
        let interval = &typical["confidence_interval"];
        Some(Self {
            low: interval["lower_bound"].as_f64()?,
            estimate: typical["point_estimate"].as_f64()?,
            high: interval["upper_bound"].as_f64()?,
        })
    }
}

impl Report {
    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// With the path, when it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        write_whole(path, |out| Ok(out.write_all(text.as_bytes())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_goes_before_the_mean() {
        let estimate = |point: f64| {
            let interval =
                format!(r#"{{"lower_bound":{},"upper_bound":{}}}"#, point - 1., point + 1.);
            format!(r#"{{"confidence_interval":{interval},"point_estimate":{point}}}"#)
        };
        let text = |slope: &str| format!(r#"{{"mean":{},"slope":{slope}}}"#, estimate(5.0));
        let time = |point| Some(Time { low: point - 1., estimate: point, high: point + 1. });
        assert_eq!(Time::from_estimates(&text("null")), time(5.0));
        assert_eq!(Time::from_estimates(&text(&estimate(9.0))), time(9.0));
        assert_eq!(Time::from_estimates("{}"), None);
    }
}
