//! `rnet dashboard`: runs the library's server with this program's arguments and signals.

use std::sync::Arc;
use std::time::Duration;

use rnet::inspect::Location;
use rnet_dashboard::{Dashboard, DashboardError, Options};
use serde_json::json;

use super::access::access_failure;
use super::dashboard_args::DashboardArgs;
use super::foxglove_server::FoxgloveServer;
use crate::context::{Context, print_note};
use crate::failure::{Failure, Outcome};
use crate::{launch, signal};
use rnet_format::text::escape_controls;

/// A signal ends the sleep sooner.
const SLEEP_TIME: Duration = Duration::from_secs(3600);

fn failure(error: DashboardError) -> Failure {
    match error {
        DashboardError::Rnet(error) => error.into(),
        DashboardError::Access(error) => access_failure(error),
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
    options.access = args.serve.access(args.port, token(&args), args.read_only)?;
    options.names.clone_from(&args.names);
    options.on_event = Arc::new(|text| print_note(&escape_controls(text)));
    options.recordings = Some(args.recordings.clone().unwrap_or_else(|| ".".into()));
    // Without `--recordings`, a missing folder is no error here: the page reports it.
    if args.recordings.is_some() {
        options.check_recordings().map_err(failure)?;
    }
    let keeper = launch::keeper_command_factory(context.global());
    options.keeper = Some(Arc::new(keeper));
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
    let asks = if dashboard.requires_token() { " (requires a token)" } else { "" };
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
    let mut options = rnet_foxglove::Options::new(location);
    options.access = args.serve.access(port, token(args), args.read_only)?;
    options.origins.clone_from(&args.origins);
    FoxgloveServer::start(options)
}

/// The token of `--token` or of the environment. `--token-file` replaces the latter.
fn token(args: &DashboardArgs) -> Option<String> {
    let set = || std::env::var("RNET_DASHBOARD_TOKEN").ok().filter(|token| !token.is_empty());
    let no_file = args.serve.token_file.is_none();
    args.token.clone().or_else(|| no_file.then(set).flatten())
}
