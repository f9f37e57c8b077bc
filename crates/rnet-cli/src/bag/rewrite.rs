//! `rnet bag filter`, `merge` and `split`: write recordings from recordings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rnet_record::read::{ReadError, Recording};
use rnet_record::tools::{self, SplitAt, ToolError, WrittenFile, filter, merge, split};
use serde_json::json;

use super::args::{FilterArgs, MergeArgs, SplitArgs};
use super::file;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use crate::table;

pub fn write_filtered(context: &mut Context, args: &FilterArgs) -> Outcome {
    let recording = file::open(context, &args.file)?;
    let mut select = file::select(&recording, &args.select)?;
    // The recorder's own records belong to the recorded messages.
    select.with_reserved = true;
    select.with_latched = true;
    let remap = tools::remap(&recording, &args.remap)?;
    write_files(context, &[&recording], |tell| {
        Ok(vec![filter(
            &recording,
            &args.output,
            select.clone(),
            &remap,
            tell,
            signal::stop_requested,
        )?])
    })
}

pub fn write_merged(context: &mut Context, args: &MergeArgs) -> Outcome {
    let open = |path: &PathBuf| file::open(context, path);
    let recordings: Vec<Recording> = args.files.iter().map(open).collect::<Outcome<_>>()?;
    let all: Vec<&Recording> = recordings.iter().collect();
    write_files(context, &all, |tell| {
        Ok(vec![merge(&recordings, &args.output, tell, signal::stop_requested)?])
    })
}

pub fn write_split(context: &mut Context, args: &SplitArgs) -> Outcome {
    let recording = file::open(context, &args.file)?;
    let cut = match (args.time, args.size) {
        (Some(time), _) if time > Duration::ZERO => SplitAt::Time(time),
        (None, Some(bytes)) if bytes > 0 => SplitAt::Bytes(bytes),
        _ => {
            return Err(Failure::Usage(
                "give --time S or --size BYTES, above 0, to set where the file is split".into(),
            ));
        }
    };
    write_files(context, &[&recording], |tell| {
        split(&recording, &args.output, cut, tell, signal::stop_requested)
    })
}

/// Writes the files; reports what could not be read, and what was written.
fn write_files(
    context: &mut Context,
    from: &[&Recording],
    run: impl FnOnce(&mut dyn FnMut(&Path, &ReadError)) -> Result<Vec<WrittenFile>, ToolError>,
) -> Outcome {
    let mut damaged = from.iter().any(|recording| recording.info().is_damaged());
    let written = run(&mut |path, problem| {
        damaged = true;
        file::report_problem(context, path, problem);
    });
    let written = written?;
    if context.json() {
        context.document(&json!({ "files": written }))?;
    } else {
        for WrittenFile { path, messages, len_bytes, duplicates } in &written {
            let len = table::bytes(*len_bytes as f64);
            let duplicates = match duplicates {
                0 => String::new(),
                n => format!("; {n} duplicates were removed"),
            };
            context
                .line(format_args!("{}: {messages} messages, {len}{duplicates}", path.display()))?;
        }
    }
    match damaged {
        false => Ok(()),
        true => Err(Failure::Failed("unreadable data was omitted".to_owned())),
    }
}
