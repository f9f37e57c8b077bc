//! A process that publishes, subscribes, or both.

use crate::clock::precise_sleep;
use crate::collect::{Collector, Report};
use crate::control::{Inbox, Note};
use crate::result::{PhaseResult, Received, Sent};
use crate::send_schedule::{Stream, run_schedule};
use crate::spec::{Event, Load, Order, PublishSpec, SubscribeSpec};
use crate::{Error, Net, Result, Subscription, System};
use std::time::Duration;

/// How often Hello and End are repeated,
const MARK_EVERY: Duration = Duration::from_millis(5);
/// and with many publishers how much time each of them gets: the marks of hundreds must not be more
/// traffic than the work itself.
const MARK_EVERY_EACH: Duration = Duration::from_millis(1);

/// A subscription and its reports.
struct Subscribed {
    joined: bool,
    done: Vec<Received>,
    _subscription: Subscription,
}

/// Opens the endpoints and runs phases until a stop order.
///
/// # Errors
/// The library's own, or a conversation that broke off.
pub fn run(
    system: &dyn System,
    net: &Net,
    publishes: &[PublishSpec],
    subscribes: &[SubscribeSpec],
    inbox: &Inbox,
) -> Result<()> {
    // Publishers first: in some systems they are the ones that listen.
    let mut streams = publishes
        .iter()
        .map(|spec| Ok(Stream::new(system.publisher(net, &spec.topic)?, spec)))
        .collect::<Result<Vec<_>>>()?;
    let mut subscribed = subscribes
        .iter()
        .enumerate()
        .map(|(number, spec)| subscribe(system, net, spec, inbox.reporter(number)))
        .collect::<Result<Vec<_>>>()?;
    precise_sleep();
    // A peer without anything to repeat sleeps until an event: a check every few ms would count as CPU time
    // of the system.
    let mark_every = MARK_EVERY.max(MARK_EVERY_EACH * streams.len() as u32);
    let timeout = (!streams.is_empty()).then_some(mark_every);
    let (mut ready, mut ended) = (false, None);
    let mut untold: Option<(usize, Vec<Sent>)> = None;
    loop {
        for stream in &mut streams {
            stream.mark(ended)?;
        }
        if !ready && subscribed.iter().all(|s| s.joined) {
            ready = true;
            rnet_bench::worker::send_event(&Event::Ready)?;
        }
        if let Some((phase, sent)) = untold.take() {
            if subscribed.iter().all(|s| s.done.len() > phase) {
                let received = subscribed.iter().map(|s| s.done[phase].clone()).collect();
                let result = Box::new(PhaseResult { sent, received, ..PhaseResult::default() });
                rnet_bench::worker::send_event(&Event::Done { phase, result })?;
            } else {
                untold = Some((phase, sent));
            }
        }
        match inbox.next(timeout)? {
            None => {}
            Some(Note::Report(number, Report::Joined)) => subscribed[number].joined = true,
            Some(Note::Report(number, Report::Phase { received, .. })) => {
                subscribed[number].done.push(*received);
            }
            Some(Note::Order(Order::Stop { .. })) => return Ok(()),
            Some(Note::Order(Order::Go { go, rates_hz })) => {
                untold = Some((go, send(&mut streams, go, &rates_hz)?));
                ended = Some(go);
            }
        }
    }
}

fn subscribe(
    system: &dyn System,
    net: &Net,
    spec: &SubscribeSpec,
    report: impl FnMut(Report) + Send + 'static,
) -> Result<Subscribed> {
    let topic = &spec.topic;
    let expects = spec.expects.clone();
    let mut collector =
        Collector::new(&topic.name, topic.publishers, topic.max_len, expects, report);
    let sink = Box::new(move |bytes: &[u8]| collector.take(bytes));
    let subscription = system.subscribe(net, topic, sink)?;
    Ok(Subscribed { joined: false, done: Vec::new(), _subscription: subscription })
}

/// Runs the loads of a phase: all paced ones on this thread, as a node's timers are, and each flood
/// on a thread of its own until the paced ones are done.
fn send(streams: &mut [Stream], phase: usize, rates_hz: &[Option<f64>]) -> Result<Vec<Sent>> {
    let mut paced: Vec<(&mut Stream, Load)> = Vec::new();
    let mut floods: Vec<(&mut Stream, Load)> = Vec::new();
    for (i, stream) in streams.iter_mut().enumerate() {
        stream.begin();
        match stream.load(phase, rates_hz.get(i).copied().flatten()) {
            None => {}
            Some(load) if load.rate_hz.is_some() => paced.push((stream, load)),
            Some(load) => floods.push((stream, load)),
        }
    }
    if paced.is_empty() && floods.len() == 1 {
        let (stream, load) = floods.swap_remove(0);
        return Ok(vec![stream.run(phase, &load)?]);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = floods
            .into_iter()
            .map(|(stream, load)| scope.spawn(move || stream.run(phase, &load)))
            .collect();
        let mut sent = run_schedule(&mut paced, phase)?;
        for thread in threads {
            let flood = thread.join().map_err(|_| Error::new("the sending thread panicked"))?;
            sent.push(flood?);
        }
        Ok(sent)
    })
}
