//! The error of both commands in a build without them.

use super::{DashboardArgs, FoxgloveArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn dashboard(_: &mut Context, _: DashboardArgs) -> Outcome {
    not_built_in("rnet dashboard")
}

pub fn foxglove(_: &mut Context, _: &FoxgloveArgs) -> Outcome {
    not_built_in("rnet foxglove")
}

fn not_built_in(command: &str) -> Outcome {
    Err(Failure::Failed(format!(
        "this build of rnet, made by `make demo`, does not include {command}; `make build` makes a complete \
         one, target/release/rnet"
    )))
}
