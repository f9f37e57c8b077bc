//! Patterns for names.

use std::fmt;

use crate::error::{Error, Result};
use crate::name::TOPIC_PARTS;

/// A pattern for topic or node names: `*` matches one part and `**` matches any number of parts.
///
/// ```
/// use rnet_core::NamePattern;
/// let pattern = NamePattern::new("topic pattern", "/camera/*/image", rnet_core::MAX_TOPIC_LEN_BYTES)?;
/// assert!(pattern.matches("/camera/left/image"));
/// assert!(!pattern.matches("/camera/image"));
/// # Ok::<(), rnet_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(Box<str>);

impl NamePattern {
    /// Checks a pattern of at most `max_len_bytes`, including its leading `/`, which can be omitted. Errors
    /// contain `what`.
    ///
    /// # Errors
    /// [`Error::BadName`] with the pattern and the reason.
    pub fn new(what: &'static str, pattern: &str, max_len_bytes: usize) -> Result<NamePattern> {
        // Replaces stars by a letter so that the rules for names apply.
        let as_name: Vec<&str> =
            pattern.split('/').map(|part| if is_star(part) { "_" } else { part }).collect();
        let refuse = |why: String| Error::BadName { what, name: pattern.to_owned(), why };
        if pattern.len() > max_len_bytes {
            let long =
                format!("it is {} bytes long; at most {max_len_bytes} are allowed", pattern.len());
            return Err(refuse(long));
        }
        match TOPIC_PARTS.normalise(what, &as_name.join("/"), max_len_bytes) {
            Ok(_) if pattern.starts_with('/') => Ok(NamePattern(pattern.into())),
            Ok(_) => Ok(NamePattern(format!("/{pattern}").into())),
            Err(Error::BadName { why, .. }) => {
                Err(refuse(format!("{why}; * and ** must replace whole parts")))
            }
            Err(error) => Err(error),
        }
    }

    /// A pattern for names of other systems, which may be invalid here: topics in recordings of other tools.
    ///
    /// # Errors
    /// [`Error::BadName`] if a `*` is only a part of a name part.
    pub fn foreign(what: &'static str, pattern: &str) -> Result<NamePattern> {
        if pattern.split('/').any(|part| part.contains('*') && !is_star(part)) {
            let why = "* and ** must replace whole parts".to_owned();
            return Err(Error::BadName { what, name: pattern.to_owned(), why });
        }
        Ok(NamePattern(format!("/{}", pattern.strip_prefix('/').unwrap_or(pattern)).into()))
    }

    /// The pattern, with its leading `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern matches a name, given with its leading `/`.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name): (Vec<&str>, Vec<&str>) =
            (self.0.split('/').skip(1).collect(), name.split('/').skip(1).collect());
        matches_parts(&pattern, &name)
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn is_star(part: &str) -> bool {
    matches!(part, "*" | "**")
}

/// Compares the parts. Only the last `**` ever has to match more, so no backtracking search is needed.
fn matches_parts(pattern: &[&str], name: &[&str]) -> bool {
    let (mut p, mut n) = (0, 0);
    // The last `**`, and how many parts of the name followed it.
    let mut last: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(&"**") => {
                last = Some((p, n));
                p += 1;
            }
            Some(part) if *part == "*" || *part == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((star, from)) = last else { return false };
                last = Some((star, from + 1));
                (p, n) = (star + 1, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|part| *part == "**")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Result<NamePattern> {
        NamePattern::new("topic pattern", text, 255)
    }

    #[test]
    fn pattern_matches_parts_and_subtrees() {
        for (text, name, fits) in [
            ("/arm", "/arm", true),
            ("arm", "/arm", true),
            ("/arm", "/arm/left", false),
            ("/**", "/arm/left", true),
            ("/*", "/arm", true),
            ("/*", "/arm/left", false),
            ("/arm/*", "/arm/left", true),
            ("/arm/**", "/arm", true),
            ("/**/left", "/arm/left", true),
            ("/**/left", "/left", true),
            ("/**/left", "/arm/right", false),
            ("/**/a/**/b", "/a/x/a/y/b", true),
            ("/**/a/**/b", "/a/x/a/y/c", false),
            (&"/**".repeat(60), "/a/b/c/d/e/f/g/h/i/j/k/l/m", true),
            (&format!("{}/z", "/**/a".repeat(50)), &"/a".repeat(90), false),
        ] {
            assert_eq!(pattern(text).unwrap().matches(name), fits, "{text} {name}");
        }
    }

    #[test]
    fn foreign_names_are_matched_verbatim() {
        let matches = |text: &str, name: &str| {
            NamePattern::foreign("topic pattern", text).unwrap().matches(name)
        };
        for name in ["/1st", "/größe", "/my topic", "/"] {
            assert!(matches(name, name) && matches(&name[1..], name), "{name}");
        }
        assert!(matches("/größe/*", "/größe/x y") && !matches("/größe/*", "/größe"));
        assert!(NamePattern::foreign("topic pattern", "/a*").is_err());
    }

    #[test]
    fn bad_pattern_is_rejected_with_its_text() {
        for text in ["", "/", "//", "/a*", "/***", "/a b", "/1", "/a/", "/a//*", &"/**".repeat(90)]
        {
            let error = pattern(text).unwrap_err();
            assert!(matches!(&error, Error::BadName { name, .. } if name == text), "{error}");
            assert!(error.to_string().contains("topic pattern"), "{error}");
        }
    }
}
