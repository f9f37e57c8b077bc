//! Whether every addition to a counter is in the number that was read at the end.

use crate::raw::Phase;
use crate::workloads::Job;
use bench_harness::result::Calls;
use bench_harness::spec::{Call, Role};
use bench_harness::{Error, Result};

/// Holds each number that a client has read against the additions that all clients have made.
///
/// # Errors
/// When additions were lost, or counted twice.
pub fn check(job: &Job, phases: &[Phase]) -> Result<()> {
    let calls = |phase: &Phase| -> Vec<Calls> {
        phase.processes.iter().filter_map(|p| p.result.as_ref()?.calls.clone()).collect()
    };
    let adds = [Call::Add, Call::CompareAndSet].map(Call::name);
    let all: Vec<Calls> = phases.iter().flat_map(calls).collect();
    let made: u64 = all.iter().filter(|c| adds.contains(&&*c.call)).map(|c| c.count).sum();
    let read: Vec<u64> = all.iter().filter_map(|c| c.total).collect();
    let asked = job.processes.iter().any(|(_, role)| match role {
        Role::KeyValue { loads, .. } => loads.iter().any(|l| l.call == Call::Total),
        _ => false,
    });
    if asked && read.is_empty() {
        return Err(Error::new("nobody has read how much the additions came to"));
    }
    match read.iter().find(|total| **total != made) {
        None => Ok(()),
        Some(total) => Err(Error::new(format!("{made} additions came to {total}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::Process;
    use crate::workloads;
    use bench_harness::result::PhaseResult;

    fn phase(calls: &[(&str, u64, Option<u64>)]) -> Phase {
        let process = |&(call, count, total): &(&str, u64, Option<u64>)| {
            let calls = Some(Calls { call: call.into(), count, total, ..Calls::default() });
            let result = Some(PhaseResult { calls, ..PhaseResult::default() });
            Process { name: "client".into(), cpu_ns: 1, rss_kib: 1, rss_peak_kib: 1, result }
        };
        let processes = calls.iter().map(process).collect();
        Phase {
            label: "p".into(),
            len: None,
            rate_hz: None,
            elapsed_s: 1.0,
            memory: None,
            wire_bytes: None,
            processes,
        }
    }

    #[test]
    fn an_addition_too_few_or_too_many_fails_the_run() {
        let job = workloads::counting_job();
        let made = phase(&[("add", 7, None), ("compare_and_set", 5, None)]);
        let read = |total| phase(&[("total", 0, Some(total)), ("total", 0, Some(total))]);
        assert!(check(&job, &[made, read(12)]).is_ok());
        for total in [11, 13] {
            let made = phase(&[("add", 7, None), ("compare_and_set", 5, None)]);
            let why = check(&job, &[made, read(total)]).expect_err("another number");
            assert_eq!(why.to_string(), format!("12 additions came to {total}"));
        }
        let one_differs = phase(&[("total", 0, Some(7)), ("total", 0, Some(6))]);
        assert!(check(&job, &[phase(&[("add", 7, None)]), one_differs]).is_err());
        assert!(check(&job, &[phase(&[("add", 7, None)])]).is_err(), "nobody has read it");
    }
}
