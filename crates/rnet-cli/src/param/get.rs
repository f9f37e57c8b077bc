//! `rnet param get`.

use super::args::GetArgs;
use super::{find, text};
use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn run(context: &mut Context, GetArgs { of: args, there }: &GetArgs) -> Outcome {
    let domain = context.domain()?.id().to_owned();
    let all = find::look_at(context, there.host.as_deref(), &args.me)?;
    let (node, name, info) = find::one(all, &domain, &args.node, args.name.as_deref())?;
    let Some(value) = info.value() else {
        return Err(Failure::Failed(format!("parameter {name} of {node} has no value")));
    };
    match context.json() {
        true => context.document(&super::document(&node, &name, &info)),
        false => context.line(format_args!("{}", text::line(value))),
    }
}
