//! Edges and chains as tables.

use rnet_format::units;

use super::{Chain, Edge, Stage, Times, Uncertainty};

/// Times by stage or part, for people.
pub struct TimesView {
    /// What is shown.
    pub heading: String,
    /// What is to be known before the table.
    pub before: Option<String>,
    /// Cells: stage or part, messages, median, 99th percentile, maximum.
    pub rows: Vec<Vec<String>>,
    /// Lines below the table.
    pub after: Vec<String>,
}

impl Edge {
    /// The edge as a table.
    pub fn view(&self) -> TimesView {
        let edge = self;
        let untraced = match edge.untraced {
            0 => String::new(),
            n => format!(", {n} others were not traced"),
        };
        let heading = format!(
            "{}: {} -> {}, {} messages{untraced}",
            edge.topic, edge.publisher, edge.subscriber, edge.traced
        );
        let stages = Stage::ALL.iter().filter_map(|stage| Some((*stage, edge.stages.get(stage)?)));
        let rows = stages.map(|(stage, times)| row(stage.name(), times));
        let rows: Vec<_> = rows.chain([row("all", &edge.total)]).collect();
        let note = uncertainty_text(edge.uncertain);
        let notes = note.map(|about| format!("network and all: {about} clock uncertainty"));
        TimesView { heading, before: None, rows, after: notes.into_iter().collect() }
    }
}

impl Chain {
    /// The chain as a table, judged by a budget.
    pub fn view(&self, budget_ms: Option<f64>) -> TimesView {
        let chain = self;
        let topics: Vec<&str> = chain.hops.iter().map(|hop| hop.topic.as_str()).collect();
        let heading = topics.join(" -> ");
        let mut before = None;
        if chain.unknown > 0 {
            let ambiguous = match chain.ambiguous {
                0 => String::new(),
                n => format!(
                    ": for {n}, two inputs are closer than the clock uncertainty between the hosts"
                ),
            };
            before =
                Some(format!("the path of {} messages is not known{ambiguous}", chain.unknown));
        }
        if chain.total.count == 0 {
            return TimesView { heading, before, rows: Vec::new(), after: Vec::new() };
        }
        let (mut rows, mut clocks) = (Vec::new(), Vec::new());
        let mut part = |name: &str, times: &Times, about: Uncertainty| {
            rows.push(row(name, times));
            clocks.extend(
                uncertainty_text(about).map(|about| format!("{name}: {about} clock uncertainty")),
            );
        };
        for (at, hop) in chain.hops.iter().enumerate() {
            part(
                &format!("{} sent to callback start", hop.topic),
                &hop.transport,
                hop.transport_uncertain,
            );
            let work = match chain.hops.get(at + 1) {
                Some(next) => format!("{} callback start to {} sent", hop.topic, next.topic),
                None => format!("{} callback start to end", hop.topic),
            };
            part(&work, &hop.work, hop.work_uncertain);
        }
        part("all", &chain.total, chain.uncertain);
        if let (Some(over), Some(budget_ms)) = (chain.over_budget, budget_ms) {
            let count = chain.total.count;
            let verdict =
                if chain.total.p99_ns as f64 > budget_ms * 1e6 { "over" } else { "within" };
            clocks.push(format!(
                "{verdict} the budget of {budget_ms} ms: {over} of {count} took longer"
            ));
        }
        TimesView { heading, before, rows, after: clocks }
    }
}

/// How far from the truth a time may be, in words; `None` for one of one clock.
pub(super) fn uncertainty_text(uncertain: Uncertainty) -> Option<String> {
    match uncertain {
        Uncertainty::NONE => None,
        Uncertainty::Ns(ns) => Some(format!("± {}", units::latency(ns))),
        Uncertainty::Unknown => Some("± not yet known".to_owned()),
    }
}

fn row(name: &str, times: &Times) -> Vec<String> {
    let shown = [times.p50_ns, times.p99_ns, times.max_ns].map(units::latency);
    [name.to_owned(), times.count.to_string()].into_iter().chain(shown).collect()
}
