//! Keys: the path of a key through the trie, and the keys that a prefix matches.
//!
//! The first component of a name selects the root slot, the second one the next two levels, the whole name
//! the rest: a lookup below `/arm/joint1/` does not visit other keys.

use super::layout::{Geometry, MAX_LEVEL};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Longest key, in bytes.
pub const MAX_KEY_LEN_BYTES: usize = 255;
/// Number of words for the longest key.
pub const KEY_WORDS: usize = 32;

/// A key with its path.
#[derive(Clone, Copy, Debug)]
pub struct Key<'k> {
    bytes: &'k [u8],
    trie_path: TriePath,
}

/// The path of a key, without the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriePath {
    root: u32,
    second: u8,
    seed: u64,
    hash: u64,
}

/// A key copied from a leaf.
#[derive(Clone, Debug)]
pub(crate) struct KeyBuf {
    bytes: [u8; KEY_WORDS * 8],
    len: usize,
    trie_path: TriePath,
}

impl KeyBuf {
    pub(crate) fn new(
        bytes: [u8; KEY_WORDS * 8],
        len: usize,
        seed: u64,
        geometry: &Geometry,
    ) -> Option<KeyBuf> {
        let trie_path = Key::new(bytes.get(..len)?, seed, geometry)?.trie_path;
        Some(KeyBuf { bytes, len, trie_path })
    }

    pub(crate) fn key(&self) -> Key<'_> {
        Key { bytes: &self.bytes[..self.len], trie_path: self.trie_path }
    }
}

/// Splits a name into its first component, its second, and whether each is followed by a `/`.
fn components(name: &[u8]) -> (&[u8], bool, &[u8], bool) {
    let name = name.strip_prefix(b"/").unwrap_or(name);
    let cut = |s: &[u8]| s.iter().position(|b| *b == b'/').unwrap_or(s.len());
    let first = cut(name);
    let rest = &name[first..];
    let (first, ended) = (&name[..first], !rest.is_empty());
    let rest = rest.strip_prefix(b"/").unwrap_or(rest);
    let second = cut(rest);
    (first, ended, &rest[..second], second < rest.len())
}

fn root_of(first: &[u8], seed: u64, geometry: &Geometry) -> u32 {
    (xxh3_64_with_seed(first, seed) & ((1 << geometry.root_bits) - 1)) as u32
}

fn second_of(second: &[u8], seed: u64) -> u8 {
    xxh3_64_with_seed(second, seed ^ 1) as u8
}

impl<'k> Key<'k> {
    /// The path of a key; `None` if it is empty or too long.
    #[inline]
    pub fn new(key: &'k [u8], seed: u64, geometry: &Geometry) -> Option<Key<'k>> {
        if key.is_empty() || key.len() > MAX_KEY_LEN_BYTES {
            return None;
        }
        let (first, _, second, _) = components(key);
        let trie_path = TriePath {
            root: root_of(first, seed, geometry),
            second: second_of(second, seed),
            seed,
            hash: xxh3_64_with_seed(key, seed),
        };
        Some(Key { bytes: key, trie_path })
    }

    /// A key whose path is already known.
    #[inline]
    pub fn with(key: &'k [u8], trie_path: TriePath) -> Key<'k> {
        Key { bytes: key, trie_path }
    }

    /// The path of the key.
    pub fn trie_path(&self) -> TriePath {
        self.trie_path
    }

    /// The key's bytes.
    #[inline]
    pub fn bytes(&self) -> &'k [u8] {
        self.bytes
    }

    /// Words of the key in a leaf.
    #[inline]
    pub fn words(&self) -> usize {
        self.bytes.len().div_ceil(8)
    }

    /// Its slot in the root.
    #[inline]
    pub fn root(&self) -> u32 {
        self.trie_path.root
    }

    /// Its slot in a node of this level.
    #[inline]
    pub fn nibble(&self, level: usize) -> usize {
        let trie_path = &self.trie_path;
        let nibble = match level {
            0 => u64::from(trie_path.second >> 4),
            1 => u64::from(trie_path.second),
            2..18 => trie_path.hash >> (4 * (level - 2)),
            _ => {
                // Two keys with equal hashes, which is extremely rare.
                let round = (level - 2) / 16;
                let hash = xxh3_64_with_seed(self.bytes, trie_path.seed.wrapping_add(round as u64));
                hash >> (4 * ((level - 2) % 16))
            }
        };
        debug_assert!(level < MAX_LEVEL);
        (nibble & 15) as usize
    }
}

/// A key prefix: `/arm` matches the key of that name and all below it, `/arm/` only those below it, the empty
/// prefix and `/` all keys that begin with `/`.
#[derive(Clone, Debug)]
pub struct Prefix {
    text: Vec<u8>,
    root: Option<u32>,
    second: Option<u8>,
}

impl Prefix {
    /// Parses a prefix.
    pub fn new(prefix: &[u8], seed: u64, geometry: &Geometry) -> Prefix {
        let text = if prefix.is_empty() { b"/".to_vec() } else { prefix.to_vec() };
        if text == b"/" {
            return Prefix { text, root: None, second: None };
        }
        let (first, _, second, second_ended) = components(&text);
        // "/arm" selects the component `arm` as "/arm/" does. "/arm/jo" has a complete second component,
        // because prefixes consist of whole names.
        let has_second = second_ended || !second.is_empty();
        Prefix {
            root: Some(root_of(first, seed, geometry)),
            second: has_second.then(|| second_of(second, seed)),
            text,
        }
    }

    /// Whether it matches this key.
    pub fn matches(&self, key: &[u8]) -> bool {
        let Some(rest) = key.strip_prefix(self.text.as_slice()) else { return false };
        rest.is_empty() || rest[0] == b'/' || self.text.ends_with(b"/")
    }

    /// The root slot that contains all matching keys, if it is unique.
    pub fn root(&self) -> Option<u32> {
        self.root
    }

    /// The slot in a node of this level that contains all matching keys, if it is unique.
    pub fn nibble(&self, level: usize) -> Option<usize> {
        let second = usize::from(self.second?);
        match level {
            0 => Some(second >> 4),
            1 => Some(second & 15),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_matches_whole_names() {
        let all = ["/arm", "/arm/mode", "/arm/joint1/gain", "/army", "/leg", "!type/7"];
        let meant = |prefix: &str| {
            let prefix = Prefix::new(prefix.as_bytes(), 7, &Geometry::DOMAIN);
            all.iter().filter(|k| prefix.matches(k.as_bytes())).copied().collect::<Vec<_>>()
        };
        assert_eq!(meant("/arm"), ["/arm", "/arm/mode", "/arm/joint1/gain"]);
        assert_eq!(meant("/arm/"), ["/arm/mode", "/arm/joint1/gain"]);
        assert_eq!(meant("/arm/joint1"), ["/arm/joint1/gain"]);
        assert_eq!(meant(""), ["/arm", "/arm/mode", "/arm/joint1/gain", "/army", "/leg"]);
        assert_eq!(meant("/"), meant(""));
        assert_eq!(meant("!type"), ["!type/7"]);
        assert_eq!(meant("/ar"), [""; 0]);
    }

    #[test]
    fn prefix_path_contains_its_keys() {
        let geometry = Geometry::DOMAIN;
        let prefixes = ["/a", "/a/", "/a/b", "/a/b/", "/a/b/c", "/a/b/c/", "/", "!type/"];
        let keys = ["/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/x", "!type/0", "/b"];
        for prefix in prefixes {
            let prefix = Prefix::new(prefix.as_bytes(), 3, &geometry);
            for key in keys.iter().filter(|k| prefix.matches(k.as_bytes())) {
                let key = Key::new(key.as_bytes(), 3, &geometry).unwrap();
                assert!(prefix.root().is_none_or(|root| root == key.root()));
                for level in 0..4 {
                    assert!(prefix.nibble(level).is_none_or(|n| n == key.nibble(level)));
                }
            }
        }
    }

    #[test]
    fn key_length_is_limited() {
        assert!(Key::new(b"", 0, &Geometry::SMALL).is_none());
        assert!(Key::new(&[b'a'; 255], 0, &Geometry::SMALL).is_some());
        assert!(Key::new(&[b'a'; 256], 0, &Geometry::SMALL).is_none());
    }
}
