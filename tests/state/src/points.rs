//! The fail points of the state.

use rnet_survival::points;

/// The names of the fail points in the code of the state.
pub fn of_state() -> Vec<String> {
    points::all().into_iter().filter(|name| name.starts_with("state.")).collect()
}
