//! Downsamples numbers over time: keeps the minimum, maximum and last value of each bucket.

use std::collections::VecDeque;

use serde_json::{Value as Json, json};

/// Maximum number of queued buckets: the oldest are dropped.
const MAX_WAITING: usize = 4_096;

/// A bucket this far ahead of the time was filled before the wall clock was set back, in s.
const CLOCK_STEP_S: f64 = 1.0;

struct Bucket {
    /// Number of the bucket since 1970.
    at: i64,
    t_s: f64,
    min: f64,
    max: f64,
    last: f64,
    n: u64,
}

/// Data since the last item sent.
pub struct Buckets {
    width_s: f64,
    complete: VecDeque<Bucket>,
    open: Option<Bucket>,
    missing: u64,
    why: Option<String>,
    lost: u64,
    /// Unit of the values, if known.
    pub unit: Option<String>,
}

impl Buckets {
    /// Buckets of this width in ms.
    pub fn new(width_ms: f64) -> Buckets {
        Buckets {
            width_s: width_ms / 1e3,
            complete: VecDeque::new(),
            open: None,
            missing: 0,
            why: None,
            lost: 0,
            unit: None,
        }
    }

    /// Adds a number with its send time, which must not be in the future: current numbers would then all be
    /// late.
    pub fn add(&mut self, t_s: f64, x: f64) {
        let at = (t_s / self.width_s).floor() as i64;
        match &mut self.open {
            // A late number of another publisher is added to the open bucket.
            Some(open) if at <= open.at => {
                open.t_s = open.t_s.max(t_s);
                // NaN is kept only if no other value exists.
                open.min = open.min.min(x);
                open.max = open.max.max(x);
                open.last = x;
                open.n += 1;
            }
            open => {
                let before = open.replace(Bucket { at, t_s, min: x, max: x, last: x, n: 1 });
                self.complete.extend(before);
                if self.complete.len() > MAX_WAITING {
                    self.lost += self.complete.pop_front().map_or(0, |bucket| bucket.n);
                }
            }
        }
    }

    /// Counts a message without the number.
    pub fn add_missing(&mut self, why: &str) {
        self.missing += 1;
        self.why = Some(why.to_owned());
    }

    /// Counts lost messages.
    pub fn add_lost(&mut self, count: u64) {
        self.lost += count;
    }

    /// The data as text: the buckets that are complete at this time.
    pub fn take(&mut self, now_s: f64) -> Option<String> {
        let now = (now_s / self.width_s).floor() as i64;
        let is_over = |open: &Bucket| open.at < now || open.t_s > now_s + CLOCK_STEP_S;
        if self.open.as_ref().is_some_and(is_over) {
            self.complete.extend(self.open.take());
        }
        if self.complete.is_empty() && self.missing == 0 && self.lost == 0 {
            return None;
        }
        let all: Vec<Bucket> = self.complete.drain(..).collect();
        let column =
            |of: fn(&Bucket) -> f64| -> Json { all.iter().map(|b| json!(of(b))).collect() };
        let mut data = json!({
            "t_s": column(|b| b.t_s),
            // NaN becomes null.
            "min": column(|b| b.min),
            "max": column(|b| b.max),
            "last": column(|b| b.last),
            "n": all.iter().map(|b| b.n).collect::<Vec<u64>>(),
        });
        if let Some(unit) = &self.unit {
            data["unit"] = unit.as_str().into();
        }
        if self.missing > 0 {
            data["missing"] = std::mem::take(&mut self.missing).into();
            data["why"] = self.why.take().into();
        }
        if self.lost > 0 {
            data["lost"] = std::mem::take(&mut self.lost).into();
        }
        Some(data.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: Option<String>) -> Json {
        serde_json::from_str(&text.unwrap()).unwrap()
    }

    #[test]
    fn keeps_minimum_maximum_and_last_of_each_bucket() {
        let mut buckets = Buckets::new(100.0);
        for (t_s, x) in [(1.00, 3.0), (1.05, -1.0), (1.09, 2.0), (1.10, 5.0), (1.35, f64::NAN)] {
            buckets.add(t_s, x);
        }
        let data = json(buckets.take(1.36));
        assert_eq!(data["min"], json!([-1.0, 5.0]));
        assert_eq!(data["max"], json!([3.0, 5.0]));
        assert_eq!(data["last"], json!([2.0, 5.0]));
        assert_eq!(data["n"], json!([3, 1]));
        assert_eq!(data["t_s"], json!([1.09, 1.10]));
        // The open bucket is sent when its time is over.
        assert_eq!(buckets.take(1.36), None);
        let data = json(buckets.take(1.41));
        assert_eq!((&data["n"], &data["last"]), (&json!([1]), &json!([null])));
    }

    #[test]
    fn continues_after_wall_clock_is_set_back() {
        let mut buckets = Buckets::new(20.0);
        buckets.unit = Some("m/s".to_owned());
        buckets.add(5_000.0, 1.0);
        assert_eq!(json(buckets.take(1_400.0))["t_s"], json!([5_000.0]));
        buckets.add(1_400.0, 2.0);
        let data = json(buckets.take(1_401.0));
        assert_eq!((&data["t_s"], &data["unit"]), (&json!([1_400.0]), &json!("m/s")));
    }

    #[test]
    fn counts_missing_numbers_and_limits_queued_buckets() {
        let mut buckets = Buckets::new(1.0);
        buckets.add_missing("it is a text");
        buckets.add_lost(2);
        for n in 0..MAX_WAITING + 10 {
            buckets.add(1.0 + n as f64 / 1e3 + 1e-6, 0.0);
        }
        let data = json(buckets.take(1.0 + (MAX_WAITING + 9) as f64 / 1e3 + 1e-6));
        assert_eq!((&data["missing"], &data["why"]), (&json!(1), &json!("it is a text")));
        assert_eq!(data["n"].as_array().unwrap().len(), MAX_WAITING);
        assert_eq!(data["lost"], json!(11));
    }
}
