//! What the certificates of hosts allow: the right that each kind of topic needs (docs/design/rights.md).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use rnet::bridge::{StateAccess, StateNeed, StateTopic, command_of_authority, command_of_report};
use rnet::trace::traced_topic;
use rnet::{CallPart, Endpoint, EndpointQos, Error, NamePattern};
use rnet_keys::{HostCertificate, Right};

use super::LinkContext;
use super::lock::lock;

/// Which end of a topic an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Publisher,
    Subscriber,
}

impl Side {
    pub fn of(endpoint: &Endpoint) -> Side {
        match endpoint.qos {
            EndpointQos::Publisher(_) => Side::Publisher,
            EndpointQos::Subscriber(_) => Side::Subscriber,
        }
    }
}

/// A host whose rights count, with its certificate.
#[derive(Clone, Copy)]
pub struct Holder<'a> {
    pub certificate: &'a HostCertificate,
    /// The name by which this host knows it; `None` for this host.
    pub shown_name: Option<&'a str>,
}

/// What a certificate must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requirement {
    /// One of these rights on the name.
    OneOf(&'static [Right]),
    /// This right, on any name: the home of the keys checks each request.
    OnAnyName(Right),
    /// The name of the home with this hash.
    Home(u64),
    /// The number that the home has given these readers.
    Readers(u64),
}

/// What an endpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need<'a> {
    /// What its host would do.
    action: &'static str,
    name: &'a str,
    requirement: Requirement,
}

/// What an endpoint of `topic` needs. Reserved topics that are not listed here are topics like any other.
fn need(topic: &str, side: Side) -> Need<'_> {
    use Requirement::{Home, OnAnyName, OneOf, Readers};
    use Right::{Call, Drive, Publish, Read, Subscribe, Write};
    let is_publisher = side == Side::Publisher;
    let of = |action, name, requirement| Need { action, name, requirement };
    if let Some((service, part)) = CallPart::split_topic(topic) {
        let is_client = is_publisher == matches!(part, "request" | "control");
        let state = StateTopic::parse(service);
        return match (state, command_of_authority(service)) {
            (Some(StateTopic::Read(_)), _) if is_client => {
                of("read state through", service, OnAnyName(Read))
            }
            (Some(StateTopic::Write(_)), _) if is_client => {
                of("write state through", service, OnAnyName(Write))
            }
            (Some(StateTopic::Read(home) | StateTopic::Write(home)), _) => {
                of("answer for the state of another host:", topic, Home(home))
            }
            (_, Some(command)) if is_client => of("drive", command, OneOf(&[Drive])),
            (_, Some(command)) => of("receive commands of", command, OneOf(&[Publish])),
            _ if is_client => of("call", service, OneOf(&[Call])),
            _ => of("serve", service, OneOf(&[Publish])),
        };
    }
    if let Some(command) = command_of_report(topic) {
        return match is_publisher {
            true => of("receive commands of", command, OneOf(&[Publish])),
            false => of("subscribe to the status of", command, OneOf(&[Subscribe, Drive])),
        };
    }
    match (StateTopic::parse(topic), traced_topic(topic)) {
        (Some(StateTopic::Feed(home, _)), _) if is_publisher => {
            of("answer for the state of another host:", topic, Home(home))
        }
        (Some(StateTopic::Feed(_, readers)), _) => {
            of("follow keys with rights that it does not have:", topic, Readers(readers))
        }
        (_, Some(traced)) if is_publisher => {
            of("publish traces of", traced, OneOf(&[Subscribe, Publish]))
        }
        (_, Some(traced)) => of("subscribe to traces of", traced, OneOf(&[Subscribe])),
        _ if is_publisher => of("publish", topic, OneOf(&[Publish, Drive])),
        _ => of("subscribe to", topic, OneOf(&[Subscribe])),
    }
}

/// Why an endpoint, or a request for state, is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRight {
    host: String,
    is_own: bool,
    action: &'static str,
    name: String,
    /// The right to add, and its names; `None` if none helps.
    right: Option<(Right, String)>,
}

impl MissingRight {
    /// Whether it is this host that lacks the right.
    pub fn is_own(&self) -> bool {
        self.is_own
    }
}

impl fmt::Display for MissingRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MissingRight { host, is_own, action, name, right } = self;
        match is_own {
            true => write!(f, "this host ({host}) may not {action} {name}")?,
            false => write!(f, "host {host} may not {action} {name}")?,
        }
        match right {
            Some((right, pattern)) => write!(
                f,
                ": its certificate has no right {right} for it; on the authority's machine, issue one with all \
                 its rights: rnet keys add-host {host} --{right} {pattern} ..."
            ),
            None => Ok(()),
        }
    }
}

/// The number of the readers with the rights of this host: they may have the same feeds. If the rights change,
/// the number changes.
fn readers_of(shown_name: &str, certificate: &HostCertificate) -> u64 {
    let patterns: Vec<&str> = certificate.rights.patterns(Right::Read).collect();
    StateTopic::hash_host(&format!("{shown_name} {}", patterns.join(" ")))
}

impl Holder<'_> {
    fn has(self, need: &Need<'_>) -> bool {
        let rights = &self.certificate.rights;
        match need.requirement {
            Requirement::OneOf(any) => any.iter().any(|right| rights.allows(*right, need.name)),
            Requirement::OnAnyName(right) => rights.patterns(right).next().is_some(),
            Requirement::Home(hash) => StateTopic::hash_host(&self.certificate.name) == hash,
            // This host does not know the name by which the home knows it.
            Requirement::Readers(readers) => {
                self.shown_name.is_none_or(|name| readers_of(name, self.certificate) == readers)
            }
        }
    }

    fn missing(
        self,
        action: &'static str,
        name: &str,
        right: Option<(Right, String)>,
    ) -> MissingRight {
        let (host, name) = (self.certificate.name.clone(), name.to_owned());
        MissingRight { host, is_own: self.shown_name.is_none(), action, name, right }
    }

    /// Checks that the host may have this endpoint.
    ///
    /// # Errors
    /// The missing right.
    pub fn check(self, topic: &str, side: Side) -> Result<(), MissingRight> {
        let need = need(topic, side);
        if self.has(&need) {
            return Ok(());
        }
        let right = match need.requirement {
            Requirement::OneOf(rights) => {
                rights.first().map(|right| (*right, need.name.to_owned()))
            }
            Requirement::OnAnyName(right) => Some((right, "PATTERN".to_owned())),
            Requirement::Home(_) | Requirement::Readers(_) => None,
        };
        Err(self.missing(need.action, need.name, right))
    }

    /// Checks a request of the host for keys of this one.
    fn check_state(self, need: StateNeed<'_>) -> Result<(), MissingRight> {
        let rights = &self.certificate.rights;
        // A pattern that ends so and matches the start of the keys matches all of them.
        let is_all = |start: &str| {
            let open = rights.patterns(Right::Read).filter(|pattern| pattern.ends_with("/**"));
            let mut patterns = open.filter_map(|one| NamePattern::foreign("key pattern", one).ok());
            patterns.any(|pattern| pattern.matches(start))
        };
        let (is_allowed, action, name, right) = match need {
            StateNeed::Read(key) => (rights.allows(Right::Read, key), "read", key, Right::Read),
            StateNeed::Write(key) => (rights.allows(Right::Write, key), "write", key, Right::Write),
            StateNeed::ReadAll(start) => (is_all(start), "read all keys under", start, Right::Read),
        };
        let pattern = match need {
            StateNeed::ReadAll(start) => format!("{}/**", start.trim_end_matches('/')),
            StateNeed::Read(_) | StateNeed::Write(_) => name.to_owned(),
        };
        match is_allowed {
            true => Ok(()),
            false => Err(self.missing(action, name, Some((right, pattern)))),
        }
    }
}

/// The certificates of the present hosts, by the names that they have here.
#[derive(Default)]
pub struct Certificates(Mutex<BTreeMap<String, Arc<HostCertificate>>>);

impl Certificates {
    pub fn set(&self, shown_name: String, certificate: Option<Arc<HostCertificate>>) {
        let mut all = lock(&self.0);
        match certificate {
            Some(certificate) => all.insert(shown_name, certificate),
            None => all.remove(&shown_name),
        };
    }
}

/// Decides about requests of other hosts for the state of this one.
pub fn state_access(shared: &Arc<LinkContext>) -> StateAccess {
    let shared = Arc::downgrade(shared);
    Arc::new(move |host, need| {
        let refused = |why: String| {
            let what = format!("request of host {host} for the state of this host");
            Err(Error::BadValue { what, why })
        };
        let Some(shared) = shared.upgrade() else {
            return refused("its link has ended; repeat it".to_owned());
        };
        let certificate = lock(&shared.certificates.0).get(host).cloned();
        let Some(certificate) = certificate else {
            return match shared.own_certificate().is_some() {
                true => refused("it is not connected; repeat it".to_owned()),
                false => Ok(0),
            };
        };
        let holder = Holder { certificate: &certificate, shown_name: Some(host) };
        match holder.check_state(need) {
            Ok(()) => Ok(readers_of(host, &certificate)),
            Err(missing) => refused(missing.to_string()),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use rnet_keys::Rights;

    use super::*;

    fn certificate(rights: &[(Right, &str)]) -> HostCertificate {
        let mut allowed = Rights::default();
        for (right, pattern) in rights {
            allowed.allow(*right, NamePattern::foreign("pattern", pattern).unwrap());
        }
        let now = SystemTime::now();
        let (name, serial) = ("arm".to_owned(), "1".to_owned());
        HostCertificate { name, serial, rights: allowed, not_before: now, not_after: now }
    }

    #[test]
    fn each_topic_needs_the_right_of_its_kind() {
        use Right::{Call, Drive, Publish, Read, Subscribe, Write};
        let state =
            |name: &str| format!("/_rnet/state/h{:016x}/{name}", StateTopic::hash_host("arm"));
        let read = format!("/_rnet/call{}/s00000001", state("read"));
        let write = format!("/_rnet/call{}/s00000001", state("write"));
        // The topic, what its publisher needs, and what its subscriber needs; each one of these suffices.
        type Needed<'a> = &'a [(Right, &'a str)];
        let table: [(&str, Needed<'_>, Needed<'_>); 14] = [
            ("/scan", &[(Publish, "/scan"), (Drive, "/scan")], &[(Subscribe, "/scan")]),
            (
                "/_rnet/other",
                &[(Publish, "/_rnet/other"), (Drive, "/_rnet/other")],
                &[(Subscribe, "/_rnet/other")],
            ),
            ("/_rnet/call/a/plan/s00000001/request", &[(Call, "/a/plan")], &[(Publish, "/a/plan")]),
            ("/_rnet/call/a/plan/s00000001/control", &[(Call, "/a/plan")], &[(Publish, "/a/plan")]),
            ("/_rnet/call/a/plan/s00000001/type", &[(Publish, "/a/plan")], &[(Call, "/a/plan")]),
            ("/_rnet/call/a/plan/c00000001/reply", &[(Publish, "/a/plan")], &[(Call, "/a/plan")]),
            ("/_rnet/call/a/plan/c00000001/status", &[(Publish, "/a/plan")], &[(Call, "/a/plan")]),
            (
                "/_rnet/call/a/plan/c00000001/feedback",
                &[(Publish, "/a/plan")],
                &[(Call, "/a/plan")],
            ),
            (
                "/_rnet/call/cmd/authority/s00000001/request",
                &[(Drive, "/cmd")],
                &[(Publish, "/cmd")],
            ),
            ("/_rnet/call/cmd/authority/c00000001/reply", &[(Publish, "/cmd")], &[(Drive, "/cmd")]),
            (
                "/_rnet/command/cmd/log",
                &[(Publish, "/cmd")],
                &[(Subscribe, "/cmd"), (Drive, "/cmd")],
            ),
            (
                "/_rnet/trace/scan",
                &[(Subscribe, "/scan"), (Publish, "/scan")],
                &[(Subscribe, "/scan")],
            ),
            // The server is the home: host arm, whatever its rights.
            (&format!("{read}/request"), &[(Read, "/any")], &[]),
            (&format!("{write}/request"), &[(Write, "/any")], &[]),
        ];
        for (topic, publisher, subscriber) in table {
            for (side, needed) in [(Side::Publisher, publisher), (Side::Subscriber, subscriber)] {
                let allows = |certificate: &HostCertificate| {
                    let holder = Holder { certificate, shown_name: Some("arm") };
                    holder.check(topic, side).is_ok()
                };
                for right in Right::ALL {
                    for pattern in ["/**", "/scan", "/_rnet/other", "/a/plan", "/cmd", "/any"] {
                        let fits = needed.is_empty()
                            || needed.iter().any(|(of, name)| {
                                let any_name = matches!(of, Read | Write);
                                *of == right && (pattern == "/**" || pattern == *name || any_name)
                            });
                        let found = allows(&certificate(&[(right, pattern)]));
                        // `/**` gives also the rights that a name alone does not need.
                        assert_eq!(found, fits, "{topic} {side:?} {right} {pattern}");
                    }
                }
                assert_eq!(allows(&certificate(&[])), needed.is_empty(), "{topic} {side:?}");
            }
        }
    }

    #[test]
    fn only_the_home_answers_for_its_keys_and_only_its_readers_follow() {
        let arm = certificate(&[(Right::Read, "/arm/**")]);
        let of = |host: &str| format!("/_rnet/state/h{:016x}", StateTopic::hash_host(host));
        let may = |topic: &str, side, shown_name| {
            Holder { certificate: &arm, shown_name }.check(topic, side).is_ok()
        };
        for (host, is_home) in [("arm", true), ("eye", false)] {
            let call = format!("/_rnet/call{}/write/s00000001", of(host));
            assert_eq!(may(&format!("{call}/request"), Side::Subscriber, Some("arm")), is_home);
            assert_eq!(may(&format!("{call}/type"), Side::Publisher, Some("arm")), is_home);
            let feed = format!("{}/r{:016x}/f{:016x}", of(host), 5, 6);
            assert_eq!(may(&feed, Side::Publisher, Some("arm")), is_home);
        }
        let feed = |readers: u64| format!("{}/r{readers:016x}/f{:016x}", of("eye"), 6);
        let readers = readers_of("arm-2", &arm);
        assert!(may(&feed(readers), Side::Subscriber, Some("arm-2")));
        assert!(!may(&feed(readers), Side::Subscriber, Some("arm")));
        assert!(!may(&feed(readers + 1), Side::Subscriber, Some("arm-2")));
        assert!(may(&feed(readers), Side::Subscriber, None), "the home decides");
        assert_ne!(readers, readers_of("arm-2", &certificate(&[(Right::Read, "/arm/mode")])));
    }

    #[test]
    fn prefix_is_readable_only_as_a_whole() {
        let arm = certificate(&[
            (Right::Read, "/arm/**"),
            (Right::Read, "/one/*"),
            (Right::Read, "/*/open/**"),
            (Right::Write, "/**"),
        ]);
        let may = |need| Holder { certificate: &arm, shown_name: None }.check_state(need).is_ok();
        for (prefix, is_readable) in [
            ("/arm", true),
            ("/arm/x/y", true),
            ("/a/open", true),
            ("/a/open/x", true),
            ("/", false),
            ("/army", false),
            ("/one", false),
            ("/one/x", false),
            ("/a", false),
        ] {
            assert_eq!(may(StateNeed::ReadAll(prefix)), is_readable, "{prefix}");
        }
        assert!(may(StateNeed::Read("/one/x")) && !may(StateNeed::Read("/one/x/y")));
        assert!(may(StateNeed::Write("/any")) && !may(StateNeed::Read("/any")));
    }
}
