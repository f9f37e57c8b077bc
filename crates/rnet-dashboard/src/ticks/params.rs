//! The parameters of the domain, or of another host.

use std::time::{Duration, Instant};

use rnet::param::ParamInfo;
use rnet_monitor::documents::{self, params_by_node};
use serde_json::{Value as Json, json};

use super::full_update::Read;
use super::remote_hosts::RemoteHost;
use super::tick::Tick;
use crate::background_task::BackgroundTask;
use crate::times::{in_seconds, of_host};

/// Interval between an answer of another host and the next request.
const REMOTE_INTERVAL: Duration = Duration::from_millis(500);

pub fn params() -> Read {
    // Revision of the state that was sent.
    let mut sent_revision = None;
    Box::new(move |tick| {
        let read = read(tick, &mut sent_revision);
        if read.is_err() {
            sent_revision = None;
        }
        Ok(read?)
    })
}

fn read(tick: &Tick<'_>, sent_revision: &mut Option<u64>) -> rnet::Result<Option<String>> {
    let mut params = Vec::new();
    if let Some(state) = tick.operations.operator.state_if_any()? {
        let revision = state.revision();
        if sent_revision.replace(revision) == Some(revision) {
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

/// The parameters of another host. If it does not answer, the last known ones are shown with the reason.
pub fn remote_params(host: String) -> Read {
    let mut remote_host = RemoteHost::new(host);
    let mut task: Option<BackgroundTask<Vec<ParamInfo>>> = None;
    let mut last: Option<Instant> = None;
    let mut params: Option<Vec<Json>> = None;
    Box::new(move |tick| {
        let Some(asked) = task.take() else {
            if last.is_none_or(|last| tick.now.duration_since(last) >= REMOTE_INTERVAL) {
                last = Some(tick.now);
                task = Some(remote_host.ask(&tick.operations.operator, |host| host.params())?);
            }
            return Ok(None);
        };
        let Some(done) = asked.take() else {
            task = Some(asked);
            return Ok(None);
        };
        last = Some(tick.now);
        let away = match done {
            Ok(found) => {
                let rows = rows(found).into_iter().map(|row| of_host(&remote_host.host, row));
                params = Some(rows.collect());
                None
            }
            Err(refusal) if params.is_none() => return Err(refusal),
            Err(refusal) => Some(refusal.message),
        };
        Ok(Some(json!({"params": params, "away": away}).to_string()))
    })
}
