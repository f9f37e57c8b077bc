//! The error for a missing key, with suggestions.

use rnet::state::State;

use crate::failure::Failure;
use rnet_format::suggestions::{did_you_mean, nearest};

/// Maximum number of compared keys, because a user waits for the result.
const MAX_COMPARED: usize = 100_000;
/// Maximum number of listed keys under a name.
const MAX_LISTED: usize = 3;

/// The error for a missing `key`.
pub fn no_key(state: Option<&State>, domain: &str, key: &str) -> Failure {
    // Keys that cannot be listed now are only missing from the hint.
    let keys = state.and_then(|state| state.keys("").ok()).unwrap_or_default();
    Failure::Failed(format!("key {key} not found in domain {domain}; {}", hint(key, &keys)))
}

/// A key whose name, or the first part of it, is similar to this one.
pub fn nearest_key(state: &State, key: &str) -> Option<String> {
    let keys = state.keys("").ok()?;
    let names = keys.iter().take(MAX_COMPARED).map(String::as_str);
    // A prefix is compared with the beginning of a key, up to one of its slashes.
    let parts = names.flat_map(|name| {
        let ends = name.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
        ends.chain([name.len()]).map(|end| &name[..end])
    });
    nearest(key, parts).map(str::to_owned)
}

fn hint(key: &str, keys: &[String]) -> String {
    if keys.is_empty() {
        return "the domain has no keys".to_owned();
    }
    let slash = if key.ends_with('/') { "" } else { "/" };
    let folder = format!("{key}{slash}");
    let under: Vec<&str> =
        keys.iter().map(String::as_str).filter(|other| other.starts_with(&folder)).collect();
    match under.len().checked_sub(MAX_LISTED) {
        _ if under.is_empty() => {}
        None | Some(0) => return format!("keys under it: {}", under.join(", ")),
        Some(more) => {
            return format!("keys under it: {} and {more} more", under[..MAX_LISTED].join(", "));
        }
    }
    let names = keys.iter().take(MAX_COMPARED).map(String::as_str);
    did_you_mean(key, names).unwrap_or_else(|| format!("see rnet state list ({} keys)", keys.len()))
}

#[cfg(test)]
mod tests {
    use super::hint;

    fn said(key: &str, keys: &[&str]) -> String {
        hint(key, &keys.iter().map(|k| (*k).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn similar_keys_and_keys_under_the_name_are_suggested() {
        let keys = ["/arm/a", "/arm/b", "/arm/mode", "/base/mode"];
        assert_eq!(said("/arm/mod", &keys), "did you mean /arm/mode?");
        assert_eq!(said("/arm", &keys), "keys under it: /arm/a, /arm/b, /arm/mode");
        assert_eq!(said("/base/", &keys), "keys under it: /base/mode");
        assert_eq!(said("/lidar", &keys), "see rnet state list (4 keys)");
        assert_eq!(said("/lidar", &[]), "the domain has no keys");
        let many: Vec<String> = (0..9).map(|i| format!("/leg/k{i}")).collect();
        assert_eq!(hint("/leg", &many), "keys under it: /leg/k0, /leg/k1, /leg/k2 and 6 more");
    }
}
