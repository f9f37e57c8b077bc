//! `rnet dashboard`: the library's server, with this program's words and signals.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rnet::inspect::Location;
use rnet_dashboard::{Access, Dashboard, DashboardError, Options};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::foxglove::{self, Viewers};
use crate::shared_args::ServeArgs;
use crate::{launch, signal};

/// Serve a web page that shows the domain and operates it
///
/// The page stands in this program. Beyond this computer (--bind) it is served with a token and TLS only; from
/// elsewhere `ssh -L 8420:127.0.0.1:8420 ROBOT` needs neither. /metrics and /healthz are served too.
#[derive(Debug, Args)]
pub struct DashboardArgs {
    /// The port; 0 takes any that is free
    #[arg(long, short, default_value_t = 8420)]
    pub port: u16,
    #[command(flatten)]
    pub serve: ServeArgs,
    /// A name by which browsers reach it, beside its address: robot.local
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,
    /// What browsers have to show [env: RNET_DASHBOARD_TOKEN]; users of this computer see it in lists of processes
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    pub token: Option<String>,
    /// Refuse all changes: state, parameters, commands, calls, recordings, launched nodes
    #[arg(long)]
    pub read_only: bool,
    /// Where recordings that are started from the page are written: a folder that is there [default: .]
    #[arg(long, value_name = "DIR")]
    pub recordings: Option<PathBuf>,
    /// Let viewers of the Foxglove protocol in, too, on this port [without a port: 8765]
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "8765")]
    pub foxglove: Option<u16>,
    /// Let pages of this origin connect as viewers, such as https://app.foxglove.dev; may be given many times
    #[arg(long = "allow-origin", value_name = "ORIGIN", requires = "foxglove")]
    pub origins: Vec<String>,
}

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
    let mut options = Options::new(location.clone(), args.port);
    options.access = access(&args)?;
    options.read_only = args.read_only;
    options.recordings = Some(args.recordings.clone().unwrap_or_else(|| ".".into()));
    // Nobody has said that there will be recordings where it is just started: there the page tells.
    if args.recordings.is_some() {
        options.check_recordings()?;
    }
    let keeper = launch::keeper_of(context.global());
    options.keeper = Some(Arc::new(keeper));
    let has_token = options.access.token.is_some();
    let dashboard = Dashboard::start(options)?;
    let viewers = args.foxglove.map(|port| viewers(location, &args, port)).transpose()?;
    let url = dashboard.url();
    if context.json() {
        let foxglove = viewers.as_ref().map(Viewers::url);
        let document = json!({
            "domain": domain, "url": url, "read_only": args.read_only, "foxglove": foxglove,
        });
        context.json_line(&document)?;
        context.flush()?;
    }
    let asks = if has_token { " (it asks for the token)" } else { "" };
    context.say(format_args!("the dashboard of domain {domain}: {url}{asks}"));
    if let Some(viewers) = viewers {
        context.say(format_args!("viewers of the Foxglove protocol: {}", viewers.url()));
        // Who has stopped a robot by the page has not released it because viewers see nothing any more.
        if let Err(Failure::Failed(why)) = viewers.tell(context) {
            context.say(format_args!("{why}; the dashboard goes on"));
        }
    }
    let stopped = loop {
        if let Err(stopped) = signal::sleep(LONG) {
            break stopped;
        }
    };
    dashboard.stop();
    Err(stopped)
}

/// The server of the Foxglove protocol, for whom the dashboard would let in, too.
fn viewers(location: Location, args: &DashboardArgs, port: u16) -> Outcome<Viewers> {
    let mut options = foxglove::options(location, &args.serve, port)?;
    options.token = token(args)?;
    options.read_only = args.read_only;
    options.origins.clone_from(&args.origins);
    Viewers::let_in(options)
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
