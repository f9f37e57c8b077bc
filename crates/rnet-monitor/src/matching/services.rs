//! Checks that the types of services and of their clients match.

use rnet::inspect::{Snapshot, service_of};

use crate::findings::Findings;

/// Reports clients whose request type differs from the server's. Topics of calls are internal, so the service
/// is named.
pub fn check_types(findings: &mut Findings, snapshot: &Snapshot, of_host: impl Fn(&str) -> bool) {
    for pair in snapshot.pairs().filter(|pair| !pair.is_matched()) {
        let (client, server) = (&pair.publisher.node, &pair.subscription.node);
        if !of_host(client) && !of_host(server) {
            continue;
        }
        let Some(service) = service_of(&pair.publisher.topic) else { continue };
        let Some(detail) = pair.type_mismatch() else { continue };
        findings.problem(
            "type",
            format!("the client in {client} cannot call {service} of {server}: the request types differ: {detail}"),
            "use the same request type on both sides; rnet service list -t shows the type of the server",
        );
    }
}
