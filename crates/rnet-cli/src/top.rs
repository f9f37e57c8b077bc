//! `rnet top`: nodes, topics and problems, on a screen that is redrawn every second.
//!
//! - this file: inspects the domain, and prints the output of `--once`;
//! - `terminal`: shows the screen of `rnet_monitor::top`.

mod terminal;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use clap::Args;
use rnet::inspect::Domain;
use rnet_monitor::top::{Model, draw, rows};
use rnet_monitor::{DomainSnapshot, Figures, Finding, problems};
use rnet_record::blackbox::{NODE, RingMemory};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::shared_args::interval;
use crate::terminal_keys::Keys;
use crate::{signal, table};
use terminal::Screen;

#[derive(Debug, Args)]
pub struct TopArgs {
    /// Print one snapshot of nodes, topics and problems, and exit
    #[arg(long)]
    pub once: bool,
    /// Update interval in seconds; rates and latencies are measured over it
    #[arg(long, short, value_name = "S", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// Show only entries whose name contains this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub filter: String,
    /// Also show robot-net's internal topics and nodes
    #[arg(long)]
    pub all: bool,
}

/// Longest wait for a key; a signal is noticed within this time.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(100);

pub fn run(context: &mut Context, args: &TopArgs) -> Outcome {
    let mut source = FigureSource::new(context.domain()?, args)?;
    if args.once || context.json() {
        signal::sleep(args.interval)?;
        let (figures, problems) = source.next()?;
        return print(context, &source.domain, figures, &problems);
    }
    if !context.on_terminal() {
        let what = "rnet top needs a terminal; use --once to print one snapshot";
        return Err(Failure::Usage(what.to_owned()));
    }
    watch(&mut source, args)
}

/// Two snapshots of a domain, the last and the one before.
struct FigureSource {
    domain: Domain,
    last: DomainSnapshot,
    all: bool,
    filter: String,
}

impl FigureSource {
    fn new(mut domain: Domain, args: &TopArgs) -> Outcome<FigureSource> {
        let last = DomainSnapshot::new(&mut domain)?;
        Ok(FigureSource { domain, last, all: args.all, filter: args.filter.clone() })
    }

    /// The changes since the last snapshot, and the problems.
    fn next(&mut self) -> Outcome<(Figures, Vec<Finding>)> {
        let now = DomainSnapshot::new(&mut self.domain)?;
        let figures = Figures::new(&self.last, &now);
        let problems = problems(&self.last, &now, &figures);
        let mut figures = if self.all { figures } else { figures.without_internal() };
        self.last = now;
        figures.topics.retain(|topic| topic.topic.contains(&self.filter));
        figures.nodes.retain(|node| node.node.contains(&self.filter));
        Ok((figures, problems))
    }
}

/// The memory of the domain's black box, if its node exists.
fn black_box(domain: &Domain, figures: &Figures) -> Option<RingMemory> {
    let is_there = figures.nodes.iter().any(|node| node.node == NODE);
    is_there.then(|| RingMemory::of(domain.path())).flatten()
}

fn print(
    context: &mut Context,
    domain: &Domain,
    figures: Figures,
    problems: &[Finding],
) -> Outcome {
    let blackbox = black_box(domain, &figures);
    if context.json() {
        return context.document(&json!({
            "blackbox": blackbox,
            "domain": domain.id(),
            "interval_s": figures.interval_s,
            "nodes": figures.nodes,
            "topics": figures.topics,
            "hosts": figures.hosts,
            "problems": problems,
        }));
    }
    let nodes: Vec<Vec<String>> = figures.nodes.iter().map(rows::node).collect();
    table::print(context, &rows::NODE_TITLES, &nodes)?;
    context.line(format_args!(""))?;
    let topics: Vec<Vec<String>> = figures.topics.iter().map(rows::topic).collect();
    table::print(context, &rows::TOPIC_TITLES, &topics)?;
    if !figures.hosts.is_empty() {
        context.line(format_args!(""))?;
        let hosts: Vec<Vec<String>> = figures.hosts.iter().map(rows::host).collect();
        table::print(context, &rows::HOST_TITLES, &hosts)?;
    }
    if let Some(memory) = &blackbox {
        context.line(format_args!(""))?;
        context.line(format_args!("{} in {}", rows::black_box(memory), memory.ring.display()))?;
    }
    if !problems.is_empty() {
        context.line(format_args!(""))?;
    }
    context.findings(problems)
}

fn watch(source: &mut FigureSource, args: &TopArgs) -> Outcome {
    let mut keys = Keys::open()?;
    let mut screen = Screen::open(&keys)?;
    let mut model = Model::new(source.domain.id());
    let mut due = Instant::now() + args.interval.min(Duration::from_millis(300));
    let mut is_drawn = false;
    while !signal::stop_requested() {
        if !std::mem::replace(&mut is_drawn, true) {
            screen.draw(|canvas| draw(canvas, &mut model))?;
        }
        let left = due.saturating_duration_since(Instant::now());
        signal::wait_readable_for(keys.terminal.as_fd(), Some(KEY_POLL_INTERVAL.min(left)), false)?;
        if is_terminal_closed(&keys)? {
            break;
        }
        for key in keys.take()? {
            if model.is_quit(key) {
                return Ok(());
            }
            model.press(key);
            is_drawn = false;
        }
        is_drawn &= !screen.is_resized();
        if Instant::now() >= due && !model.is_paused {
            let (figures, problems) = source.next()?;
            model.blackbox = black_box(&source.domain, &figures);
            model.update(figures, problems);
            is_drawn = false;
            due = Instant::now() + args.interval;
        }
    }
    Err(Failure::Interrupted)
}

/// Whether the window is closed, or the connection has ended.
fn is_terminal_closed(keys: &Keys) -> Outcome<bool> {
    let mut fds = [PollFd::new(&keys.terminal, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).map_err(std::io::Error::from)?;
    Ok(fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR))
}
