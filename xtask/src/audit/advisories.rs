//! An advisory of RustSec: TOML in a Markdown file.

use semver::{Version, VersionReq};
use toml::Table;

pub struct Advisory {
    pub id: String,
    /// The versions without the fault.
    safe: Vec<VersionReq>,
    is_withdrawn: bool,
}

impl Advisory {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (_, rest) = text.split_once("```toml\n").ok_or("no block ```toml")?;
        let (block, _) = rest.split_once("\n```").ok_or("the block ```toml does not end")?;
        let table: Table = block.parse().map_err(|error| format!("{error}"))?;
        let field = |section: &str, name: &str| table.get(section)?.get(name);
        let id = field("advisory", "id").and_then(|id| id.as_str()).ok_or("no id")?;
        let mut safe = Vec::new();
        for name in ["patched", "unaffected"] {
            let ranges = field("versions", name).and_then(|list| list.as_array());
            for range in ranges.into_iter().flatten() {
                let range = range.as_str().ok_or("a range of versions is not text")?;
                safe.push(range.parse().map_err(|error| format!("{range}: {error}"))?);
            }
        }
        let is_withdrawn = field("advisory", "withdrawn").is_some();
        Ok(Self { id: id.to_owned(), safe, is_withdrawn })
    }

    /// Whether this version has the fault. Restrictions to a platform or a function count as none.
    pub fn applies_to(&self, version: &str) -> Result<bool, String> {
        let version = Version::parse(version).map_err(|error| format!("{version}: {error}"))?;
        Ok(!self.is_withdrawn && !self.safe.iter().any(|range| range.matches(&version)))
    }
}

#[cfg(test)]
mod tests {
    use super::Advisory;

    fn applies(block: &str, version: &str) -> bool {
        let text = format!("```toml\n[advisory]\nid = \"A\"\n{block}\n```\n\n# Title\n");
        Advisory::parse(&text).unwrap().applies_to(version).unwrap()
    }

    #[test]
    fn only_versions_without_a_fix_are_affected() {
        let block = "[versions]\npatched = [\n  \">= 0.11.6, < 0.12.0\",\n  \">= 0.12.1\",\n]\nunaffected = [\"< 0.2\"]";
        for version in ["0.2.0", "0.10.0", "0.11.5", "0.12.0", "0.12.1-rc.1"] {
            assert!(applies(block, version), "{version}");
        }
        for version in ["0.1.9", "0.11.6", "0.12.1", "0.14.0", "1.0.0+lz4-1.10"] {
            assert!(!applies(block, version), "{version}");
        }
    }

    #[test]
    fn an_advisory_without_a_fix_applies_until_it_is_withdrawn() {
        assert!(applies("[versions]\npatched = []", "9.0.0"));
        assert!(!applies("withdrawn = \"2025-01-01\"\n[versions]\npatched = []", "9.0.0"));
    }

    #[test]
    fn an_unreadable_advisory_is_an_error() {
        for text in ["", "```toml\nid = 1\n```", "```toml\n[advisory\n```", "```toml\n[advisory]"] {
            assert!(Advisory::parse(text).is_err(), "{text}");
        }
        let text = "```toml\n[advisory]\nid = \"A\"\n[versions]\npatched = [\"new\"]\n```";
        assert!(Advisory::parse(text).is_err());
    }
}
