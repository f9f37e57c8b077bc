//! `rnet demo`: a simulated robot of ten processes, one of which is killed and restarted.

use std::time::Duration;

use clap::{Args, ValueEnum};
use rnet_bench::demo::{self, Demo};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::{signal, table};

/// Run a simulated robot of ten processes, kill one, and print delivery counts.
///
/// The robot runs in its own domain, or in the domain given by --domain, which must not have nodes. Exit 1 if a
/// message was lost without being counted, if messages arrived out of order, if the motors did not hold the arm after
/// the controller was killed, or if the control loop did not recover.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Duration of the run, in seconds: 2 to 3600
    #[arg(long, value_name = "S", default_value = "20", value_parser = seconds)]
    pub seconds: Duration,
    /// Simulation model of the arm: MuJoCo, if robot-net's Python wheel is installed with its `demo` extra, or the
    /// embedded model
    #[arg(long, value_enum, default_value_t = Model::Auto)]
    pub model: Model,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Model {
    Auto,
    Embedded,
    Mujoco,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let given = text.parse::<f64>().ok().filter(|seconds| (2.0..=3600.0).contains(seconds));
    given.map(Duration::from_secs_f64).ok_or_else(|| "must be from 2 to 3600 seconds".to_owned())
}

pub fn run(context: &mut Context, args: &DemoArgs) -> Outcome {
    let global = context.global();
    if global.group.is_some() {
        let why = "the demo cannot share its domain with a group: omit --group";
        return Err(Failure::Usage(why.to_owned()));
    }
    if let Some(domain) = &global.domain {
        let location = context.location()?.sibling(domain.clone(), None)?;
        if let Some(node) = location.living_nodes().first() {
            let why = format!("the demo needs a domain without nodes, but {node} runs in {domain}");
            return Err(Failure::Usage(format!("{why}; omit --domain, or use another one")));
        }
    }
    let model = match args.model {
        Model::Auto => demo::Model::Auto,
        Model::Embedded => demo::Model::Embedded,
        Model::Mujoco => demo::Model::Mujoco,
    };
    let domain = global.domain.as_ref().map(ToString::to_string);
    let demo = Demo::new(&context.domains_dir(), domain, model)?;
    context.eprintln(format_args!("{}", demo.heading()));
    let mut on_step = |step: &str| context.eprintln(format_args!("{step}"));
    let summary = demo.run(args.seconds, signal::stop_requested, &mut on_step)?;
    if context.json() {
        context.document(&demo.document(&summary))?;
    } else {
        let (titles, rows) = summary.topics();
        table::print(context, &titles, &rows)?;
        context.line(format_args!("\n{}", summary.text()))?;
    }
    summary.verdict()
}
