//! `rnet doctor`: prints what `rnet::inspect::doctor` found.

mod realtime;

use rnet::inspect::doctor::{Level, Question, diagnose};

use crate::args::DoctorArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn run(context: &mut Context, args: DoctorArgs) -> Outcome {
    if args.realtime {
        return realtime::run(context);
    }
    let question = Question {
        nodes: args.to.zip(args.from).map(|(to, from)| (to.into(), from.into())),
        topic: args.topic.map(String::from),
    };
    let global = context.global();
    let domain = global.domain.as_ref().map(|d| d.as_str());
    let diagnosis = diagnose(domain, global.dir.clone(), global.group.clone(), &question)?;
    let problems = diagnosis.problems().count();
    if context.json() {
        let mut value = serde_json::to_value(&diagnosis).map_err(std::io::Error::from)?;
        value["problems"] = problems.into();
        context.document(&value)?;
    } else {
        let (id, path) = (&diagnosis.domain, diagnosis.path.display());
        context.line(format_args!("domain {id} at {path}"))?;
        for finding in &diagnosis.findings {
            let level = match finding.level {
                Level::Ok => "ok     ",
                Level::Note => "note   ",
                Level::Problem => "PROBLEM",
            };
            context.line(format_args!("{level}  {}", finding.what))?;
            if let Some(advice) = &finding.advice {
                context.line(format_args!("         -> {advice}"))?;
            }
        }
        match problems {
            0 => context.line(format_args!("all is well"))?,
            1 => context.line(format_args!("1 problem"))?,
            n => context.line(format_args!("{n} problems"))?,
        }
    }
    if problems == 0 { Ok(()) } else { Err(Failure::Told) }
}
