//! `rnet doctor --realtime`: prints what `rnet::inspect::realtime` found.

use rnet::inspect::realtime::{Level, examine};

use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn run(context: &mut Context) -> Outcome {
    let examination = examine(context.global().dir.clone());
    let problems = examination.at(Level::Problem).count();
    let advice = examination.at(Level::Advice).count();
    if context.json() {
        let mut value = serde_json::to_value(&examination).map_err(std::io::Error::from)?;
        value["problems"] = problems.into();
        value["advice"] = advice.into();
        context.document(&value)?;
    } else {
        for finding in &examination.findings {
            let level = match finding.level {
                Level::Ok => "ok     ",
                Level::Unknown => "unknown",
                Level::Advice => "advice ",
                Level::Problem => "PROBLEM",
            };
            let (check, what) = (finding.check, &finding.what);
            context.line(format_args!("{level}  {check}: {what}  [{}]", finding.read_from))?;
            context.line(format_args!("         {}", finding.why))?;
            if let Some(advice) = &finding.advice {
                context.line(format_args!("         -> {advice}"))?;
            }
        }
        let problems = match problems {
            0 => "no problem".to_owned(),
            1 => "1 problem".to_owned(),
            n => format!("{n} problems"),
        };
        let advice = match advice {
            0 => "nothing to advise".to_owned(),
            1 => "1 piece of advice".to_owned(),
            n => format!("{n} pieces of advice"),
        };
        context.line(format_args!("{problems}, {advice}"))?;
    }
    if problems == 0 { Ok(()) } else { Err(Failure::Told) }
}
