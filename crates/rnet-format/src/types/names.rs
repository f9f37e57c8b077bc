//! Names of types as people write them.

use rnet::schema::find_types;

use crate::error::{Failure, Outcome};
use crate::suggestions::nearest;

/// The full name for a name: the name itself, or the only type whose name ends with it (`LaserScan`,
/// `foxglove/LaserScan`, `sensor_msgs/msg/LaserScan`).
///
/// # Errors
/// `none`, with similar names; or that several types match.
pub fn find<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
    none: &str,
) -> Outcome<&'a str> {
    match find_types(name, known.clone()).as_slice() {
        [one] => Ok(one),
        [] => Err(Failure::Failed(format!("{none} {name}; {}", hint(name, known)))),
        many => Err(Failure::Failed(format!(
            "{name} matches {} types: {}; give one of the full names",
            many.len(),
            many.join(", ")
        ))),
    }
}

/// Suggestions for a name.
fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let name = &name.trim_start_matches('.').replace('/', ".");
    if let Some(near) = nearest(name, known.clone()) {
        return format!("did you mean {near}?");
    }
    let short = |full: &'a str| full.rsplit('.').next().unwrap_or(full);
    let wanted = name.rsplit('.').next().unwrap_or(name);
    let same = known.clone().filter(|full| short(full).eq_ignore_ascii_case(wanted));
    let near = nearest(wanted, known.clone().map(short));
    let near = known.clone().filter(|full| Some(short(full)) == near);
    let mut names: Vec<&str> = same.chain(near).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return match known.count() {
            0 => "no types are known".to_owned(),
            n => format!("see rnet type list ({n} types)"),
        };
    }
    format!("did you mean {}?", names.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 7] = [
        "foxglove.Event",
        "foxglove.LaserScan",
        "foxglove.LinePrimitive",
        "foxglove.LinePrimitive.Type",
        "my.Type",
        "rnet.msgs.Event",
        "rnet.msgs.Imu",
    ];

    fn found(name: &str) -> Result<&'static str, String> {
        find(name, KNOWN.into_iter(), "no such type").map_err(|e| e.to_string())
    }

    #[test]
    fn accepts_full_short_and_ros_names() {
        for (written, meant) in [
            ("foxglove.LaserScan", "foxglove.LaserScan"),
            (".foxglove.LaserScan", "foxglove.LaserScan"),
            ("foxglove/LaserScan", "foxglove.LaserScan"),
            ("LaserScan", "foxglove.LaserScan"),
            ("sensor_msgs/msg/LaserScan", "foxglove.LaserScan"),
            ("sensor_msgs/LaserScan", "foxglove.LaserScan"),
            ("rnet.msgs.LaserScan", "foxglove.LaserScan"),
            ("rnet.msgs.foxglove.Event", "foxglove.Event"),
            ("msgs.Event", "rnet.msgs.Event"),
            ("LinePrimitive.Type", "foxglove.LinePrimitive.Type"),
            ("Type", "my.Type"),
        ] {
            assert_eq!(found(written), Ok(meant), "{written}");
        }
    }

    #[test]
    fn ambiguous_names_are_listed() {
        let error = found("Event").unwrap_err();
        assert!(error.contains("2 types: foxglove.Event, rnet.msgs.Event"), "{error}");
    }

    #[test]
    fn typing_errors_get_suggestions() {
        for (written, meant) in [
            ("foxglove.LaserScn", "did you mean foxglove.LaserScan?"),
            ("LaserScn", "did you mean foxglove.LaserScan?"),
            ("laserscan", "did you mean foxglove.LaserScan?"),
            ("sensor_msgs.LaserScan", "did you mean foxglove.LaserScan?"),
            ("Evemt", "did you mean foxglove.Event or rnet.msgs.Event?"),
            ("Lidar", "see rnet type list"),
        ] {
            let error = found(written).unwrap_err();
            assert!(error.starts_with("no such type") && error.contains(meant), "{error}");
        }
    }
}
