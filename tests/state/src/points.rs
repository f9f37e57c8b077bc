//! The fail points of the state.

use rnet_survival::points;

/// The names of those on the ways of the state.
pub fn of_state() -> Vec<String> {
    points::all().into_iter().filter(|name| name.starts_with("state.")).collect()
}
