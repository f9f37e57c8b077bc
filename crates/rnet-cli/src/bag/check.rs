//! `rnet bag check`.

use rnet_record::read::{self, ReadError};
use serde_json::{Value, json};

use super::args::FileArg;
use super::file;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;

pub fn check(context: &mut Context, args: &FileArg) -> Outcome {
    let mut told: Vec<Value> = Vec::new();
    let json = context.json();
    let mut tell = |problem: &ReadError| match json {
        true => told.push(json!({"offset": problem.offset, "what": problem.problem.to_string()})),
        false => file::report_problem(context, &args.file, problem),
    };
    let checked = signal::with_immediate_exit(|| read::check(&args.file, &mut tell))?;
    let checked = checked.map_err(|error| file::read_failure(&args.file, &error))?;
    let (messages, chunks) = (checked.messages, checked.chunks);
    if json {
        let mut document = json!(checked);
        document["problems"] = told.into();
        context.document(&document)?;
    } else {
        let missing = match checked.missing {
            0 => String::new(),
            missing => format!("; {missing} sent messages are missing"),
        };
        let unheard = match (checked.unheard, checked.followed) {
            (_, Some(0)) => "; the recorder followed no publisher".to_owned(),
            (Some(unheard @ 1..), _) => {
                format!("; publishers seen but not heard: {unheard}")
            }
            _ => String::new(),
        };
        let gaps = match checked.has_too_many_gaps {
            false => "",
            true => "; because of the many gaps, only a part was checked for duplicate messages",
        };
        context
            .line(format_args!("{messages} messages, {chunks} chunks{missing}{unheard}{gaps}"))?;
    }
    match checked.problems {
        0 => Ok(()),
        1 => Err(Failure::Failed(format!("{} has a problem", args.file.display()))),
        n => Err(Failure::Failed(format!("{} has {n} problems", args.file.display()))),
    }
}
