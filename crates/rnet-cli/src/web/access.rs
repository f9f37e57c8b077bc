//! Access control of `rnet dashboard` and `rnet foxglove`: a token, and TLS.

use rnet_dashboard::Tls;

use crate::failure::{Failure, Outcome};
use crate::input::{self, InputLimit};
use crate::shared_args::ServeArgs;

/// Size limit of a file with a token, a certificate or a key.
const SECRET_LIMIT: InputLimit = InputLimit::new(1 << 20, "a token, certificate or key", "1 MiB");

impl ServeArgs {
    /// The token of `--token-file`.
    pub fn token(&self) -> Outcome<Option<String>> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let text = String::from_utf8(input::read(path, &SECRET_LIMIT)?).map_err(|_| {
            Failure::Failed(format!("{} does not hold a token: it is not text", path.display()))
        })?;
        Ok(Some(text.trim().to_owned()))
    }

    /// The certificate and the key, if both are given.
    pub fn tls(&self) -> Outcome<Option<Tls>> {
        let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let [cert_pem, key_pem] =
            [input::read(cert, &SECRET_LIMIT)?, input::read(key, &SECRET_LIMIT)?];
        Ok(Some(Tls { cert_pem, key_pem }))
    }
}
