//! A link whose addresses, ports or interfaces do not exist yet or are in use: it holds the role, reports
//! what it waits for, and retries.

use std::time::{Duration, Instant};

use rnet::bridge::HeldRole;
use rnet::msgs::{LinkStatus, timestamp_now};
use rnet::{Node, Publisher};
use rnet_net::Presence;
use rnet_net::config::{Config, WithSource};
use rnet_net::link::STATUS_TOPIC;
use rnet_net::zenoh::{ZenohError, ZenohOptions};

use crate::args::Options;
use crate::config_watcher::{ConfigChange, ConfigWatcher};
use crate::domain::Domain;
use crate::run::LinkExit;
use crate::{detach, error_text, stop};

/// The interval between two tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// The interval between two status messages.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// The network to open.
pub struct NetworkWait<'a> {
    pub options: &'a Options,
    pub config: &'a Config,
    pub presence: Presence,
    pub network: &'a ZenohOptions,
}

impl NetworkWait<'_> {
    /// Waits until the network can be opened, or until the link has to exit for the returned reason.
    pub fn wait_until_usable(
        &self,
        held: &HeldRole,
        file: &mut ConfigWatcher,
        background: bool,
    ) -> Result<Option<LinkExit>, String> {
        let mut status: Option<WaitStatus> = None;
        while let Err(error) = self.network.check() {
            if stop::is_requested() {
                return Ok(Some(LinkExit::Requested));
            }
            if !held.holds() {
                return Err(
                    "another process has become the link, because this one did not respond"
                        .to_owned(),
                );
            }
            if let Some(ConfigChange::Settings) = file.poll_change() {
                return Ok(Some(LinkExit::Restart(format!("{} has changed", file.name()))));
            }
            let why = format!("{}{error}; retrying until it works", self.setting_source(&error));
            let status = match &mut status {
                Some(status) => status,
                none => {
                    eprintln!("rnet-link: {why}");
                    if background {
                        detach::silence_stderr();
                    }
                    none.insert(WaitStatus::new(self.options)?)
                }
            };
            status.publish(self, why);
            std::thread::sleep(RETRY_INTERVAL); // sleep: interval between two tries
        }
        Ok(None)
    }

    /// Reports for a while why the network could not be opened although everything existed before. After it
    /// returns, another process has to try.
    pub fn pause_before_restart(&self, error: &std::io::Error) -> Result<String, String> {
        let why = format!("{error}; retrying until it works");
        eprintln!("rnet-link: {why}");
        WaitStatus::new(self.options)?.publish(self, why.clone());
        std::thread::sleep(STATUS_INTERVAL); // sleep: interval between two tries
        Ok(why)
    }

    /// The source of the setting that the network cannot use, as a prefix for its error.
    fn setting_source(&self, error: &ZenohError) -> String {
        fn of<T: PartialEq>(list: &[WithSource<T>], value: &T) -> Option<String> {
            let listed = list.iter().find(|listed| listed.value == *value)?;
            Some(format!("{}: ", listed.source))
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

/// The status of the link meanwhile.
struct WaitStatus {
    publisher: Publisher<LinkStatus>,
    _node: Node,
    sent: Option<Instant>,
}

impl WaitStatus {
    fn new(options: &Options) -> Result<WaitStatus, String> {
        let node = Domain::node(options, "link").open().map_err(error_text)?;
        let publisher =
            node.publisher(STATUS_TOPIC).transient_local(1).open().map_err(error_text)?;
        Ok(WaitStatus { publisher, _node: node, sent: None })
    }

    fn publish(&mut self, of: &NetworkWait<'_>, why: String) {
        if self.sent.is_some_and(|sent| sent.elapsed() < STATUS_INTERVAL) {
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
            interfaces: WithSource::values(&config.interfaces),
            ..LinkStatus::default()
        };
        // The topic keeps one message. A send fails only without memory, which other errors report.
        let _ = self.publisher.send(&status);
    }
}
