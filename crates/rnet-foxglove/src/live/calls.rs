//! Service calls.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use rnet::{Client, MessageType};

use super::{LiveBackend, lock};
use crate::channel_format;

/// Timeout of a call, and of the discovery of its server.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct ServiceClient {
    client: Client<[u8], [u8]>,
    request: MessageType,
    reply: MessageType,
}

/// By service.
#[derive(Default)]
pub struct ServiceClients(Mutex<BTreeMap<String, ServiceClient>>);

impl ServiceClients {
    pub fn call(
        &self,
        live: &LiveBackend,
        service: &str,
        encoding: &str,
        data: &[u8],
    ) -> Result<Vec<u8>, String> {
        let ServiceClient { client, request, reply } = self.client(live, service)?;
        let bytes = channel_format::decode_from_client(&request, encoding, data)
            .map_err(|why| format!("the request for {service}: {why}"))?;
        let replied =
            client.call_timeout(&bytes[..], TIMEOUT).map_err(|error| error.to_string())?;
        channel_format::encode_for_client(&reply, encoding, &replied)
    }

    /// The client of a service, whose types may have changed with its servers.
    fn client(&self, live: &LiveBackend, service: &str) -> Result<ServiceClient, String> {
        let text = |error: rnet::Error| error.to_string();
        let snapshot = live
            .options
            .location
            .domain()
            .and_then(|mut domain| domain.snapshot())
            .map_err(text)?;
        let servers = snapshot.servers();
        let known = servers.iter().filter(|server| server.service == service).find_map(|server| {
            Some((server.request_type().message_type()?, server.reply_type()?.message_type()?))
        });
        let (request, reply) = known.ok_or_else(|| format!("{service} has no server"))?;
        let mut clients = lock(&self.0);
        if let Some(called) = clients.get(service)
            && (called.request.desc(), called.reply.desc()) == (request.desc(), reply.desc())
        {
            return Ok(called.clone());
        }
        let client = live
            .node()?
            .client::<[u8], [u8]>(service)
            .message_types(request.clone(), reply.clone())
            .open();
        let called = ServiceClient { client: client.map_err(text)?, request, reply };
        clients.insert(service.to_owned(), called.clone());
        Ok(called)
    }
}
