//! Key prefixes.

use rnet_core::{Result, key_name};

/// A set of keys, selected by a prefix.
#[derive(Clone, Debug)]
pub struct Prefix {
    /// The common start of the keys.
    bytes: String,
    /// Whether the rest must start a new part: `/arm` does not match `/army`.
    whole: bool,
}

impl Prefix {
    /// `/arm`: that key and those below; `/arm/`: those below; `/` or an empty text: all.
    pub fn new(prefix: &str) -> Result<Prefix> {
        if prefix.is_empty() || prefix == "/" {
            return Ok(Prefix { bytes: "/".to_owned(), whole: false });
        }
        let name = prefix.strip_suffix('/').unwrap_or(prefix);
        let mut bytes = key_name(name)?.into_owned();
        let whole = name.len() == prefix.len();
        if !whole {
            bytes.push('/');
        }
        Ok(Prefix { bytes, whole })
    }

    /// The prefix for queries of the region, which returns at least the matching keys.
    pub(crate) fn bytes(&self) -> &str {
        &self.bytes
    }

    /// The key that all matching keys are, or are below; `/` for all keys.
    pub(crate) fn root(&self) -> &str {
        match self.bytes.strip_suffix('/') {
            Some("") | None => &self.bytes,
            Some(root) => root,
        }
    }

    /// Whether a key matches.
    pub fn matches(&self, key: &str) -> bool {
        let Some(rest) = key.strip_prefix(self.bytes.as_str()) else { return false };
        !self.whole || rest.is_empty() || rest.starts_with('/')
    }
}

#[cfg(test)]
mod tests {
    use super::Prefix;

    #[test]
    fn prefix_matches_whole_names() {
        let keys = ["/a", "/arm", "/arm/x", "/arm/x/y", "/army", "/b/arm"];
        for (prefix, meant) in [
            ("", &keys[..]),
            ("/", &keys[..]),
            ("/arm", &["/arm", "/arm/x", "/arm/x/y"][..]),
            ("arm", &["/arm", "/arm/x", "/arm/x/y"][..]),
            ("/arm/", &["/arm/x", "/arm/x/y"][..]),
            ("/arm/x", &["/arm/x", "/arm/x/y"][..]),
            ("/none", &[][..]),
        ] {
            let prefix = Prefix::new(prefix).unwrap();
            let found: Vec<_> = keys.into_iter().filter(|key| prefix.matches(key)).collect();
            assert_eq!(found, meant, "{prefix:?}");
            assert!(keys.iter().all(|k| !prefix.matches(k) || k.starts_with(prefix.bytes())));
        }
        for bad in ["//", "/a//", "/a b", "!type"] {
            assert!(Prefix::new(bad).is_err(), "{bad}");
        }
        assert!(!Prefix::new("").unwrap().matches("!type/1"));
    }
}
