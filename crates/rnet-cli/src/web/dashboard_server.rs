//! `rnet dashboard`: runs the library's server with this program's arguments and signals.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rnet::inspect::Location;
use rnet_dashboard::{Access, Dashboard, DashboardError, Options};
use serde_json::json;

use super::dashboard_args::DashboardArgs;
use super::foxglove_server::{self as foxglove, FoxgloveServer};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::{launch, signal};

/// A signal ends the sleep sooner.
const SLEEP_TIME: Duration = Duration::from_secs(3600);

fn failure(error: DashboardError) -> Failure {
    match error {
        DashboardError::Rnet(error) => error.into(),
        DashboardError::Access(_) => Failure::Usage(error.to_string()),
        DashboardError::Listen { .. } => {
            Failure::Failed(format!("{error}; use --port 0 for any free port"))
        }
        error => Failure::Failed(error.to_string()),
    }
}

pub fn run(context: &mut Context, args: DashboardArgs) -> Outcome {
    let location = context.existing_location()?;
    let domain = location.id().to_string();
    let mut options = Options::new(location.clone(), args.port);
    options.access = access(&args)?;
    options.read_only = args.read_only;
    options.recordings = Some(args.recordings.clone().unwrap_or_else(|| ".".into()));
    // Without `--recordings`, a missing folder is no error here: the page reports it.
    if args.recordings.is_some() {
        options.check_recordings().map_err(failure)?;
    }
    let keeper = launch::keeper_command_factory(context.global());
    options.keeper = Some(Arc::new(keeper));
    let has_token = options.access.token.is_some();
    let dashboard = Dashboard::start(options).map_err(failure)?;
    let viewers = args.foxglove.map(|port| start_foxglove(location, &args, port)).transpose()?;
    let url = dashboard.url();
    if context.json() {
        let foxglove = viewers.as_ref().map(FoxgloveServer::url);
        let document = json!({
            "domain": domain, "url": url, "read_only": args.read_only, "foxglove": foxglove,
        });
        context.json_line(&document)?;
        context.flush()?;
    }
    let asks = if has_token { " (requires the token)" } else { "" };
    context.eprintln(format_args!("dashboard of domain {domain}: {url}{asks}"));
    if let Some(viewers) = viewers {
        context.eprintln(format_args!("viewers of the Foxglove protocol: {}", viewers.url()));
        // If the viewers' server fails, a robot that the page has stopped must stay stopped.
        if let Err(Failure::Failed(why)) = viewers.run_until_stopped(context) {
            context.eprintln(format_args!("{why}; the dashboard continues"));
        }
    }
    let stopped = loop {
        if let Err(stopped) = signal::sleep(SLEEP_TIME) {
            break stopped;
        }
    };
    dashboard.stop();
    Err(stopped)
}

/// The Foxglove server, with the same access rules as the dashboard.
fn start_foxglove(location: Location, args: &DashboardArgs, port: u16) -> Outcome<FoxgloveServer> {
    let mut options = foxglove::options(location, &args.serve, port)?;
    options.token = token(args)?;
    options.read_only = args.read_only;
    options.origins.clone_from(&args.origins);
    FoxgloveServer::start(options)
}

fn access(args: &DashboardArgs) -> Outcome<Access> {
    let tls = args.serve.tls()?;
    let address = SocketAddr::new(args.serve.bind, args.port);
    Ok(Access { address, names: args.names.clone(), token: token(args)?, tls })
}

fn token(args: &DashboardArgs) -> Outcome<Option<String>> {
    let set = || std::env::var("RNET_DASHBOARD_TOKEN").ok().filter(|token| !token.is_empty());
    match &args.token {
        Some(token) => Ok(Some(token.clone())),
        None => Ok(args.serve.token()?.or_else(set)),
    }
}
