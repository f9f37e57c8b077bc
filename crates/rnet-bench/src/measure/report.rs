//! Figures of several cases and runs: a table for people, and a document for programs.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::figure::{Latencies, RunSpread};
use super::roles::robot::Received;
use rnet_format::units;
use rnet_format::{Failure, Outcome};

/// A measured quantity.
#[derive(Clone, Copy)]
pub struct Figure {
    /// Name for people.
    name: &'static str,
    /// Name for programs, with the unit.
    key: &'static str,
    show: fn(f64) -> String,
    in_table: TableColumns,
}

/// How a table of several cases shows a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TableColumns {
    Nothing,
    Median,
    Range,
}

impl Figure {
    pub const fn new(name: &'static str, key: &'static str, show: fn(f64) -> String) -> Figure {
        Figure { name, key, show, in_table: TableColumns::Median }
    }

    /// Adds the range of the runs to tables.
    pub const fn with_range(self) -> Figure {
        Figure { in_table: TableColumns::Range, ..self }
    }

    /// Omits the figure from tables.
    pub const fn hidden_in_tables(self) -> Figure {
        Figure { in_table: TableColumns::Nothing, ..self }
    }
}

/// The figures of [`latencies`].
pub const LATENCIES: [Figure; 5] = [
    Figure::new("p50", "p50_ns", latency),
    Figure::new("p90", "p90_ns", latency).hidden_in_tables(),
    Figure::new("p99", "p99_ns", latency),
    Figure::new("p99.9", "p999_ns", latency),
    Figure::new("max", "max_ns", latency),
];

pub fn latencies(latencies: &Latencies) -> [f64; 5] {
    let p = latencies.percentiles();
    [p.p50_ns, p.p90_ns, p.p99_ns, p.p999_ns, p.max_ns].map(|ns| ns as f64)
}

/// A compared case: a size, a wait mode, a topic. Each run has all figures of its table; NaN for a missing
/// one.
pub struct Case {
    pub labels: Vec<(&'static str, Value)>,
    pub runs: Vec<Vec<f64>>,
}

/// Figures of several cases, each of several runs.
pub struct Table {
    pub(super) name: &'static str,
    pub(super) figures: Vec<Figure>,
    pub(super) cases: Vec<Case>,
}

/// A table for people.
pub enum TableView {
    /// Names and figures of the only case.
    Lines(Vec<(&'static str, String)>),
    /// One row per case. A title that ends with a space marks right-aligned cells.
    Rows {
        /// Titles of the columns.
        titles: Vec<String>,
        /// Cells by row.
        rows: Vec<Vec<String>>,
    },
}

impl Table {
    /// A table with one case.
    pub(super) fn of_runs(name: &'static str, figures: Vec<Figure>, runs: Vec<Vec<f64>>) -> Table {
        Table { name, figures, cases: vec![Case { labels: Vec::new(), runs }] }
    }

    /// Adds ratios of figure `at` to that of the case `base(case)`, computed within each run before the
    /// median is taken: other load on the machine affects all cases of a run alike.
    pub(super) fn add_ratios(&mut self, figure: Figure, at: usize, base: impl Fn(usize) -> usize) {
        let values = |case: &Case| case.runs.iter().map(|run| run[at]).collect::<Vec<_>>();
        let values: Vec<Vec<f64>> = self.cases.iter().map(values).collect();
        for (number, case) in self.cases.iter_mut().enumerate() {
            for (run, base) in case.runs.iter_mut().zip(&values[base(number)]) {
                run.push(run[at] / base.max(f64::MIN_POSITIVE));
            }
        }
        self.figures.push(figure);
    }

    fn spread(case: &Case, at: usize) -> Option<RunSpread> {
        RunSpread::of(case.runs.iter().map(|run| run[at]))
    }

    pub(super) fn document(&self) -> Value {
        let of_run = |run: &Vec<f64>| {
            let values = self.figures.iter().zip(run).map(|(figure, value)| (figure.key, value));
            json!(values.collect::<std::collections::BTreeMap<_, _>>())
        };
        let of_case = |case: &Case| {
            let labels =
                case.labels.iter().map(|(name, label)| ((*name).to_owned(), label.clone()));
            let mut document: Map<String, Value> = labels.collect();
            for (at, figure) in self.figures.iter().enumerate() {
                document.insert(figure.key.to_owned(), json!(Table::spread(case, at)));
            }
            document.insert("runs".to_owned(), case.runs.iter().map(of_run).collect());
            Value::Object(document)
        };
        self.cases.iter().map(of_case).collect()
    }

    /// Shows one case as lines, with the range of each figure, and several cases as rows.
    pub fn view(&self) -> TableView {
        let show = |case: &Case, at, figure: &Figure, with_range| match Table::spread(case, at) {
            None => "-".to_owned(),
            Some(spread) if with_range => spread.show(figure.show),
            Some(spread) => (figure.show)(spread.median),
        };
        if let [case] = &self.cases[..] {
            let lines = self.figures.iter().enumerate();
            let lines = lines.map(|(at, figure)| (figure.name, show(case, at, figure, true)));
            return TableView::Lines(lines.collect());
        }
        let text = |label: &Value| label.as_str().map_or_else(|| label.to_string(), str::to_owned);
        let first = self.cases.first().map_or(&[][..], |case| &case.labels);
        // A label that all cases share is omitted.
        let differs = |at: &usize| self.cases.iter().any(|case| case.labels[*at] != first[*at]);
        let labels: Vec<usize> = (0..first.len()).filter(differs).collect();
        let figures = self.figures.iter().enumerate();
        let figures: Vec<_> =
            figures.filter(|(_, f)| f.in_table != TableColumns::Nothing).collect();
        let names = labels.iter().map(|at| first[*at].0.to_owned());
        let titles = names.chain(figures.iter().map(|(_, figure)| format!("{} ", figure.name)));
        let titles: Vec<String> = titles.map(|title| title.to_uppercase()).collect();
        let cells = |case: &Case| -> Vec<String> {
            let labels = labels.iter().map(|at| text(&case.labels[*at].1));
            let with_range = |figure: &Figure| figure.in_table == TableColumns::Range;
            let figures = figures.iter().map(|(at, f)| show(case, *at, f, with_range(f)));
            labels.chain(figures).collect()
        };
        TableView::Rows { titles, rows: self.cases.iter().map(cells).collect() }
    }
}

pub fn latency(ns: f64) -> String {
    units::latency(ns as u64)
}

/// `98 %`, `0.03 %`: share of a core.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.995 => format!("{percent:.2} %"),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// `12.3 M`: a count or a rate.
pub fn count(n: f64) -> String {
    match n {
        n if n >= 999_500.0 => format!("{:.2} M", n / 1e6),
        n if n >= 9_995.0 => format!("{:.1} k", n / 1e3),
        // Large messages are few per second.
        n if n < 9.995 && n.fract() != 0.0 => format!("{n:.2}"),
        n => format!("{n:.0}"),
    }
}

/// Delivery counts of all runs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct DeliveryCounts {
    /// Messages that readers should have received.
    pub expected: u64,
    /// Messages that they received.
    pub received: u64,
    /// Messages lost, from the numbers in the messages.
    pub lost: u64,
    /// Messages lost, by robot-net's own counters.
    pub counted_lost: u64,
    /// Messages that arrived after a later one.
    pub out_of_order: u64,
    /// Messages with a wrong content or length.
    pub corrupt: u64,
}

impl std::ops::AddAssign for DeliveryCounts {
    fn add_assign(&mut self, other: DeliveryCounts) {
        self.expected += other.expected;
        self.received += other.received;
        self.lost += other.lost;
        self.counted_lost += other.counted_lost;
        self.out_of_order += other.out_of_order;
        self.corrupt += other.corrupt;
    }
}

impl DeliveryCounts {
    /// The counts of one reader, given the number of messages that each of the topic's publishers sent.
    pub(super) fn of(received: &Received, sent: &[u64]) -> DeliveryCounts {
        let mut delivery = DeliveryCounts {
            counted_lost: received.counted_lost,
            corrupt: received.corrupt,
            ..DeliveryCounts::default()
        };
        for (tally, &sent) in received.tallies.iter().zip(sent) {
            delivery.expected += sent;
            delivery.received += tally.received;
            delivery.lost += sent.saturating_sub(tally.received);
            delivery.out_of_order += tally.out_of_order;
        }
        delivery
    }

    /// The counts, as text.
    pub fn show(&self) -> String {
        let DeliveryCounts { expected, received, lost, out_of_order, corrupt, .. } = self;
        format!(
            "{received} of {expected} received, {lost} lost, {out_of_order} out of order, {corrupt} corrupt"
        )
    }

    /// An error if robot-net broke a guarantee.
    pub(super) fn verdict(&self, may_lose: bool) -> Outcome {
        let DeliveryCounts { expected, lost, counted_lost, out_of_order, corrupt, .. } = self;
        let what = if *corrupt > 0 {
            format!("{corrupt} messages were corrupted")
        } else if *out_of_order > 0 {
            format!("{out_of_order} messages arrived out of order")
        } else if *lost != *counted_lost {
            format!("{lost} messages were lost, but robot-net counted {counted_lost}")
        } else if *lost > 0 && !may_lose {
            format!("{lost} of {expected} messages of reliable topics were lost")
        } else {
            return Ok(());
        };
        let ask = "this is a defect: please report it, with the output of --json";
        Err(Failure::Failed(format!("{what}; {ask}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_formatted_for_people() {
        assert_eq!(percent(0.00031), "0.03 %");
        assert_eq!(percent(0.98), "98 %");
        assert_eq!(percent(0.05), "5.0 %");
        assert_eq!(count(12_345_678.0), "12.35 M");
        assert_eq!(count(12_345.0), "12.3 k");
        assert_eq!(count(12.0), "12");
        assert_eq!(count(0.46), "0.46");
        assert_eq!(count(3.0), "3");
    }

    #[test]
    fn ratios_are_computed_within_one_run() {
        let case = |runs: &[f64]| Case {
            labels: Vec::new(),
            runs: runs.iter().map(|value| vec![*value]).collect(),
        };
        let cases = vec![case(&[4.0, 9.0]), case(&[2.0, 3.0])];
        let mut table = Table { name: "t", figures: vec![LATENCIES[0]], cases };
        table.add_ratios(LATENCIES[1], 0, |_| 1);
        let ratios = table.cases.iter().map(|case| (case.runs[0][1], case.runs[1][1]));
        assert_eq!(ratios.collect::<Vec<_>>(), [(2.0, 3.0), (1.0, 1.0)]);
    }

    #[test]
    fn broken_delivery_guarantee_is_error() {
        let good = DeliveryCounts { expected: 5, received: 5, ..DeliveryCounts::default() };
        assert!(good.verdict(false).is_ok());
        let lost = DeliveryCounts { received: 4, lost: 1, counted_lost: 1, ..good };
        assert!(lost.verdict(true).is_ok());
        assert!(lost.verdict(false).unwrap_err().to_string().contains("reliable"));
        let silent = DeliveryCounts { counted_lost: 0, ..lost };
        assert!(silent.verdict(true).unwrap_err().to_string().contains("counted 0"));
        assert!(DeliveryCounts { corrupt: 1, ..good }.verdict(true).is_err());
        assert!(DeliveryCounts { out_of_order: 1, ..good }.verdict(true).is_err());
    }
}
