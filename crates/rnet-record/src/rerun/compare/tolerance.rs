//! Tolerances of fields.

/// Permitted difference of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A number may differ by at most this.
    Within(f64),
    /// Any difference is permitted.
    Ignored,
}

/// Tolerances by field. Other fields have to be equal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tolerances(Vec<(String, Tolerance)>);

impl Tolerances {
    /// Sets the tolerance of a field and of the fields in it: `torques` includes `torques[3]`, `pose`
    /// includes `pose.x`. The last matching one applies. The empty path is the whole message.
    pub fn set(&mut self, field: &str, tolerance: Tolerance) {
        self.0.push((field.to_owned(), tolerance));
    }

    /// The named fields, each with its option of `rnet rerun`.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let named = self.0.iter().filter(|(field, _)| !field.is_empty());
        named.map(|(field, tolerance)| match tolerance {
            Tolerance::Ignored => (field.as_str(), "--ignore"),
            Tolerance::Within(_) => (field.as_str(), "--tolerance"),
        })
    }

    /// The tolerance of a field.
    pub fn of(&self, path: &str) -> Tolerance {
        let fits = |field: &str| {
            path.strip_prefix(field).is_some_and(|rest| {
                field.is_empty() || rest.is_empty() || rest.starts_with(['.', '['])
            })
        };
        let found = self.0.iter().rev().find(|(field, _)| fits(field));
        found.map_or(Tolerance::Within(0.0), |(_, tolerance)| *tolerance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_matching_tolerance_applies() {
        let mut tolerances = Tolerances::default();
        assert_eq!(tolerances.of("x"), Tolerance::Within(0.0));
        tolerances.set("", Tolerance::Within(0.5));
        tolerances.set("pose", Tolerance::Within(0.1));
        tolerances.set("pose.stamp", Tolerance::Ignored);
        for (path, tolerance) in [
            ("x", Tolerance::Within(0.5)),
            ("pose.x", Tolerance::Within(0.1)),
            ("pose[3]", Tolerance::Within(0.1)),
            ("pose", Tolerance::Within(0.1)),
            ("poses", Tolerance::Within(0.5)),
            ("pose.stamp.ns", Tolerance::Ignored),
        ] {
            assert_eq!(tolerances.of(path), tolerance, "{path}");
        }
    }
}
