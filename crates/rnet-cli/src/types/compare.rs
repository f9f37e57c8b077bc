//! `rnet type check` and `rnet type diff`: compare an old version of types with a new one.

use rnet::schema::Diff;
use rnet_format::types::{CheckedType, Sides, TypeReport, check_types, diff_types};
use serde::Serialize;

use super::args::{CompareArgs, Direction, TypeCheckArgs, TypeDiffArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn check_run(context: &mut Context, args: TypeCheckArgs) -> Outcome {
    let direction = match args.direction {
        Direction::OldWrites => rnet_format::types::Direction::OldWrites,
        Direction::NewWrites => rnet_format::types::Direction::NewWrites,
        Direction::Both => rnet_format::types::Direction::Both,
    };
    print(context, &check_types(&sides(&args.sides), direction)?, CheckedType::lines)
}

pub fn diff_run(context: &mut Context, args: TypeDiffArgs) -> Outcome {
    let lines = |one: &Diff| match one.lines.is_empty() {
        true => Vec::new(),
        false => vec![one.to_string()],
    };
    print(context, &diff_types(&sides(&args.sides))?, lines)
}

fn sides(args: &CompareArgs) -> Sides<'_> {
    Sides { old: &args.old, new: &args.new, types: &args.types, include: &args.include }
}

fn print<T: Serialize>(
    context: &mut Context,
    report: &TypeReport<T>,
    lines: fn(&T) -> Vec<String>,
) -> Outcome {
    if context.json() {
        context.document(report)?;
    } else {
        let lines = report.types.iter().flat_map(lines).chain(report.unmatched_lines());
        lines.into_iter().try_for_each(|line| context.line(format_args!("{line}")))?;
        // After the lines that it summarises, on a terminal too.
        context.flush()?;
        context.eprintln(format_args!("{}", report.summary()));
    }
    if report.compatible { Ok(()) } else { Err(Failure::AlreadyReported) }
}
