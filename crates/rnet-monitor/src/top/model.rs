//! What `rnet top` shows, and what keys do to it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use crate::{Figures, Finding, NodeRow, TopicRow};
use rnet_record::blackbox::RingMemory;

use super::key::Key;

/// Rates of a topic that are kept for its sparkline.
const RATE_HISTORY_LEN: usize = 120;

/// A list of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    Topics,
    Nodes,
    Hosts,
    Problems,
}

impl Tab {
    pub const ALL: [Tab; 4] = [Tab::Topics, Tab::Nodes, Tab::Hosts, Tab::Problems];

    fn next(self) -> Tab {
        let at = Tab::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Tab::ALL[(at + 1) % Tab::ALL.len()]
    }
}

/// By what rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Name,
    /// Of nodes the CPU time.
    Rate,
    /// Of nodes the memory.
    Bytes,
    /// Of nodes what they receive.
    Latency,
    /// Of nodes what they send.
    Lost,
}

impl Sort {
    const ALL: [Sort; 5] = [Sort::Name, Sort::Rate, Sort::Bytes, Sort::Latency, Sort::Lost];

    fn next(self) -> Sort {
        let at = Sort::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Sort::ALL[(at + 1) % Sort::ALL.len()]
    }

    /// Its column in the table of topics, and in that of nodes.
    pub fn columns(self) -> (usize, usize) {
        match self {
            Sort::Name => (0, 0),
            Sort::Rate => (1, 5),
            Sort::Bytes => (2, 6),
            Sort::Latency => (4, 8),
            Sort::Lost => (6, 7),
        }
    }
}

/// What the screen shows.
pub struct Model {
    pub(super) domain: String,
    pub(super) figures: Option<Figures>,
    pub(super) problems: Vec<Finding>,
    /// Of the black box, if there is one.
    pub blackbox: Option<RingMemory>,
    pub(super) tab: Tab,
    pub(super) sort: Sort,
    pub(super) filter: String,
    /// Whether keys are letters of the filter.
    pub(super) is_filtering: bool,
    /// Whether the screen keeps the last figures.
    pub is_paused: bool,
    /// Whether the page of what is selected is shown, not the list.
    pub(super) shows_details: bool,
    /// The name of what is selected: it stays so when rows change places.
    pub(super) selected: Option<String>,
    /// Lines above those that are shown, of a page and of the problems. Drawing bounds it.
    pub(super) scroll_offset: usize,
    rates: BTreeMap<String, VecDeque<u64>>,
}

impl Model {
    /// The screen of a domain before its first figures.
    pub fn new(domain: &str) -> Model {
        Model {
            domain: domain.to_owned(),
            figures: None,
            problems: Vec::new(),
            blackbox: None,
            tab: Tab::Topics,
            sort: Sort::Name,
            filter: String::new(),
            is_filtering: false,
            is_paused: false,
            shows_details: false,
            selected: None,
            scroll_offset: 0,
            rates: BTreeMap::new(),
        }
    }

    /// Takes new figures.
    pub fn update(&mut self, figures: Figures, problems: Vec<Finding>) {
        self.rates.retain(|name, _| figures.topics.iter().any(|topic| topic.topic == *name));
        for topic in &figures.topics {
            let rates = self.rates.entry(topic.topic.clone()).or_default();
            if rates.len() == RATE_HISTORY_LEN {
                rates.pop_front();
            }
            rates.push_back(topic.rate_hz.round() as u64);
        }
        (self.figures, self.problems) = (Some(figures), problems);
    }

    /// The rates of a topic, in Hz, oldest first.
    pub(super) fn rates(&self, topic: &str) -> Vec<u64> {
        self.rates.get(topic).into_iter().flatten().copied().collect()
    }

    pub(super) fn topics(&self) -> Vec<&TopicRow> {
        let all = self.figures.iter().flat_map(|figures| &figures.topics);
        let mut topics: Vec<_> = all.filter(|t| t.topic.contains(&self.filter)).collect();
        topics.sort_by(|a, b| match self.sort {
            Sort::Name => Ordering::Equal,
            Sort::Rate => b.rate_hz.total_cmp(&a.rate_hz),
            Sort::Bytes => b.bytes_per_s.total_cmp(&a.bytes_per_s),
            Sort::Latency => b.latency.p99_ns.cmp(&a.latency.p99_ns),
            Sort::Lost => b.lost.total().cmp(&a.lost.total()),
        });
        topics
    }

    pub(super) fn nodes(&self) -> Vec<&NodeRow> {
        let all = self.figures.iter().flat_map(|figures| &figures.nodes);
        let mut nodes: Vec<_> = all.filter(|n| n.node.contains(&self.filter)).collect();
        let down = |a: Option<f64>, b: Option<f64>| b.unwrap_or(-1.0).total_cmp(&a.unwrap_or(-1.0));
        nodes.sort_by(|a, b| match self.sort {
            Sort::Name => Ordering::Equal,
            Sort::Rate => down(a.cpu, b.cpu),
            Sort::Bytes => b.rss_bytes.cmp(&a.rss_bytes),
            Sort::Latency => b.received_hz.total_cmp(&a.received_hz),
            Sort::Lost => b.sent_hz.total_cmp(&a.sent_hz),
        });
        nodes
    }

    /// The names of the rows, as they are shown.
    fn names(&self) -> Vec<String> {
        let hosts = self.figures.iter().flat_map(|figures| &figures.hosts);
        match self.tab {
            Tab::Topics => self.topics().iter().map(|topic| topic.topic.clone()).collect(),
            Tab::Nodes => self.nodes().iter().map(|node| node.node.clone()).collect(),
            Tab::Hosts => hosts.map(|host| host.host.clone()).collect(),
            Tab::Problems => Vec::new(),
        }
    }

    /// The row that is selected: the first, if what was selected is gone.
    pub(super) fn selected_index(&self) -> usize {
        let of = |name: &String| self.names().iter().position(|other| other == name);
        self.selected.as_ref().and_then(of).unwrap_or(0)
    }

    /// Whether lines are shown, not rows of which one is selected.
    fn shows_text(&self) -> bool {
        self.shows_details || self.tab == Tab::Problems
    }

    fn move_selection(&mut self, by: isize) {
        if self.shows_text() {
            self.scroll_offset = self.scroll_offset.saturating_add_signed(by);
            return;
        }
        let names = self.names();
        let at = self.selected_index().saturating_add_signed(by).min(names.len().saturating_sub(1));
        self.selected = names.into_iter().nth(at);
    }

    /// Whether this key ends the program.
    pub fn is_quit(&self, key: Key) -> bool {
        key == Key::Interrupt || !self.is_filtering && key == Key::Char('q')
    }

    /// Does what a key means.
    pub fn press(&mut self, key: Key) {
        if self.is_filtering {
            return self.press_in_filter(key);
        }
        match key {
            Key::Tab => self.show(self.tab.next()),
            Key::Char(digit @ '1'..='4') => {
                self.show(Tab::ALL[digit as usize - '1' as usize]);
            }
            Key::Up | Key::Char('k') => self.move_selection(-1),
            Key::Down | Key::Char('j') => self.move_selection(1),
            Key::PageUp => self.move_selection(-10),
            Key::PageDown => self.move_selection(10),
            Key::Home => self.move_selection(isize::MIN),
            Key::End => self.move_selection(isize::MAX),
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char(' ') => self.is_paused = !self.is_paused,
            Key::Char('/') if !self.shows_details => self.is_filtering = true,
            Key::Enter if !self.shows_details && matches!(self.tab, Tab::Topics | Tab::Nodes) => {
                self.move_selection(0);
                (self.shows_details, self.scroll_offset) = (self.selected.is_some(), 0);
            }
            Key::Esc if self.shows_details => self.shows_details = false,
            Key::Esc => self.filter.clear(),
            _ => {}
        }
    }

    fn press_in_filter(&mut self, key: Key) {
        match key {
            Key::Char(letter) => self.filter.push(letter),
            Key::Backspace => drop(self.filter.pop()),
            Key::Enter => self.is_filtering = false,
            Key::Esc => {
                self.filter.clear();
                self.is_filtering = false;
            }
            _ => {}
        }
    }

    fn show(&mut self, tab: Tab) {
        (self.tab, self.shows_details, self.selected, self.scroll_offset) = (tab, false, None, 0);
    }
}
