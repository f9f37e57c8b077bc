//! The error of both commands in a build without them.

use super::{DashboardArgs, FoxgloveArgs};
use crate::context::Context;
use crate::failure::{Outcome, not_built_in};

pub fn dashboard(_: &mut Context, _: DashboardArgs) -> Outcome {
    not_built_in("rnet dashboard")
}

pub fn foxglove(_: &mut Context, _: &FoxgloveArgs) -> Outcome {
    not_built_in("rnet foxglove")
}
