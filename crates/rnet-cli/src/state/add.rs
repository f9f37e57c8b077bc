//! `rnet state add`.

use rnet::state::Value;
use serde_json::json;

use super::args::AddArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::join;
use crate::value::{text, to_json};

pub fn run(context: &mut Context, args: &AddArgs) -> Outcome {
    let session = join(context, "state", &args.me)?;
    let state = &session.state;
    let whole: Option<i64> = args.by.parse().ok();
    let is_float = matches!(state.get(&args.key)?, Some(Value::Float(_)));
    let sum = match whole {
        Some(by) if !is_float => Value::Int(state.add(&args.key, by)?),
        _ => {
            let by: f64 = args.by.parse().map_err(|_| {
                Failure::Usage(format!("{:?} is no number, and cannot be added", args.by))
            })?;
            Value::Float(state.add_float(&args.key, by)?)
        }
    };
    if context.json() {
        let (type_name, shown) = (sum.type_name(), to_json(&sum));
        return context.document(&json!({"key": args.key, "type": type_name, "value": shown}));
    }
    context.line(format_args!("{}", text::line(&sum, usize::MAX)))
}
