//! A link whose addresses, ports or interfaces are not there yet, or are taken: it holds the role, says what it waits
//! for, and tries again.

use std::time::{Duration, Instant};

use rnet::msgs::{LinkStatus, timestamp_now};
use rnet::role::HeldRole;
use rnet::{Node, Publisher, PublisherOptions};
use rnet_net::Presence;
use rnet_net::config::{Config, Listed};
use rnet_net::link::STATUS_TOPIC;
use rnet_net::zenoh::{ZenohError, ZenohOptions};

use crate::args::Options;
use crate::domain::Domain;
use crate::file::{Change, Watched};
use crate::run::End;
use crate::{detach, stop, told};

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(250);
/// Between two words of the status.
const PERIOD: Duration = Duration::from_secs(1);

/// What is to be opened.
pub struct Waiting<'a> {
    pub options: &'a Options,
    pub config: &'a Config,
    pub presence: Presence,
    pub network: &'a ZenohOptions,
}

impl Waiting<'_> {
    /// Waits until the network can be opened, or the link is to end, for the reason that is returned.
    pub fn until_usable(
        &self,
        held: &HeldRole,
        file: &mut Watched,
        background: bool,
    ) -> Result<Option<End>, String> {
        let mut status: Option<Status> = None;
        while let Err(error) = self.network.check() {
            if stop::is_set() {
                return Ok(Some(End::Asked));
            }
            if !held.holds() {
                return Err(
                    "another process has become the link, because this one did not respond"
                        .to_owned(),
                );
            }
            if let Some(Change::Settings) = file.change() {
                return Ok(Some(End::Anew(format!("{} has changed", file.name()))));
            }
            let why = format!("{}{error}; retrying until it works", self.given_by(&error));
            let status = match &mut status {
                Some(status) => status,
                none => {
                    eprintln!("rnet-link: {why}");
                    if background {
                        detach::silence();
                    }
                    none.insert(Status::new(self.options)?)
                }
            };
            status.tell(self, why);
            std::thread::sleep(PAUSE); // sleep: between two tries
        }
        Ok(None)
    }

    /// Says why the network could not be opened, though all was there before, for a while; then, as this returns, another
    /// process has to try.
    pub fn begin_anew(&self, error: &std::io::Error) -> Result<String, String> {
        let why = format!("{error}; retrying until it works");
        eprintln!("rnet-link: {why}");
        Status::new(self.options)?.tell(self, why.clone());
        std::thread::sleep(PERIOD); // sleep: between two tries
        Ok(why)
    }

    /// Who gave the setting that the network cannot use, as its error begins.
    fn given_by(&self, error: &ZenohError) -> String {
        fn of<T: PartialEq>(list: &[Listed<T>], value: &T) -> Option<String> {
            let listed = list.iter().find(|listed| listed.value == *value)?;
            Some(format!("{}: ", listed.from))
        }
        let from = match error {
            ZenohError::PortInUse { endpoint, .. } | ZenohError::BadListen { endpoint, .. } => {
                of(&self.config.listen, endpoint)
            }
            ZenohError::NoInterface { name, .. } => of(&self.config.interfaces, name),
            _ => None,
        };
        from.unwrap_or_default()
    }
}

/// What the link says of itself meanwhile.
struct Status {
    publisher: Publisher<LinkStatus>,
    _node: Node,
    sent: Option<Instant>,
}

impl Status {
    fn new(options: &Options) -> Result<Status, String> {
        let node = Domain::node(options, "link").open().map_err(told)?;
        let options = PublisherOptions::new().transient_local(1);
        let publisher = node.publisher_with(STATUS_TOPIC, options).map_err(told)?;
        Ok(Status { publisher, _node: node, sent: None })
    }

    fn tell(&mut self, of: &Waiting<'_>, why: String) {
        if self.sent.is_some_and(|sent| sent.elapsed() < PERIOD) {
            return;
        }
        self.sent = Some(Instant::now());
        let config = of.config;
        let status = LinkStatus {
            timestamp: Some(timestamp_now()),
            host: config.host.clone(),
            id: of.presence.host.to_string(),
            term: of.presence.term,
            pid: std::process::id(),
            version: rnet::VERSION.to_owned(),
            mode: config.mode.to_string(),
            problems: vec![why],
            connect: config.connect.iter().map(ToString::to_string).collect(),
            interfaces: Listed::values(&config.interfaces),
            ..LinkStatus::default()
        };
        // It keeps one message; a send fails where there is no memory, which others are told of.
        let _ = self.publisher.send(&status);
    }
}
