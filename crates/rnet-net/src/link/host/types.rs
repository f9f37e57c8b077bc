//! Types of another host that are unknown here: they are requested, and their endpoints wait.

use std::collections::BTreeMap;

use rnet::Error;
use rnet::schema::Schema;

use super::super::announcements::EndpointDescription;
use super::super::control_state::ControlState;
use super::Host;

/// The most bytes of descriptor sets accepted from a host.
const MAX_TYPES_LEN_BYTES: usize = 16 << 20;

/// Endpoints that wait for their types.
#[derive(Default)]
pub struct UnresolvedTypes {
    by_hash: BTreeMap<String, BTreeMap<u64, EndpointDescription>>,
    hashes: BTreeMap<u64, String>,
}

impl UnresolvedTypes {
    /// Number of endpoints that wait.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Adds an endpoint; returns whether its type was requested before.
    pub fn add(&mut self, hash: String, described: EndpointDescription) -> bool {
        self.remove(described.id);
        let asked = self.by_hash.contains_key(&hash);
        self.hashes.insert(described.id, hash.clone());
        self.by_hash.entry(hash).or_default().insert(described.id, described);
        asked
    }

    /// Removes an endpoint that is gone. A later endpoint of the type requests it again: perhaps no
    /// endpoint there had the type any more.
    pub fn remove(&mut self, id: u64) {
        let Some(hash) = self.hashes.remove(&id) else { return };
        let Some(waiting) = self.by_hash.get_mut(&hash) else { return };
        waiting.remove(&id);
        if waiting.is_empty() {
            self.by_hash.remove(&hash);
        }
    }

    /// Takes the endpoints that wait for a type.
    fn take(&mut self, hash: &str) -> Option<BTreeMap<u64, EndpointDescription>> {
        let waiting = self.by_hash.remove(hash)?;
        for id in waiting.keys() {
            self.hashes.remove(id);
        }
        Some(waiting)
    }
}

impl Host {
    /// Applies a requested type that has arrived.
    pub fn resolve_type(&mut self, control: &mut ControlState, hash: u128, set: &[u8]) {
        let hash = format!("{hash:032x}");
        let Some(waiting) = self.unresolved_types.take(&hash) else { return };
        self.types_len_bytes += set.len();
        for (id, described) in waiting {
            if self.types_len_bytes > MAX_TYPES_LEN_BYTES {
                let what = format!("bytes of the types of host {}", self.name);
                let hint = "the other host has an implausible number".to_owned();
                control.report(&Error::LimitReached { what, limit: MAX_TYPES_LEN_BYTES, hint });
                continue;
            }
            let name = described.type_desc["name"].as_str().unwrap_or_default().to_owned();
            let learnt = Schema::from_descriptor_set(set, &name)
                .map_err(|error| error.to_string())
                .and_then(|schema| match schema.hash().to_string() == hash {
                    true => Ok(schema),
                    false => Err(format!("it has the hash {}, not {hash}", schema.hash())),
                });
            match learnt {
                Ok(schema) => control.keep_type(hash.clone(), schema, set.len()),
                Err(why) => {
                    let what = format!("type {name} of host {}", self.name);
                    control.report(&Error::BadValue { what, why });
                    continue;
                }
            }
            let topic = described.topic.clone();
            if let Err(error) = self.open_endpoint(control, described) {
                control.report(&error.with_topic(&topic));
            }
            self.update_demand(control, id);
        }
    }
}
