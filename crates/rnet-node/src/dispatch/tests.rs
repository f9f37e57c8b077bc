use std::path::PathBuf;
use std::sync::mpsc::Sender;

use rnet_core::NodeName;
use rnet_shm::domain::directory::{DomainConfig, DomainDir};

use crate::wait_loop::WaitTarget;

use super::*;

fn node(test: &str) -> (PathBuf, Arc<OwnNode>) {
    let base = std::env::temp_dir().join(format!("rnet-dispatch-{test}-{}", std::process::id()));
    std::fs::create_dir(&base).unwrap();
    let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
    let dir = DomainDir::open_or_create(&config).unwrap();
    let own = OwnNode::create(&dir, &NodeName::new("n").unwrap(), "rust", "0").unwrap();
    (base, Arc::new(own))
}

#[test]
fn ring_ends_poll_of_awake_thread() {
    let (base, own) = node("bell");
    let errors = CallbackErrors::new(&own);
    let dispatcher = Dispatcher::start(&own, Lane::Bulk, NodeTime::simulated(), errors);
    let waiter = Waiter::new(own.bells().clone());
    let (bell, before) = (waiter.bell(), waiter.read());
    /// Is interrupted while nothing waits for it.
    struct Interrupted;
    impl WaitSource for Interrupted {
        fn is_ready(&self) -> bool {
            false
        }
        fn must_stop(&self) -> bool {
            true
        }
    }
    let each = |visit: &mut dyn FnMut(&dyn WaitSource)| {
        visit(&*dispatcher.shared);
        visit(&Interrupted);
    };
    let by_the_clock = false;
    let mut target =
        BellWaitTarget { waiter: &waiter, before, by_the_clock, checks_stop: false, each };
    assert!(!target.poll(), "an interrupt without a ring does not end the wait");
    // As a simulated clock does.
    own.bells().ring(bell);
    assert!(target.poll());
    dispatcher.stop();
    drop((dispatcher, own));
    std::fs::remove_dir_all(base).unwrap();
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    SetBell,
    Lane,
    MoveTo,
    Run,
    TakeArrival,
    IsFinished,
    WaitSource,
    Describe,
    Drop,
    Never,
}

/// A task that panics at one stage, and signals when it has run and when it is dropped.
struct PanickingTask {
    at: Stage,
    ran: Sender<()>,
    armed: bool,
}

impl PanickingTask {
    fn pass(&self, stage: Stage) {
        // `describe` is also called for a task that failed at another stage.
        let at =
            if self.at == Stage::Describe && stage == Stage::Run { Stage::Run } else { self.at };
        assert!(at != stage, "on purpose, in {stage:?}");
    }
}

impl Task for PanickingTask {
    fn id(&self) -> u64 {
        1
    }
    fn describe(&self) -> String {
        self.pass(Stage::Describe);
        "the broken task".to_owned()
    }
    fn set_bell(&mut self, _bell: u64) {
        self.pass(Stage::SetBell);
    }
    fn lane(&self) -> Option<Lane> {
        self.pass(Stage::Lane);
        (self.at == Stage::MoveTo).then_some(Lane::Urgent)
    }
    fn run(&mut self, _lane: Lane, _must_yield: &dyn Fn() -> bool) -> bool {
        let _ = self.ran.send(());
        self.pass(Stage::Run);
        false
    }
    fn wait_sources(&self, _visit: &mut dyn FnMut(&dyn WaitSource)) {
        self.pass(Stage::WaitSource);
    }
    fn take_arrival(&mut self) -> Option<(u64, u64)> {
        self.pass(Stage::TakeArrival);
        None
    }
    fn is_finished(&self) -> bool {
        self.pass(Stage::IsFinished);
        self.at == Stage::Drop
    }
    fn move_to(self: Box<Self>, _lane: Lane) {
        self.pass(Stage::MoveTo);
    }
}

impl Drop for PanickingTask {
    fn drop(&mut self) {
        if std::mem::take(&mut self.armed) && !std::thread::panicking() {
            self.pass(Stage::Drop);
        }
    }
}

#[test]
fn panic_at_any_stage_drops_only_its_task() {
    let (base, own) = node("panics");
    let errors = CallbackErrors::new(&own);
    let dispatcher = Dispatcher::start(&own, Lane::Bulk, NodeTime::default(), errors);
    let (ran, runs) = mpsc::channel();
    let add = |at: Stage, ran: Sender<()>| {
        assert!(dispatcher.add(Box::new(PanickingTask { at, ran, armed: true })));
    };
    add(Stage::Never, ran);
    let stages = [
        Stage::SetBell,
        Stage::Lane,
        Stage::MoveTo,
        Stage::Run,
        Stage::TakeArrival,
        Stage::IsFinished,
        Stage::WaitSource,
        Stage::Describe,
        Stage::Drop,
    ];
    let mut failed = 0;
    for stage in stages {
        let (broken, ended) = mpsc::channel();
        add(stage, broken);
        // The sender is dropped with the task.
        while ended.recv().is_ok() {}
        failed += u64::from(stage != Stage::Drop);
        // The posted job runs after the count.
        let (done, posted) = mpsc::channel();
        dispatcher.post(Box::new(move || done.send(()).unwrap()));
        posted.recv().unwrap();
        assert_eq!((own.callback_errors(), own.dropped_callbacks()), (failed, failed), "{stage:?}");
        // The other task continues.
        while runs.try_recv().is_ok() {}
        dispatcher.wake();
        runs.recv().unwrap();
    }
    dispatcher.post(Box::new(|| panic!("on purpose, in a posted job")));
    let (tick, ticks) = mpsc::channel();
    let timer = |callback: Box<dyn FnMut(crate::Tick) + Send>| TimerTask {
        schedule: crate::schedule::Schedule::periodic("t", Duration::from_millis(1), 0).unwrap(),
        callback,
        shared: Arc::default(),
    };
    dispatcher.add_timer(2, timer(Box::new(|_| panic!("on purpose, in a timer"))));
    dispatcher.add_timer(3, timer(Box::new(move |_| tick.send(()).unwrap())));
    (0..3).for_each(|_| ticks.recv().unwrap());
    // A posted job runs only once anyway.
    assert_eq!((own.callback_errors(), own.dropped_callbacks()), (failed + 2, failed + 1));
    dispatcher.stop();
    drop((dispatcher, own));
    std::fs::remove_dir_all(base).unwrap();
}
