//! `rnet graph`: who publishes to whom, as a text, a drawing, or the source of one.

pub mod args;
mod dot;
mod mermaid;
mod net;
mod svg;
mod text;

use std::path::Path;
use std::time::Instant;

use rnet::inspect::Domain;
use serde_json::json;

use crate::context::Context;
use crate::domain;
use crate::failure::{Failure, Outcome};
use crate::signal;
use crate::topic::look;
use args::{Format, GraphArgs};
use net::Net;
use rnet_monitor::link::own_host;

pub fn run(context: &mut Context, args: &GraphArgs) -> Outcome {
    let format = format_of(context, args)?;
    let (domain, snapshot) = look(context)?;
    let own = own_host(&snapshot);
    if args.over.is_zero() {
        let net = Net::new(&snapshot, &own, None, args.all);
        return print(context, args, format, &domain, &net);
    }
    let began = Instant::now();
    signal::sleep(args.over)?;
    let elapsed_s = began.elapsed().as_secs_f64();
    let (domain, later) = look(context)?;
    let net = Net::new(&later, &own, Some((&snapshot, elapsed_s)), args.all);
    print(context, args, format, &domain, &net)
}

/// The format that is asked for, by name or by the ending of the file.
fn format_of(context: &Context, args: &GraphArgs) -> Outcome<Format> {
    let by_ending = || {
        let ending = args.output.as_deref()?.extension()?.to_str()?;
        Some(match ending {
            "dot" | "gv" => Format::Dot,
            "mmd" | "mermaid" => Format::Mermaid,
            "svg" => Format::Svg,
            _ => Format::Text,
        })
    };
    if context.json() && args.format.is_some() {
        return Err(Failure::Usage("--json and --format exclude each other".to_owned()));
    }
    Ok(args.format.or_else(by_ending).unwrap_or(Format::Text))
}

fn print(
    context: &mut Context,
    args: &GraphArgs,
    format: Format,
    domain: &Domain,
    net: &Net<'_>,
) -> Outcome {
    if net.is_empty() {
        domain::tell_none(context, "topics")?;
    }
    let drawn = match format {
        _ if context.json() => {
            let document = json!({"domain": domain.id(), "hosts": net.hosts, "topics": net.topics});
            format!("{document:#}\n")
        }
        Format::Text => text::draw(net),
        Format::Dot => dot::draw(net),
        Format::Mermaid => mermaid::draw(net),
        Format::Svg => svg::draw(net)?,
    };
    match &args.output {
        Some(path) => write(path, &drawn),
        None => context.line(format_args!("{}", drawn.trim_end_matches('\n'))),
    }
}

fn write(path: &Path, drawn: &str) -> Outcome {
    std::fs::write(path, drawn)
        .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))
}
