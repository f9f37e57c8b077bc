//! `rnet keys token`.

use std::time::{Duration, SystemTime};

use rnet_keys::Role;
use serde_json::json;

use super::args::{RoleArg, TokenArgs};
use super::common::{failed, keys_path};
use crate::context::Context;
use crate::failure::{Failure, Outcome};

const DAY: Duration = Duration::from_secs(24 * 3600);

pub fn run(context: &mut Context, args: &TokenArgs) -> Outcome {
    let path = keys_path(args.keys.as_deref())?;
    let (name, file) = (&args.name, path.display());
    let Some(role) = args.role else {
        rnet_keys::remove_token(&path, name).map_err(failed)?;
        if context.json() {
            return context.document(&json!({"removed": name, "file": path}));
        }
        return context.line(format_args!("removed token {name} from {file}"));
    };
    if context.json() {
        let why = "JSON contains no secret, and the token is printed only now; leave out --json";
        return Err(Failure::Usage(why.to_owned()));
    }
    let role = match role {
        RoleArg::Look => Role::Look,
        RoleArg::Operate => Role::Operate,
        RoleArg::Drive => Role::Drive,
    };
    let expires = args.days.map(|days| SystemTime::now() + DAY * days);
    let secret = rnet_keys::add_token(&path, name, role, expires).map_err(failed)?;
    let until = expires.map_or_else(
        || "without expiry".to_owned(),
        |at| format!("until {}", rnet_keys::utc_date(at)),
    );
    context.eprintln(format_args!(
        "added token {name} ({role}, {until}) to {file}; this is its only copy:"
    ));
    context.line(format_args!("{secret}"))
}
