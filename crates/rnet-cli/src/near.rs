//! Names that were probably meant to be the same.

/// Most letters that a slip of the finger changes.
const MAX_EDITS: usize = 2;

/// Why two different names look as if the same was meant; `None` if they do not.
///
/// Names that differ only in digits (`/leg1`, `/leg2`) are meant to be different.
pub fn why_near(a: &str, b: &str) -> Option<&'static str> {
    if a == b {
        return None;
    }
    if a.eq_ignore_ascii_case(b) {
        return Some("they differ only in upper and lower case");
    }
    // Names begin with '/', so a suffix is a whole number of parts.
    if a.ends_with(b) || b.ends_with(a) {
        return Some("one of them has a namespace in front");
    }
    if without_digits(a) == without_digits(b) {
        return None;
    }
    let short = a.len().min(b.len());
    let edits = edit_distance(a.as_bytes(), b.as_bytes());
    (edits <= MAX_EDITS && edits * 3 <= short).then_some("they differ by a letter or two")
}

/// The name among `names` that comes nearest to the one that is missing.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .filter(|n| why_near(name, n).is_some())
        .min_by_key(|n| edit_distance(name.as_bytes(), n.as_bytes()))
}

fn without_digits(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Levenshtein's distance, with one row of the table (Wagner and Fischer, 1974).
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != y)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_numbered_siblings_are_not() {
        for (a, b) in [
            ("/scan", "/Scan"),
            ("/scan", "/robot/scan"),
            ("/joint_states", "/joint_state"),
            ("/cmd_vel", "/cmdvel"),
        ] {
            assert!(why_near(a, b).is_some() && why_near(b, a).is_some(), "{a} {b}");
        }
        for (a, b) in
            [("/leg1", "/leg2"), ("/leg1", "/leg10"), ("/a", "/b"), ("/t", "/t"), ("/imu", "/odom")]
        {
            assert!(why_near(a, b).is_none(), "{a} {b}");
        }
    }

    #[test]
    fn distances() {
        assert_eq!(edit_distance(b"kitten", b"sitting"), 3);
        assert_eq!(edit_distance(b"", b"abc"), 3);
        assert_eq!(edit_distance(b"abc", b"abc"), 0);
    }

    #[test]
    fn the_nearest_wins() {
        let names = ["/contoller", "/controler2", "/lidar"];
        assert_eq!(nearest("/controller", names.into_iter()), Some("/contoller"));
        assert_eq!(nearest("/camera", names.into_iter()), None);
    }
}
