//! Access control of `rnet dashboard` and `rnet foxglove`: tokens, and TLS.

use std::net::SocketAddr;

use rnet_dashboard::{AccessError, AccessOptions, TlsFiles};

use crate::failure::{Failure, Outcome};
use crate::input::{self, InputLimit};
use crate::shared_args::ServeArgs;

/// Size limit of a file with a token.
const TOKEN_LIMIT: InputLimit = InputLimit::new(1 << 20, "a token", "1 MiB");

impl ServeArgs {
    /// Access to a server on this port, with the token of the command line or the environment, if any.
    pub fn access(
        &self,
        port: u16,
        token: Option<String>,
        read_only: bool,
    ) -> Outcome<AccessOptions> {
        let token = match token {
            Some(token) => Some(token),
            None => self.token()?,
        };
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        let tls = tls.map(|(cert, key)| TlsFiles { cert, key });
        let address = SocketAddr::new(self.bind, port);
        let needs_keys = !self.bind.is_loopback() && (token.is_none() || tls.is_none());
        let default_keys = || needs_keys.then(rnet_keys::default_keys_path).flatten();
        let keys = self.keys.clone().or_else(default_keys);
        Ok(AccessOptions { address, token, tls, keys, read_only })
    }

    /// The token of `--token-file`.
    fn token(&self) -> Outcome<Option<String>> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let text = String::from_utf8(input::read(path, &TOKEN_LIMIT)?).map_err(|_| {
            Failure::Failed(format!("{} does not hold a token: it is not text", path.display()))
        })?;
        Ok(Some(text.trim().to_owned()))
    }
}

/// The failure of a server that cannot start.
pub fn access_failure(error: AccessError) -> Failure {
    match error {
        AccessError::Unprotected(why) => Failure::Usage(why),
        AccessError::Files(why) => Failure::Failed(why),
    }
}
