//! `rnet doctor`: explains why a subscriber does not receive a publisher.

use rnet_monitor::doctor::{self, Question, realtime};
use rnet_monitor::{Findings, Level};

use crate::args::DoctorArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn run(context: &mut Context, args: DoctorArgs) -> Outcome {
    if args.realtime {
        return print_realtime(context);
    }
    let location = context.location()?;
    let DoctorArgs { topic, host, to, from, .. } = &args;
    let question = Question {
        topic: topic.as_ref().map(rnet::TopicName::as_str),
        host: host.as_deref(),
        nodes: to.as_deref().zip(from.as_deref()),
    };
    let Findings(findings) = doctor::diagnose(&location, &question);
    let problems = findings.iter().filter(|f| f.level == Level::Problem).count();
    let (id, path) = (location.id(), location.path());
    if context.json() {
        context.document(&serde_json::json!({
            "domain": id,
            "path": path,
            "findings": findings,
            "problems": problems,
        }))?;
    } else {
        context.heading(&format!("domain {id} at {}", path.display()))?;
        context.findings(&findings)?;
        match problems {
            0 => context.line(format_args!("all is well"))?,
            1 => context.line(format_args!("1 problem"))?,
            n => context.line(format_args!("{n} problems"))?,
        }
    }
    if problems == 0 { Ok(()) } else { Err(Failure::AlreadyReported) }
}

fn print_realtime(context: &mut Context) -> Outcome {
    let findings = realtime::examine(&context.domains_dir());
    let at = |level| findings.iter().filter(|f| f.level == level).count();
    let (problems, advice) = (at(realtime::Level::Problem), at(realtime::Level::Advice));
    if context.json() {
        context.document(&serde_json::json!({
            "findings": findings,
            "problems": problems,
            "advice": advice,
        }))?;
    } else {
        for finding in &findings {
            let level = match finding.level {
                realtime::Level::Ok => "ok     ",
                realtime::Level::Unknown => "unknown",
                realtime::Level::Advice => "advice ",
                realtime::Level::Problem => "PROBLEM",
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
            0 => "no advice".to_owned(),
            1 => "1 piece of advice".to_owned(),
            n => format!("{n} pieces of advice"),
        };
        context.line(format_args!("{problems}, {advice}"))?;
    }
    if problems == 0 { Ok(()) } else { Err(Failure::AlreadyReported) }
}
