//! `rnet-link discover`: tests multicast in both directions, for `rnet doctor`.

use std::time::Duration;

use rnet::inspect::Location;
use rnet_net::config::{Config, WithSource};
use rnet_net::zenoh::discover_hosts;
use serde_json::json;

use crate::args::Options;
use crate::{Outcome, error_text, print_line};

/// A link with missing hosts scouts twice a second.
const LISTEN_TIME: Duration = Duration::from_secs(2);

pub fn discover(options: &Options) -> Outcome {
    let config = Config::load(&options.overrides()).map_err(error_text)?;
    let domain = options.domain.as_ref().map(|id| id.as_str());
    let location =
        Location::new(domain, options.dir.clone(), options.group.clone()).map_err(error_text)?;
    let found = discover_hosts(location.id(), &WithSource::values(&config.interfaces), LISTEN_TIME)
        .map_err(|error| format!("cannot listen for multicast: {error}"))?;
    let document = json!({
        "groups": found.groups,
        "asked_by": found.asked_by,
        "answered_by": found.answered_by,
    });
    print_line(format_args!("{document:#}"))
}
