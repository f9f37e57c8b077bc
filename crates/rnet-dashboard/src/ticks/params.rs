//! The parameters of the domain, or of another host.

use std::time::{Duration, Instant};

use rnet::param::ParamInfo;
use rnet_monitor::documents::{self, params_by_node};
use serde_json::{Value as Json, json};

use super::abroad::Abroad;
use super::turn::Tick;
use super::whole::Read;
use crate::errand::Errand;
use crate::times::{in_seconds, of_host};

/// Between an answer of another host and the next question.
const FAR_INTERVAL: Duration = Duration::from_millis(500);

pub fn params() -> Read {
    // As of which revision of the state they were told.
    let mut told = None;
    Box::new(move |tick| {
        let read = read(tick, &mut told);
        if read.is_err() {
            told = None;
        }
        Ok(read?)
    })
}

fn read(tick: &Tick<'_>, told: &mut Option<u64>) -> rnet::Result<Option<String>> {
    let mut params = Vec::new();
    if let Some(state) = tick.desk.seat.state_if_any()? {
        let revision = state.revision();
        if told.replace(revision) == Some(revision) {
            return Ok(None);
        }
        params = rows(state.params()?);
    }
    Ok(Some(json!({"params": params}).to_string()))
}

fn rows(params: Vec<ParamInfo>) -> Vec<Json> {
    let row =
        |(node, name, info): &documents::NodeParam| in_seconds(documents::param(node, name, info));
    params_by_node(params).iter().map(row).collect()
}

/// The parameters of another host. When it does not answer, those that it had last are shown, and why they are no newer.
pub fn far_params(host: String) -> Read {
    let mut abroad = Abroad::new(host);
    let mut errand: Option<Errand<Vec<ParamInfo>>> = None;
    let mut last: Option<Instant> = None;
    let mut params: Option<Vec<Json>> = None;
    Box::new(move |tick| {
        let Some(asked) = errand.take() else {
            if last.is_none_or(|last| tick.now.duration_since(last) >= FAR_INTERVAL) {
                last = Some(tick.now);
                errand = Some(abroad.ask(&tick.desk.seat, |host| host.params())?);
            }
            return Ok(None);
        };
        let Some(done) = asked.take() else {
            errand = Some(asked);
            return Ok(None);
        };
        last = Some(tick.now);
        let away = match done {
            Ok(found) => {
                let rows = rows(found).into_iter().map(|row| of_host(&abroad.host, row));
                params = Some(rows.collect());
                None
            }
            Err(refusal) if params.is_none() => return Err(refusal),
            Err(refusal) => Some(refusal.message),
        };
        Ok(Some(json!({"params": params, "away": away}).to_string()))
    })
}
