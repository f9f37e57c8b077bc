//! Keys: the path of a key through the trie, and which keys a prefix means.
//!
//! The root is chosen by the first component of a name, the next two levels by the second, the rest
//! by the whole: so what stands below `/arm/joint1/` is found without a look at everything else.

use super::layout::{Geometry, MAX_LEVEL};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Longest key in bytes.
pub const MAX_KEY_LEN_BYTES: usize = 255;
/// Words that hold the longest key.
pub const KEY_WORDS: usize = 32;

/// A key, and where it leads.
#[derive(Clone, Debug)]
pub struct Key {
    words: [u64; KEY_WORDS],
    len: usize,
    root: u32,
    second: u8,
    seed: u64,
    hash: u64,
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

impl Key {
    /// The path of a key; `None` if it is empty or too long.
    pub fn new(key: &[u8], seed: u64, geometry: &Geometry) -> Option<Key> {
        if key.is_empty() || key.len() > MAX_KEY_LEN_BYTES {
            return None;
        }
        let mut words = [0; KEY_WORDS];
        for (word, bytes) in words.iter_mut().zip(key.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
        let (first, _, second, _) = components(key);
        Some(Key {
            words,
            len: key.len(),
            root: root_of(first, seed, geometry),
            second: second_of(second, seed),
            seed,
            hash: xxh3_64_with_seed(key, seed),
        })
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: an empty key is none.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The key as it stands in a leaf, padded with zeros.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words[..self.len.div_ceil(8)]
    }

    /// The key's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words().iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.truncate(self.len);
        bytes
    }

    /// Its slot in the root.
    #[inline]
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Its slot in a node of this level.
    #[inline]
    pub fn nibble(&self, level: usize) -> usize {
        let nibble = match level {
            0 => u64::from(self.second >> 4),
            1 => u64::from(self.second),
            2..18 => self.hash >> (4 * (level - 2)),
            _ => {
                // Two keys of one hash: of a kind that happens once in a lifetime.
                let round = (level - 2) / 16;
                let hash = xxh3_64_with_seed(&self.bytes(), self.seed.wrapping_add(round as u64));
                hash >> (4 * ((level - 2) % 16))
            }
        };
        debug_assert!(level < MAX_LEVEL);
        (nibble & 15) as usize
    }
}

/// Which keys are meant: `/arm` means the key of that name and all below it, `/arm/` those below it
/// only, the empty one and `/` all that begin with `/`.
#[derive(Clone, Debug)]
pub struct Prefix {
    text: Vec<u8>,
    root: Option<u32>,
    second: Option<u8>,
}

impl Prefix {
    /// What a prefix means.
    pub fn new(prefix: &[u8], seed: u64, geometry: &Geometry) -> Prefix {
        let text = if prefix.is_empty() { b"/".to_vec() } else { prefix.to_vec() };
        if text == b"/" {
            return Prefix { text, root: None, second: None };
        }
        let (first, _, second, second_ended) = components(&text);
        // "/arm" means the component `arm` as "/arm/" does; of "/arm/jo" the second one may be cut short
        // only if "jo" itself were a cut, which it is not: prefixes are whole names.
        let has_second = second_ended || !second.is_empty();
        Prefix {
            root: Some(root_of(first, seed, geometry)),
            second: has_second.then(|| second_of(second, seed)),
            text,
        }
    }

    /// Whether it means this key.
    pub fn matches(&self, key: &[u8]) -> bool {
        let Some(rest) = key.strip_prefix(self.text.as_slice()) else { return false };
        rest.is_empty() || rest[0] == b'/' || self.text.ends_with(b"/")
    }

    /// The only root slot in which such keys stand, if there is but one.
    pub fn root(&self) -> Option<u32> {
        self.root
    }

    /// The only slot in a node of this level, if there is but one.
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
    fn a_prefix_means_whole_names() {
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
    fn a_prefix_leads_where_its_keys_are() {
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
    fn a_key_is_its_words() {
        for len in [1, 7, 8, 9, 255] {
            let text = "/".repeat(len);
            let key = Key::new(text.as_bytes(), 0, &Geometry::SMALL).unwrap();
            assert_eq!(key.bytes(), text.as_bytes());
        }
        assert!(Key::new(b"", 0, &Geometry::SMALL).is_none());
        assert!(Key::new(&[b'a'; 256], 0, &Geometry::SMALL).is_none());
    }
}
