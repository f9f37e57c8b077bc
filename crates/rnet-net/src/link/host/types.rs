//! Types of another host that are not known here: they are asked for, and their endpoints wait.

use std::collections::BTreeMap;

use rnet::Error;
use rnet::schema::Schema;

use super::super::control_state::ControlState;
use super::super::directory::EndpointDescription;
use super::Host;

/// What a host may tell of its types, in bytes of descriptor sets.
const MAX_TYPES_LEN_BYTES: usize = 16 << 20;

/// Endpoints that wait for their types.
#[derive(Default)]
pub struct UnresolvedTypes {
    by_hash: BTreeMap<String, BTreeMap<u64, EndpointDescription>>,
    hashes: BTreeMap<u64, String>,
}

impl UnresolvedTypes {
    /// How many endpoints wait.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Adds an endpoint; whether its type was asked for before.
    pub fn add(&mut self, hash: String, described: EndpointDescription) -> bool {
        self.remove(described.id);
        let asked = self.by_hash.contains_key(&hash);
        self.hashes.insert(described.id, hash.clone());
        self.by_hash.entry(hash).or_default().insert(described.id, described);
        asked
    }

    /// An endpoint is gone. Who comes with its type later asks again: perhaps nobody there has had it any more.
    pub fn remove(&mut self, id: u64) {
        let Some(hash) = self.hashes.remove(&id) else { return };
        let Some(waiting) = self.by_hash.get_mut(&hash) else { return };
        waiting.remove(&id);
        if waiting.is_empty() {
            self.by_hash.remove(&hash);
        }
    }

    /// The endpoints that wait for a type, which wait no longer.
    fn take(&mut self, hash: &str) -> Option<BTreeMap<u64, EndpointDescription>> {
        let waiting = self.by_hash.remove(hash)?;
        for id in waiting.keys() {
            self.hashes.remove(id);
        }
        Some(waiting)
    }
}

impl Host {
    /// A type that was asked for has come.
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
