//! Names of topics, nodes, domains and keys.
//!
//! Topics and nodes follow the rules of ROS 2: absolute, `/`-separated tokens of letters, digits and `_`; a
//! token does not start with a digit. A missing leading `/` is added: `lidar` and `/lidar` are the same name.
//! Code outside this module sees only absolute, checked names. Names also become file names
//! ([`NodeName::file_stem`]); therefore the rules are strict and the mapping is reversible.

use crate::error::{Error, Result};
use crate::limits::{
    MAX_DOMAIN_LEN_BYTES, MAX_KEY_LEN_BYTES, MAX_NODE_NAME_LEN_BYTES, MAX_TOPIC_LEN_BYTES,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// FNV-1a, 64 bit (Fowler, Noll, Vo; offset basis and prime as published). Stable: the value is part of the
/// shared-memory layout. Not collision-resistant: equality of names is always checked too.
pub const fn fnv1a_64(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

fn bad_name(what: &'static str, name: &str, why: String) -> Error {
    // A hostile name may be megabytes long; an error text must stay short.
    const SHOWN_CHARS: usize = 300;
    let name = match name.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    };
    Error::BadName { what, name, why }
}

/// What the parts of a kind of name may contain.
pub(crate) struct PartRules {
    is_allowed: fn(u8) -> bool,
    /// The same as text.
    allowed: &'static str,
    may_start_with_digit: bool,
}

/// The rules of ROS.
pub(crate) const TOPIC_PARTS: PartRules = PartRules {
    is_allowed: |byte| byte.is_ascii_alphanumeric() || byte == b'_',
    allowed: "letters a-z A-Z, digits, '_' and '/'",
    may_start_with_digit: false,
};

const KEY_PARTS: PartRules = PartRules {
    is_allowed: is_key_byte,
    allowed: "letters a-z A-Z, digits, '_', '-', '.', ':', '@' and '/'",
    may_start_with_digit: true,
};

impl PartRules {
    /// Checks a name and returns its absolute form.
    pub(crate) fn normalise<'a>(
        &self,
        what: &'static str,
        name: &'a str,
        max_len_bytes: usize,
    ) -> Result<Cow<'a, str>> {
        let refuse = |why: String| Err(bad_name(what, name, why));
        if name.is_empty() {
            return refuse("it is empty".to_owned());
        }
        let absolute = name.starts_with('/');
        let len_bytes = name.len() + usize::from(!absolute);
        if len_bytes > max_len_bytes {
            return refuse(format!(
                "it is {len_bytes} bytes long with its leading '/'; at most {max_len_bytes} are allowed"
            ));
        }
        let mut at_part_start = true;
        for (index, c) in name.chars().enumerate() {
            let at = index + 1; // positions start at 1
            match c {
                '/' if index == 0 => {}
                '/' if at_part_start => {
                    return refuse(format!("the part before the '/' at character {at} is empty"));
                }
                '/' => at_part_start = true,
                '0'..='9' if at_part_start && !self.may_start_with_digit => {
                    return refuse(format!(
                        "'{c}' at character {at}: a part must start with a letter or '_', not with a digit"
                    ));
                }
                _ if u8::try_from(c).is_ok_and(self.is_allowed) => at_part_start = false,
                _ => {
                    let allowed = self.allowed;
                    return refuse(format!(
                        "{c:?} at character {at} is not allowed: use {allowed}"
                    ));
                }
            }
        }
        if at_part_start {
            let why = if name == "/" { "it has no part after the '/'" } else { "it ends with '/'" };
            return refuse(why.to_owned());
        }
        Ok(if absolute { Cow::Borrowed(name) } else { Cow::Owned(format!("/{name}")) })
    }
}

/// Checks the name of a key of the state, and returns it in its absolute form.
///
/// Keys are `/`-separated parts of letters, digits and `_ - . : @`. They are less strict than topic names
/// because they never become file names and often contain data: `/users/42`, `/motors/left-2/temp`.
///
/// ```
/// assert_eq!(rnet_core::key_name("arm/mode")?, "/arm/mode");
/// assert!(rnet_core::key_name("/arm//mode").is_err());
/// # Ok::<(), rnet_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::BadName`] with the reason and the position; at most [`MAX_KEY_LEN_BYTES`] bytes are allowed.
pub fn key_name(name: &str) -> Result<Cow<'_, str>> {
    let plain = name.len() <= MAX_KEY_LEN_BYTES && {
        let mut before = b'/';
        let all = name.bytes().enumerate().all(|(at, byte)| {
            let fine = if at == 0 {
                byte == b'/'
            } else {
                is_key_byte(byte) || (byte == b'/' && before != b'/')
            };
            before = byte;
            fine
        });
        all && before != b'/'
    };
    if plain {
        return Ok(Cow::Borrowed(name));
    }
    // A name without a leading `/`, or an invalid one.
    KEY_PARTS.normalise("key", name, MAX_KEY_LEN_BYTES)
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'@')
}

macro_rules! name_type {
    ($type:ident) => {
        impl $type {
            /// The name, with its leading `/` if it has one (domain ids have none).
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        // `Borrow` allows map lookups by `&str`: both types hash and compare as the string.
        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $type {
            type Err = Error;
            fn from_str(name: &str) -> Result<Self> {
                Self::new(name)
            }
        }

        impl TryFrom<&str> for $type {
            type Error = Error;
            fn try_from(name: &str) -> Result<Self> {
                Self::new(name)
            }
        }

        impl TryFrom<String> for $type {
            type Error = Error;
            fn try_from(name: String) -> Result<Self> {
                Self::new(&name)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                String::from(&*name.0)
            }
        }
    };
}

/// The name of a topic, absolute and checked: `/arm/joints`.
///
/// ```
/// use rnet_core::TopicName;
/// assert_eq!(TopicName::new("lidar")?.as_str(), "/lidar");
/// assert!(TopicName::new("/arm//joints").is_err());
/// # Ok::<(), rnet_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TopicName(Arc<str>);

name_type!(TopicName);

impl TopicName {
    /// Checks `name` and makes it absolute.
    ///
    /// # Errors
    /// [`Error::BadName`] with the reason and the position; at most [`MAX_TOPIC_LEN_BYTES`] bytes are
    /// allowed.
    pub fn new(name: &str) -> Result<Self> {
        let name = TOPIC_PARTS.normalise("topic", name, MAX_TOPIC_LEN_BYTES)?;
        Ok(Self(name.into()))
    }

    /// A stable hash of the name ([`fnv1a_64`]); the same in every process and every version.
    pub fn hash(&self) -> u64 {
        fnv1a_64(self.0.as_bytes())
    }

    /// The name, shared: cloning it does not allocate.
    pub fn shared(&self) -> &Arc<str> {
        &self.0
    }
}

/// The name of a node, absolute and checked: `/arm/controller`.
///
/// ```
/// use rnet_core::NodeName;
/// let node = NodeName::new("arm/controller")?;
/// assert_eq!(node.file_stem(), "arm.controller");
/// assert_eq!(NodeName::from_file_stem("arm.controller")?, node);
/// # Ok::<(), rnet_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(Box<str>);

name_type!(NodeName);

impl NodeName {
    /// Checks `name` and makes it absolute.
    ///
    /// # Errors
    /// [`Error::BadName`] with the reason and the position; at most [`MAX_NODE_NAME_LEN_BYTES`] bytes are
    /// allowed.
    pub fn new(name: &str) -> Result<Self> {
        let name = TOPIC_PARTS.normalise("node", name, MAX_NODE_NAME_LEN_BYTES)?;
        Ok(Self(name.into()))
    }

    /// The name as the first part of a file name: `arm.controller` for `/arm/controller`. It is unique per
    /// node because names do not contain `.`.
    pub fn file_stem(&self) -> String {
        self.0[1..].replace('/', ".")
    }

    /// The inverse of [`file_stem`](Self::file_stem).
    ///
    /// # Errors
    /// [`Error::BadName`] if no node has this file stem (a foreign file in the domain's directory).
    pub fn from_file_stem(stem: &str) -> Result<Self> {
        if stem.contains('/') {
            return Err(bad_name("node", stem, "a file stem holds no '/'".to_owned()));
        }
        // Adding the '/' here makes a stem that starts with '.' fail as an empty part.
        Self::new(&format!("/{}", stem.replace('.', "/"))).map_err(|error| match error {
            Error::BadName { what, why, .. } => bad_name(what, stem, why),
            other => other,
        })
    }
}

/// The id of a domain, an isolated network: 1 to 32 letters, digits and `_`; `0` by default.
///
/// ```
/// use rnet_core::DomainId;
/// assert_eq!(DomainId::default().as_str(), "0");
/// assert!(DomainId::new("lab-2").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DomainId(Box<str>);

name_type!(DomainId);

impl DomainId {
    /// Checks `id`.
    ///
    /// # Errors
    /// [`Error::BadName`] with the reason and the position.
    pub fn new(id: &str) -> Result<Self> {
        if id.is_empty() {
            return Err(bad_name("domain", id, "it is empty".to_owned()));
        }
        if let Some((index, c)) =
            id.chars().enumerate().find(|(_, c)| !(c.is_ascii_alphanumeric() || *c == '_'))
        {
            let why = format!(
                "{c:?} at character {} is not allowed: use letters a-z A-Z, digits and '_'",
                index + 1
            );
            return Err(bad_name("domain", id, why));
        }
        if id.len() > MAX_DOMAIN_LEN_BYTES {
            let why = format!(
                "it is {} bytes long; at most {MAX_DOMAIN_LEN_BYTES} are allowed",
                id.len()
            );
            return Err(bad_name("domain", id, why));
        }
        Ok(Self(id.into()))
    }
}

impl Default for DomainId {
    fn default() -> Self {
        Self("0".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn why(name: &str) -> String {
        TopicName::new(name).unwrap_err().to_string()
    }

    #[test]
    fn good_names_become_absolute() {
        for (given, kept) in [
            ("lidar", "/lidar"),
            ("/lidar", "/lidar"),
            ("a/b", "/a/b"),
            ("/_a/B2/c_3", "/_a/B2/c_3"),
        ] {
            assert_eq!(TopicName::new(given).unwrap().as_str(), kept);
            assert_eq!(NodeName::new(given).unwrap().as_str(), kept);
        }
    }

    #[test]
    fn bad_names_are_rejected_with_position() {
        assert!(why("").contains("empty"));
        assert!(why("/").contains("no part"));
        assert!(why("/a/").contains("ends with '/'"));
        assert!(why("/a//b").contains("character 4"), "{}", why("/a//b"));
        assert!(why("//a").contains("character 2"));
        assert!(why("/a/2b").contains("'2' at character 4"));
        assert!(why("/aé b").contains("'é' at character 3"));
        assert!(why("~/x").contains("'~' at character 1"));
        assert!(why("/a\nb").contains("'\\n' at character 3"));
        assert!(why("/a.b").contains("'.' at character 3"));
    }

    #[test]
    fn lengths_count_the_leading_slash() {
        assert!(TopicName::new(&"a".repeat(254)).is_ok());
        assert!(TopicName::new(&"a".repeat(255)).unwrap_err().to_string().contains("256 bytes"));
        assert!(TopicName::new(&format!("/{}", "a".repeat(254))).is_ok());
        assert!(NodeName::new(&"a".repeat(199)).is_ok());
        assert!(NodeName::new(&"a".repeat(200)).is_err());
        assert!(why(&"é".repeat(1 << 20)).len() < 1000);
    }

    #[test]
    fn foreign_file_stems_are_rejected() {
        for stem in ["", ".", "a..b", ".a", "a.", "a/b", "a b", "2"] {
            let error = NodeName::from_file_stem(stem).unwrap_err();
            assert!(matches!(error, Error::BadName { what: "node", .. }), "{stem}: {error}");
        }
    }

    #[test]
    fn keys_are_looser_than_topics_and_report_position() {
        for (given, kept) in [("a", "/a"), ("/a", "/a"), ("/u/42/x-1.y:z@h", "/u/42/x-1.y:z@h")] {
            assert_eq!(key_name(given).unwrap(), kept);
        }
        let why = |name: &str| key_name(name).unwrap_err().to_string();
        assert!(why("").contains("bad key name"), "{}", why(""));
        assert!(why("/").contains("no part"));
        assert!(why("/a/").contains("ends with '/'"));
        assert!(why("/a//b").contains("character 4"));
        assert!(why("//a").contains("character 2"));
        assert!(why("/a b").contains("' ' at character 3"));
        assert!(why("!type/1").contains("'!' at character 1"));
        assert!(why("/é").contains("'é' at character 2"));
        assert!(key_name(&format!("/{}", "a".repeat(254))).is_ok());
        assert!(key_name(&"a".repeat(254)).is_ok());
        assert!(why(&"a".repeat(255)).contains("256 bytes"));
    }

    #[test]
    fn hash_matches_published_test_vectors() {
        assert_eq!(fnv1a_64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a_64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a_64(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(TopicName::new("x").unwrap().hash(), fnv1a_64(b"/x"));
    }

    #[test]
    fn domain_ids_are_checked() {
        for good in ["0", "lab_2", "A", &"x".repeat(32)] {
            assert_eq!(DomainId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a/b", "..", "a b", "é", &"x".repeat(33)] {
            assert!(
                matches!(DomainId::new(bad), Err(Error::BadName { what: "domain", .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn names_in_json_are_checked() {
        let topic: TopicName = serde_json::from_str("\"scan\"").unwrap();
        assert_eq!(serde_json::to_string(&topic).unwrap(), "\"/scan\"");
        assert!(serde_json::from_str::<NodeName>("\"a//b\"").is_err());
    }

    proptest! {
        #[test]
        fn stems_round_trip(name in "(/?[A-Za-z_][A-Za-z0-9_]{0,6})(/[A-Za-z_][A-Za-z0-9_]{0,6}){0,5}") {
            let node = NodeName::new(&name).unwrap();
            prop_assert_eq!(NodeName::new(node.as_str()).unwrap(), node.clone());
            prop_assert_eq!(NodeName::from_file_stem(&node.file_stem()).unwrap(), node);
        }

        #[test]
        fn any_key_is_accepted_or_rejected_by_the_rules(name in "\\PC{0,12}|[a_/0.]{0,8}") {
            let body = name.strip_prefix('/').unwrap_or(&name);
            let of_key = |c: char| c.is_ascii_alphanumeric() || "_-.:@".contains(c);
            let good = body.split('/').all(|t| !t.is_empty() && t.chars().all(of_key));
            prop_assert_eq!(key_name(&name).is_ok(), good);
        }

        #[test]
        fn any_text_is_accepted_or_rejected_by_the_rules(name in "\\PC{0,20}|[a_/0]{0,12}") {
            let body = name.strip_prefix('/').unwrap_or(&name);
            let good = body.split('/').all(|t| {
                t.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && t.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            });
            prop_assert_eq!(TopicName::new(&name).is_ok(), good);
        }
    }
}
