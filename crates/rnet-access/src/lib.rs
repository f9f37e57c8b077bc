//! Access control of the dashboard, its metrics, and the Foxglove server: the rule for non-loopback addresses,
//! tokens with their roles, and TLS.
//!
//! Errors are sentences that the command prints unchanged. No text contains a token.
#![forbid(unsafe_code)]

mod attempts;
mod files;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use rnet_keys::Role;
use rnet_keys::Token;
use tokio_rustls::TlsAcceptor;

use attempts::WrongTokens;
pub use attempts::network_of;
pub use files::TlsFiles;
use files::{FilesVersion, Loaded};

/// Shortest token, in bytes. Shorter ones can be guessed.
pub const MIN_TOKEN_LEN_BYTES: usize = 16;
/// Interval between two checks of the files, and of the user of an open connection.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Failed reads of the files in a row after which their tokens are rejected. One may be due to a file that is
/// being written.
const MAX_FAILED_READS: u32 = 2;
/// Tokens of a request that are compared.
const MAX_TOKENS_PER_REQUEST: usize = 4;

/// Receives messages for the operator.
pub type EventCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// Address, tokens and TLS of a server.
#[derive(Clone)]
pub struct AccessOptions {
    /// Listen address; port 0 selects a free port. An address beyond this machine requires tokens and TLS.
    pub address: SocketAddr,
    /// A token with the role `drive`.
    pub token: Option<String>,
    /// Certificate and key for TLS; without them, those of `keys`.
    pub tls: Option<TlsFiles>,
    /// Keys file of this host, with a certificate and with tokens.
    pub keys: Option<PathBuf>,
    /// Nobody may change anything.
    pub read_only: bool,
}

impl AccessOptions {
    /// On 127.0.0.1, without a token.
    pub fn local(port: u16) -> AccessOptions {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        AccessOptions { address, token: None, tls: None, keys: None, read_only: false }
    }
}

impl std::fmt::Debug for AccessOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessOptions").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Access is not sufficiently protected; the missing settings.
    #[error("{0}")]
    Unprotected(String),
    /// A certificate, key or keys file is unusable.
    #[error("{0}")]
    Files(String),
}

/// Why a client is rejected. The texts are for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It has no token.
    #[error("a token is required")]
    Missing,
    /// Its token is unknown, was removed, or has expired.
    #[error("the token is wrong, was removed or has expired")]
    Wrong,
    /// Its network sent too many wrong tokens. It may try again after this time.
    #[error("too many wrong tokens from this address; try again in {} s", .0.as_secs() + 1)]
    TooMany(Duration),
}

impl Denied {
    /// The status of an HTTP answer.
    pub fn status(self) -> u16 {
        if let Denied::TooMany(_) = self { 429 } else { 401 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Credential {
    /// The server requires no token.
    None,
    /// The token of `AccessOptions`.
    CommandLine,
    /// A token of the keys file.
    KeysFile(Token),
}

/// A client that was let in.
#[derive(Clone, Debug)]
pub struct User {
    credential: Credential,
    read_only: bool,
}

impl User {
    /// The name of its token in the keys file.
    pub fn token(&self) -> Option<&str> {
        if let Credential::KeysFile(token) = &self.credential { Some(&token.name) } else { None }
    }

    /// Its role: `drive` for the token of the command line, and without tokens.
    pub fn role(&self) -> Role {
        match &self.credential {
            Credential::None | Credential::CommandLine => Role::Drive,
            Credential::KeysFile(token) => token.role,
        }
    }

    /// Checks that it may do something that needs `role`.
    ///
    /// # Errors
    /// The token, its role, and the role that is needed, as text.
    pub fn check(&self, role: Role, action: &str) -> Result<(), String> {
        let own = self.role();
        if role == Role::Look || role <= own && !self.read_only {
            Ok(())
        } else if self.read_only {
            Err("the server was started with --read-only".to_owned())
        } else {
            let name = self.token().unwrap_or_default();
            Err(format!("the token {name:?} has the role {own}; {action} needs the role {role}"))
        }
    }
}

/// The access control of a running server.
pub struct Access {
    options: AccessOptions,
    on_event: EventCallback,
    host: Option<String>,
    state: Mutex<State>,
}

struct State {
    acceptor: Option<TlsAcceptor>,
    tokens: Vec<Token>,
    /// Whether clients need a token. It stays so when the last token is removed.
    requires_token: bool,
    checked_at: Instant,
    version: FilesVersion,
    failed_reads: u32,
    wrong: WrongTokens,
}

impl Access {
    /// Reads the files, and checks that access is sufficiently protected. `on_event` is called when the files
    /// become unusable or usable again.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn new(options: AccessOptions, on_event: EventCallback) -> Result<Access, AccessError> {
        check_token(options.token.as_deref()).map_err(AccessError::Unprotected)?;
        let version = files::version_of(&options);
        let Loaded { acceptor, tokens, host } =
            files::load(&options).map_err(AccessError::Files)?;
        let requires_token = options.token.is_some() || !tokens.is_empty();
        check_protection(options.address, requires_token, acceptor.is_some())
            .map_err(AccessError::Unprotected)?;
        let (checked_at, wrong) = (Instant::now(), WrongTokens::default());
        let state =
            State { acceptor, tokens, requires_token, checked_at, version, failed_reads: 0, wrong };
        Ok(Access { options, on_event, host, state: Mutex::new(state) })
    }

    /// The options.
    pub fn options(&self) -> &AccessOptions {
        &self.options
    }

    /// The name of this host, from its keys file. Its certificate is also valid for NAME.local.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Whether connections are encrypted.
    pub fn has_tls(&self) -> bool {
        self.options.tls.is_some() || self.options.keys.is_some()
    }

    /// Whether clients need a token.
    pub fn requires_token(&self) -> bool {
        self.current().requires_token
    }

    /// Encrypts the next connection, with the current certificate.
    pub fn acceptor(&self) -> Option<TlsAcceptor> {
        self.current().acceptor.clone()
    }

    /// The user of a client with these tokens.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn user<'a>(
        &self,
        from: IpAddr,
        given: impl IntoIterator<Item = &'a str>,
    ) -> Result<User, Denied> {
        let mut state = self.current();
        let user = |credential| User { credential, read_only: self.options.read_only };
        if !state.requires_token {
            return Ok(user(Credential::None));
        }
        let given: Vec<&str> = given.into_iter().take(MAX_TOKENS_PER_REQUEST).collect();
        if given.is_empty() {
            return Err(Denied::Missing);
        }
        let now = Instant::now();
        let wait = state.wrong.wait(from, now);
        if !wait.is_zero() {
            return Err(Denied::TooMany(wait));
        }
        let find = |state: &State| given.iter().find_map(|secret| self.credential(state, secret));
        let found = find(&state).or_else(|| {
            // It may be new. A client cannot make a file count as unreadable.
            if let Some(Ok(loaded)) = self.changed_files(&mut state) {
                self.apply(&mut state, loaded);
            }
            find(&state)
        });
        if found.is_none() {
            given.iter().for_each(|secret| state.wrong.count(from, secret, now));
        }
        found.map(user).ok_or(Denied::Wrong)
    }

    fn credential(&self, state: &State, secret: &str) -> Option<Credential> {
        if self.options.token.as_deref().is_some_and(|token| tokens_match(secret, token)) {
            return Some(Credential::CommandLine);
        }
        state.tokens.iter().find(|token| token.matches(secret)).cloned().map(Credential::KeysFile)
    }

    /// Whether the user's token still exists, with the same role, and has not expired.
    pub fn is_current(&self, user: &User) -> bool {
        let state = self.current();
        match &user.credential {
            Credential::None => !state.requires_token,
            Credential::CommandLine => true,
            Credential::KeysFile(token) => !token.has_expired() && state.tokens.contains(token),
        }
    }

    /// Waits until the user's token is removed or expires.
    pub async fn until_ended(&self, user: &User) {
        while self.is_current(user) {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// The state, with the content of the files of at most a check interval ago.
    fn current(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.checked_at.elapsed() >= CHECK_INTERVAL {
            state.checked_at = Instant::now();
            match self.changed_files(&mut state) {
                None => {}
                Some(Ok(loaded)) => self.apply(&mut state, loaded),
                // Connections that need no token of the file go on, with the last certificate.
                Some(Err(why)) => {
                    state.failed_reads = state.failed_reads.saturating_add(1);
                    if state.failed_reads == MAX_FAILED_READS {
                        state.tokens.clear();
                        let what = "tokens of the keys file are rejected until it can be read";
                        (self.on_event)(&format!("{why}; {what}"));
                    }
                }
            }
        }
        state
    }

    /// Reads the files, if they have changed since they were last read successfully.
    fn changed_files(&self, state: &mut State) -> Option<Result<Loaded, String>> {
        let version = files::version_of(&self.options);
        (version != state.version).then(|| {
            let read = files::load(&self.options);
            // After a failure, the next check reads them again.
            state.version = if read.is_ok() { version } else { FilesVersion::new() };
            read
        })
    }

    fn apply(&self, state: &mut State, loaded: Loaded) {
        state.requires_token |= !loaded.tokens.is_empty();
        (state.acceptor, state.tokens) = (loaded.acceptor, loaded.tokens);
        if std::mem::take(&mut state.failed_reads) >= MAX_FAILED_READS {
            (self.on_event)("the certificate and the tokens can be read again");
        }
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("address", &self.options.address).finish_non_exhaustive()
    }
}

/// Rejects a weak token of the command line.
fn check_token(token: Option<&str>) -> Result<(), String> {
    let Some(token) = token else { return Ok(()) };
    // Users put it into URLs, where browsers and viewers encode some characters.
    let is_plain = token.bytes().all(|b| b.is_ascii_graphic() && !b"\"';,\\&#<>".contains(&b));
    if token.len() >= MIN_TOKEN_LEN_BYTES && is_plain {
        return Ok(());
    }
    Err(format!(
        "the token has {} characters; it needs at least {MIN_TOKEN_LEN_BYTES} printable ones, without spaces, quotes, \
         commas, semicolons, backslashes, &, #, < and >; create one with: openssl rand -hex 24",
        token.len()
    ))
}

/// Rejects an address beyond loopback without both a token and TLS.
fn check_protection(address: SocketAddr, has_token: bool, has_tls: bool) -> Result<(), String> {
    let missing = match (has_token, has_tls) {
        (true, true) => return Ok(()),
        _ if address.ip().is_loopback() => return Ok(()),
        (false, true) => "a token (rnet keys token, or --token-file)",
        (true, false) => "TLS (rnet keys, or --tls-cert and --tls-key)",
        (false, false) => "a token and TLS (rnet keys, or --token-file, --tls-cert and --tls-key)",
    };
    Err(format!(
        "{address} is reachable from other computers, and anyone who reaches the server can move the robot: it needs \
         {missing}; otherwise use 127.0.0.1, and from other computers ssh -L {port}:127.0.0.1:{port} ROBOT",
        port = address.port()
    ))
}

/// Compares in a time that does not depend on the position of a difference, so that an attacker cannot find
/// the token character by character.
fn tokens_match(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    let mut differs = given.len() ^ token.len();
    for (at, byte) in token.iter().enumerate() {
        differs |= usize::from(byte ^ given.get(at).copied().unwrap_or(0));
    }
    std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    use rnet_keys::{Authority, HostRequest, Rights, add_token, remove_token};

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn non_loopback_address_requires_token_and_tls() {
        let [local, open] = [[127, 0, 0, 1], [0, 0, 0, 0]].map(|ip| SocketAddr::from((ip, 8420)));
        assert!(check_protection(local, false, false).is_ok());
        assert!(check_protection(open, true, true).is_ok());
        for (has_token, has_tls) in [(false, false), (true, false), (false, true)] {
            let why = check_protection(open, has_token, has_tls).unwrap_err();
            assert_eq!(why.contains("--token-file"), !has_token, "{why}");
            assert_eq!(why.contains("--tls-cert"), !has_tls, "{why}");
        }
    }

    #[test]
    fn weak_token_is_rejected() {
        assert!(check_token(Some("0123456789abcdef")).is_ok());
        for bad in [
            "short",
            "with a blank in it",
            "with;semicolon;in;it",
            "<0123456789abcdef>",
            "with&ampersands&in&it",
        ] {
            let why = check_token(Some(bad)).unwrap_err();
            assert!(why.contains("the token has") && !why.contains(bad), "{bad}: {why}");
        }
    }

    #[test]
    fn tokens_are_compared_as_a_whole() {
        assert!(tokens_match("abc", "abc"));
        for given in ["", "ab", "abcd", "abd", "ABC", "abc\0"] {
            assert!(!tokens_match(given, "abc"), "{given:?}");
        }
    }

    #[test]
    fn options_do_not_print_the_token() {
        let token = Some("0123456789abcdef".to_owned());
        let options = AccessOptions { token, ..AccessOptions::local(0) };
        let access = Access::new(options.clone(), Arc::new(|_| {})).unwrap();
        let user = access.user(PEER, ["0123456789abcdef"]).unwrap();
        assert!(!format!("{options:?} {access:?} {user:?}").contains("0123456789abcdef"));
    }

    fn keys_file(dir: &Path) -> PathBuf {
        let (mut authority, _) = Authority::init(&dir.join("authority")).unwrap();
        let (rights, addresses) = (Rights::all(), Vec::new());
        let request = HostRequest { name: "robot".into(), rights, days: 1, addresses };
        authority.add_host(&request, &dir.join("keys.pem")).unwrap();
        dir.join("keys.pem")
    }

    #[test]
    fn roles_are_those_of_the_keys_file() {
        let dir = std::env::temp_dir().join(format!("rnet-access-roles-{}", std::process::id()));
        let keys = keys_file(&dir);
        let secret = add_token(&keys, "tablet", Role::Look, None).unwrap();
        let mut options = AccessOptions::local(0);
        (options.keys, options.token) = (Some(keys.clone()), Some("0123456789abcdef".into()));
        let access = Access::new(options.clone(), Arc::new(|_| {})).unwrap();
        let look = access.user(PEER, [secret.as_str()]).unwrap();
        assert_eq!((look.token(), look.role()), (Some("tablet"), Role::Look));
        assert!(look.check(Role::Look, "seeing").is_ok());
        let why = look.check(Role::Operate, "publishing").unwrap_err();
        assert_eq!(
            why,
            "the token \"tablet\" has the role look; publishing needs the role operate"
        );
        let drive = access.user(PEER, ["0123456789abcdef"]).unwrap();
        assert!(drive.check(Role::Drive, "driving").is_ok());
        assert_eq!(access.user(PEER, []).unwrap_err(), Denied::Missing);
        assert_eq!(access.user(PEER, ["x"]).unwrap_err(), Denied::Wrong);
        // A changed role ends what was allowed before.
        add_token(&keys, "tablet", Role::Drive, None).unwrap();
        while access.is_current(&look) {}
        assert!(access.is_current(&drive));
        remove_token(&keys, "tablet").unwrap();
        options.read_only = true;
        let access = Access::new(options, Arc::new(|_| {})).unwrap();
        let user = access.user(PEER, ["0123456789abcdef"]).unwrap();
        assert!(user.check(Role::Look, "seeing").is_ok());
        let why = user.check(Role::Operate, "publishing").unwrap_err();
        assert!(why.contains("--read-only"), "{why}");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn server_stays_closed_without_its_last_token_and_without_its_file() {
        let dir = std::env::temp_dir().join(format!("rnet-access-file-{}", std::process::id()));
        let keys = keys_file(&dir);
        let secret = add_token(&keys, "tablet", Role::Look, None).unwrap();
        let options = AccessOptions { keys: Some(keys.clone()), ..AccessOptions::local(0) };
        let events = Arc::new(Mutex::new(Vec::new()));
        let said = events.clone();
        let on_event = move |text: &str| said.lock().unwrap().push(text.to_owned());
        let access = Access::new(options, Arc::new(on_event)).unwrap();
        let user = access.user(PEER, [secret.as_str()]).unwrap();
        let content = fs::read(&keys).unwrap();
        fs::write(&keys, &content[..content.len() / 2]).unwrap();
        while access.is_current(&user) {}
        // Connections still get the last certificate.
        assert!(access.acceptor().is_some());
        fs::write(&keys, content).unwrap();
        while !access.is_current(&user) {}
        let events = events.lock().unwrap().clone();
        assert!(events[0].contains("keys.pem") && events[1].contains("again"), "{events:?}");
        remove_token(&keys, "tablet").unwrap();
        while access.is_current(&user) {}
        assert_eq!(access.user(PEER, []).unwrap_err(), Denied::Missing);
        fs::remove_dir_all(dir).unwrap();
    }
}
