//! `rnet bench …`: measures robot-net on this machine.

use std::io::Write;

use rnet_bench::measure::{
    BenchHost, BenchReport, Benchmark, EXAMPLE_TOPOLOGY, Heading, TableView,
};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::{signal, table};

pub fn run(context: &mut Context, benchmark: Benchmark) -> Outcome {
    let global = context.global();
    if global.domain.is_some() || global.group.is_some() {
        return Err(Failure::Usage(
            "a benchmark runs in its own private domain: omit --domain and --group (--dir sets its directory)"
                .to_owned(),
        ));
    }
    if matches!(&benchmark, Benchmark::Topology(options) if options.example) {
        return Ok(context.out().write_all(EXAMPLE_TOPOLOGY.as_bytes())?);
    }
    let mut host = BenchHost {
        domains_dir: context.domains_dir(),
        should_stop: signal::stop_requested,
        on_begin: &mut |heading| print_heading(context, heading),
    };
    let report = benchmark.run(&mut host)?;
    print(context, &report)?;
    report.verdict
}

fn print_heading(context: &mut Context, heading: &Heading) -> std::io::Result<()> {
    if cfg!(debug_assertions) {
        context.eprintln(format_args!(
            "rnet: this is a debug build and many times slower; build with --release"
        ));
    }
    if context.json() {
        return Ok(());
    }
    let Heading { name, what, machine } = heading;
    let out = context.out();
    writeln!(out, "{:<12}{machine}\n{name:<12}{what}", "machine")?;
    // The next output may take seconds.
    out.flush()
}

fn print(context: &mut Context, report: &BenchReport) -> Outcome {
    if context.json() {
        return context.document(&report.document());
    }
    for table in &report.tables {
        match table.view() {
            TableView::Lines(lines) => lines
                .iter()
                .try_for_each(|(name, text)| context.line(format_args!("{name:<12}{text}")))?,
            TableView::Rows { titles, rows } => {
                let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
                table::print(context, &titles, &rows)?;
            }
        }
    }
    report.delivery.map_or(Ok(()), |delivery| {
        context.line(format_args!("{:<12}{}", "messages", delivery.show()))
    })
}
