//! Tokens of browsers and other programs that cannot have a certificate.

use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::{KeyError, Result};

/// Label of a token's block in the keys file.
pub const TOKEN_LABEL: &str = "RNET TOKEN";

/// What the owner of a token may do. Each role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// See everything, change nothing.
    Look,
    /// Also publish, call services, and set parameters and state.
    Operate,
    /// Also drive command topics.
    Drive,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 3] = [Role::Look, Role::Operate, Role::Drive];

    /// The word in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Look => "look",
            Role::Operate => "operate",
            Role::Drive => "drive",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A token without its secret, of which the keys file has only the hash.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// The name that its owner knows it by.
    pub name: String,
    /// What its owner may do.
    pub role: Role,
    /// When it expires; `None`: never.
    pub expires: Option<SystemTime>,
    hash: [u8; 32],
}

/// The content of a token's block.
#[derive(Serialize, Deserialize)]
struct Document {
    name: String,
    role: Role,
    /// Base64 of the SHA-256 of the secret.
    sha256: String,
    /// In seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
}

impl Token {
    /// Whether `secret` belongs to this token, and it has not expired. The time of the comparison does not
    /// depend on the position of a difference.
    pub fn matches(&self, secret: &str) -> bool {
        let given = hash(secret);
        let differs = given.iter().zip(&self.hash).fold(0, |differs, (a, b)| differs | (a ^ b));
        std::hint::black_box(differs) == 0 && !self.has_expired()
    }

    /// Whether its time is over.
    pub fn has_expired(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= SystemTime::now())
    }

    /// Reads the content of a block.
    pub(crate) fn parse(path: &Path, content: &[u8]) -> Result<Token> {
        let invalid = || KeyError::file(path, "a token in it cannot be read; remove its block");
        let document: Document = serde_json::from_slice(content).map_err(|_| invalid())?;
        let hash = STANDARD.decode(&document.sha256).ok().and_then(|hash| hash.try_into().ok());
        let expires = match document.expires {
            None => None,
            Some(at) => Some(UNIX_EPOCH.checked_add(Duration::from_secs(at)).ok_or_else(invalid)?),
        };
        let Document { name, role, .. } = document;
        Ok(Token { name, role, expires, hash: hash.ok_or_else(invalid)? })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, {})", self.name, self.role)
    }
}

fn hash(secret: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    hash
}

#[cfg(feature = "authority")]
pub use change::{add_token, remove_token};

#[cfg(feature = "authority")]
mod change {
    use super::*;
    use crate::KeysFile;
    use crate::files::{self, PRIVATE_FILE, pem_block};
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ring::rand::{SecureRandom, SystemRandom};
    use rnet_config::invalid_host_reason;

    /// Adds a token to a keys file, or replaces the one of this name, and returns its secret, which is not
    /// stored.
    ///
    /// # Errors
    /// An invalid name; errors of the keys file.
    pub fn add_token(
        keys: &Path,
        name: &str,
        role: Role,
        expires: Option<SystemTime>,
    ) -> Result<String> {
        if let Some(expected) = invalid_host_reason(name) {
            return Err(KeyError::Request(format!("token name {name:?} is not {expected}")));
        }
        let mut random = [0; 32];
        let filled = SystemRandom::new().fill(&mut random);
        filled.map_err(|_| KeyError::Request("the kernel gives no random bytes".to_owned()))?;
        let secret = URL_SAFE_NO_PAD.encode(random);
        let token = Token { name: name.to_owned(), role, expires, hash: hash(&secret) };
        rewrite(keys, |tokens| {
            tokens.retain(|old| old.name != name);
            tokens.push(token);
            Ok(())
        })?;
        Ok(secret)
    }

    /// Removes a token from a keys file.
    ///
    /// # Errors
    /// `Request` if it has no token of this name; errors of the keys file.
    pub fn remove_token(keys: &Path, name: &str) -> Result<()> {
        rewrite(keys, |tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name);
            match before == tokens.len() {
                false => Ok(()),
                true => {
                    let path = keys.display();
                    Err(KeyError::Request(format!(
                        "{path} has no token {name}; see rnet keys list"
                    )))
                }
            }
        })
    }

    fn rewrite(path: &Path, change: impl FnOnce(&mut Vec<Token>) -> Result<()>) -> Result<()> {
        let _lock = files::lock(path)?;
        let keys = KeysFile::load(path)?;
        let mut tokens = keys.tokens().to_vec();
        change(&mut tokens)?;
        files::write_atomic(path, &keys.text_with(&tokens), PRIVATE_FILE)
    }

    impl Token {
        /// Its block in the keys file.
        pub(crate) fn block(&self) -> String {
            let since = |at: SystemTime| at.duration_since(UNIX_EPOCH).map_or(0, |s| s.as_secs());
            let document = Document {
                name: self.name.clone(),
                role: self.role,
                sha256: STANDARD.encode(self.hash),
                expires: self.expires.map(since),
            };
            pem_block(TOKEN_LABEL, serde_json::json!(document).to_string().as_bytes())
        }
    }
}
