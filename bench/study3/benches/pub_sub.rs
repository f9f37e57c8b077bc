//! The study's criterion benchmark, with the delivered messages; see the library's first page.

use bench_study3::report::{Figures, Report, Row, Time, out_path};
use bench_study3::{Function, MESSAGES, TestMessage, systems};
use criterion::{Criterion, Throughput};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The study's group: how fast `publish` returns.
const PUB_SUB: &str = "Pub-Sub";
/// Ours: until the subscriber has counted all.
const DELIVERED: &str = "Pub-Sub-delivered";

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().collect();
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let out = out_path();
    let criterion_dir = out.parent().map_or_else(PathBuf::new, Path::to_path_buf).join("criterion");
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
        .sample_size(25)
        .output_directory(&criterion_dir)
        .configure_from_args();
    let mut report = Report {
        study: "zenoh-vs-nats".into(),
        quick: given("--quick"),
        messages_per_iteration: MESSAGES,
        message_len_bytes: TestMessage::new().encode_to_vec().len(),
        functions: Vec::new(),
    };
    for system in systems::all() {
        for mutex in [false, true] {
            let mut row = Row {
                function: system.function_name(mutex),
                system: system.name.into(),
                mutex,
                setup: system.setup.into(),
                why_not: None,
                pub_sub: None,
                delivered: None,
            };
            if let Err(why) = run(&mut criterion, &system, &mut row, &criterion_dir) {
                println!("{PUB_SUB}/{} does not run here: {why}", row.function);
                row.why_not = Some(why);
            }
            report.functions.push(row);
        }
    }
    criterion.final_summary();
    // As criterion does: without `--bench` (cargo test) each function ran once and measured nothing.
    if given("--bench") && !given("--list") {
        report.write(&out).map_err(|error| error.to_string())?;
        println!("published and delivered: {}", out.display());
    }
    Ok(())
}

/// Both groups of one function.
fn run(
    criterion: &mut Criterion,
    system: &systems::System,
    row: &mut Row,
    criterion_dir: &Path,
) -> Result<(), String> {
    let mut function = system.open(row.mutex).map_err(|error| error.to_string())?;
    let name = row.function.clone();
    row.pub_sub = measure(criterion, PUB_SUB, &name, &mut function, Function::publish)?;
    row.delivered =
        measure(criterion, DELIVERED, &name, &mut function, Function::publish_and_wait)?;
    for (group, figures) in [(PUB_SUB, &mut row.pub_sub), (DELIVERED, &mut row.delivered)] {
        if let Some(figures) = figures {
            figures.time_ns = Time::of(criterion_dir, group, &name);
        }
    }
    Ok(())
}

/// One function in one group; `None` when the command line left it out.
fn measure(
    criterion: &mut Criterion,
    group: &str,
    name: &str,
    function: &mut Function,
    iterate: fn(&mut Function, u64) -> Duration,
) -> Result<Option<Figures>, String> {
    let ran = Cell::new(false);
    function.start_counting();
    let mut benchmark = criterion.benchmark_group(group);
    benchmark.throughput(Throughput::Elements(MESSAGES));
    benchmark.bench_function(name, |bencher| {
        ran.set(true);
        bencher.iter_custom(|iterations| iterate(function, iterations));
    });
    benchmark.finish();
    if !ran.get() {
        return Ok(None);
    }
    let (published, delivered) = function.counts().map_err(|error| error.to_string())?;
    println!("{group}/{name}: published {published}, delivered {delivered}");
    Ok(Some(Figures { published, delivered, time_ns: None }))
}
