//! `rnet metrics`: the figures of a domain as text for Prometheus.

pub mod args;

use rnet_monitor::{Figures, Look, metrics, problems};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use args::MetricsArgs;

pub fn run(context: &mut Context, args: &MetricsArgs) -> Outcome {
    if context.json() {
        let why = "rnet metrics prints text for Prometheus; rnet top --once --json prints JSON";
        return Err(Failure::Usage(why.to_owned()));
    }
    let mut domain = context.domain()?;
    let before = Look::new(&mut domain)?;
    signal::sleep(args.over)?;
    let now = Look::new(&mut domain)?;
    let figures = Figures::new(&before, &now);
    let found = problems(&before, &now, &figures);
    let figures = if args.all { figures } else { figures.of_users() };
    let text = metrics(args.format.into(), domain.id(), &now, &figures, &found);
    context.line(format_args!("{}", text.trim_end()))
}
