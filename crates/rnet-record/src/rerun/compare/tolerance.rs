//! What may differ.

/// What of a field may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A number by as much at most.
    Within(f64),
    /// All of it.
    Ignored,
}

/// Tolerances by field. What is not named has to be the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tolerances(Vec<(String, Tolerance)>);

impl Tolerances {
    /// Sets that of a field and of what is in it: `torques` is also `torques[3]`, `pose` also `pose.x`. The last one that
    /// fits holds. The empty path is all of a message.
    pub fn set(&mut self, field: &str, tolerance: Tolerance) {
        self.0.push((field.to_owned(), tolerance));
    }

    /// The fields that are named, and by which option of `rnet rerun`.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let named = self.0.iter().filter(|(field, _)| !field.is_empty());
        named.map(|(field, tolerance)| match tolerance {
            Tolerance::Ignored => (field.as_str(), "--ignore"),
            Tolerance::Within(_) => (field.as_str(), "--tolerance"),
        })
    }

    /// That of a field.
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
    fn the_last_that_fits_holds() {
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
