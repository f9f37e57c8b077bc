//! Finds similar names, for suggestions.

use strsim::osa_distance;

/// Maximum number of edits of a typing error.
const MAX_EDITS: usize = 2;

/// Why two different names are probably meant to be the same; `None` if they are not.
///
/// Names that differ only in digits (`/leg1`, `/leg2`) are distinct.
pub fn similarity_reason(a: &str, b: &str) -> Option<&'static str> {
    if a == b {
        return None;
    }
    if a.eq_ignore_ascii_case(b) {
        return Some("the names differ only in case");
    }
    let in_front = |long: &str, short: &str| {
        let front = long.strip_suffix(short).unwrap_or_default();
        !short.is_empty()
            && (front.ends_with(['/', '.']) || !front.is_empty() && short.starts_with('/'))
    };
    if in_front(a, b) || in_front(b, a) {
        return Some("one name has an additional namespace");
    }
    if without_digits(a) == without_digits(b) {
        return None;
    }
    let short = a.len().min(b.len());
    let edits = osa_distance(a, b);
    (edits <= MAX_EDITS && edits * 3 <= short).then_some("the names differ by one or two letters")
}

/// The name among `names` that is most similar to the missing one.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names.filter(|n| similarity_reason(name, n).is_some()).min_by_key(|n| osa_distance(name, n))
}

/// `did you mean /scan?`, if a name is similar.
pub fn did_you_mean<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(name, names).map(|near| format!("did you mean {near}?"))
}

fn without_digits(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_similar_and_numbered_siblings_are_not() {
        for (a, b) in [
            ("/scan", "/Scan"),
            ("/scan", "/robot/scan"),
            ("/joint_states", "/joint_state"),
            ("/cmd_vel", "/cmdvel"),
            ("LaserScan", "foxglove.LaserScan"),
            ("gain", "pid/gain"),
            // Two swapped letters are one edit.
            ("/scan", "/scna"),
        ] {
            assert!(
                similarity_reason(a, b).is_some() && similarity_reason(b, a).is_some(),
                "{a} {b}"
            );
        }
        for (a, b) in [
            ("/leg1", "/leg2"),
            ("/leg1", "/leg10"),
            ("/a", "/b"),
            ("/t", "/t"),
            ("/imu", "/odom"),
            ("can", "foxglove.LaserScan"),
            ("", "/scan"),
        ] {
            assert!(similarity_reason(a, b).is_none(), "{a} {b}");
        }
    }

    #[test]
    fn finds_nearest_name() {
        let names = ["/contoller", "/controler2", "/lidar"];
        assert_eq!(nearest("/controller", names.into_iter()), Some("/contoller"));
        assert_eq!(nearest("/camera", names.into_iter()), None);
    }
}
