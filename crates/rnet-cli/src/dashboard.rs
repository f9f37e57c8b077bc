//! `rnet dashboard`: the library's server, with this program's words and signals.

pub mod args;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rnet_dashboard::{Access, Dashboard, DashboardError, Options, Tls};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::{self, Limit};
use crate::{launch, signal};
use args::DashboardArgs;

/// A file of a token, a certificate or a key.
const SECRET: Limit = Limit::new(1 << 20, "a token, certificate or key", "1 MiB");
/// A signal ends it sooner.
const LONG: Duration = Duration::from_secs(3600);

impl From<DashboardError> for Failure {
    fn from(error: DashboardError) -> Failure {
        match error {
            DashboardError::Rnet(error) => error.into(),
            DashboardError::Access(_) => Failure::Usage(error.to_string()),
            DashboardError::Listen { .. } => {
                Failure::Failed(format!("{error}; --port 0 takes any that is free"))
            }
            error => Failure::Failed(error.to_string()),
        }
    }
}

pub fn run(context: &mut Context, args: DashboardArgs) -> Outcome {
    let location = context.location_that_exists()?;
    let domain = location.id().to_string();
    let mut options = Options::new(location, args.port);
    options.access = access(&args)?;
    options.read_only = args.read_only;
    options.recordings = Some(args.recordings);
    let keeper = launch::keeper_of(context.global());
    options.keeper = Some(Arc::new(keeper));
    let has_token = options.access.token.is_some();
    let dashboard = Dashboard::start(options)?;
    let url = dashboard.url();
    if context.json() {
        context.json_line(&json!({"domain": domain, "url": url, "read_only": args.read_only}))?;
        context.flush()?;
    }
    let asks = if has_token { " (it asks for the token)" } else { "" };
    context.say(format_args!("the dashboard of domain {domain}: {url}{asks}"));
    let stopped = loop {
        if let Err(stopped) = signal::sleep(LONG) {
            break stopped;
        }
    };
    dashboard.stop();
    Err(stopped)
}

fn access(args: &DashboardArgs) -> Outcome<Access> {
    let read = |path: &PathBuf| input::read(path, &SECRET);
    let set = || std::env::var("RNET_DASHBOARD_TOKEN").ok().filter(|token| !token.is_empty());
    let token = match (&args.token, &args.token_file) {
        (Some(token), _) => Some(token.clone()),
        (None, Some(path)) => Some(token_of(path, read(path)?)?),
        (None, None) => set(),
    };
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(Tls { cert_pem: read(cert)?, key_pem: read(key)? }),
        _ => None,
    };
    let address = SocketAddr::new(args.bind, args.port);
    Ok(Access { address, names: args.names.clone(), token, tls })
}

fn token_of(path: &Path, bytes: Vec<u8>) -> Outcome<String> {
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::Failed(format!("{} does not hold a token: it is no text", path.display()))
    })?;
    Ok(text.trim().to_owned())
}
