//! Full names of messages, enums and their parts.

/// The full name of `name` inside `scope`; the empty scope is the empty package.
pub(crate) fn join(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}

/// In Python and Rust, this package also contains the built-in messages of other packages.
const OUR_PACKAGE: &str = "rnet.msgs.";

/// The full names that match a name: the name itself, otherwise the names with this ending (`LaserScan`,
/// `foxglove/LaserScan`, `rnet.msgs.LaserScan`) or with its ending after the ROS package
/// (`sensor_msgs/msg/LaserScan`). None, one, or several if the name is ambiguous.
pub fn find_types<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
    let dotted = name.trim_start_matches('.').replace('/', ".");
    if let Some(exact) = known.clone().find(|full| *full == dotted) {
        return vec![exact];
    }
    let of_ros = name.rsplit_once('/').map(|(_, last)| last);
    for word in [Some(&*dotted), dotted.strip_prefix(OUR_PACKAGE), of_ros].into_iter().flatten() {
        let ends = |full: &&'a str| {
            full.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let mut matches: Vec<&str> = known.clone().filter(ends).collect();
        matches.dedup();
        // The short name refers to a nested type only if no top-level type matches.
        let outer: Vec<&str> =
            matches.iter().copied().filter(|m| !is_nested(m, known.clone())).collect();
        match (outer.is_empty(), matches.is_empty()) {
            (false, _) => return outer,
            (true, false) => return matches,
            (true, true) => {}
        }
    }
    Vec::new()
}

/// Whether a message is declared inside another one.
pub fn is_nested<'a>(name: &str, mut known: impl Iterator<Item = &'a str>) -> bool {
    name.rsplit_once('.').is_some_and(|(outer, _)| known.any(|other| other == outer))
}
