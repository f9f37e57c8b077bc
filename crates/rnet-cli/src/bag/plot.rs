//! `rnet bag plot`: fields over time, in the terminal, or as a picture.

use std::io::Write;

use rnet_record::plot::{MAX_SERIES, document, draw_svg, draw_text, read_field};
use rnet_record::tools::NewFile;

use super::args::{PlotArgs, SelectArgs};
use super::file;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn run(context: &mut Context, args: &PlotArgs) -> Outcome {
    let recording = file::open(context, &args.file)?;
    let mut lines = Vec::new();
    let mut broken = recording.info().is_damaged();
    for field in &args.fields {
        let times = SelectArgs { span: args.span, ..SelectArgs::default() };
        let select = file::select(&recording, &times)?;
        let mut tell = |problem: &str| context.note(problem);
        broken |= !read_field(&recording, select, field, &mut lines, &mut tell)?;
        if lines.len() > MAX_SERIES {
            let why = format!(
                "a plot can have at most {MAX_SERIES} lines; select elements, such as q[0]"
            );
            return Err(Failure::Usage(why));
        }
    }
    match &args.output {
        Some(path) => {
            let name = || args.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let title = args.title.clone().unwrap_or_else(name);
            let svg = draw_svg(path, &title, &lines, (args.width, args.height))?;
            let written = NewFile::create(path).and_then(|new| {
                new.file()?.write_all(svg.as_bytes())?;
                new.commit()
            });
            written.map_err(|error| {
                Failure::Failed(format!("cannot write {}: {error}", path.display()))
            })?;
            match context.json() {
                true => context.document(&document(Some(path), &lines))?,
                false => {
                    let points: usize = lines.iter().map(|line| line.points.len()).sum();
                    context.line(format_args!("{}: {points} points", path.display()))?;
                }
            }
        }
        None if context.json() => context.document(&document(None, &lines))?,
        None => {
            for line in &lines {
                let Some(text) = draw_text(line) else {
                    context.line(format_args!("{}: no numbers", line.label()))?;
                    continue;
                };
                context.heading(&line.label())?;
                text.iter().try_for_each(|line| context.line(format_args!("{line}")))?;
            }
        }
    }
    match broken {
        false => Ok(()),
        true => Err(Failure::Failed("unreadable data was omitted".to_owned())),
    }
}
