//! What both commands say in a build without them.

use super::{DashboardArgs, FoxgloveArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn dashboard(_: &mut Context, _: DashboardArgs) -> Outcome {
    refuse("rnet dashboard")
}

pub fn foxglove(_: &mut Context, _: &FoxgloveArgs) -> Outcome {
    refuse("rnet foxglove")
}

fn refuse(command: &str) -> Outcome {
    Err(Failure::Failed(format!(
        "{command} is not in this build of rnet, which `make demo` made; `make build` makes a whole one, \
         target/release/rnet"
    )))
}
