//! `rnet topic hz|bw|delay`.

use crate::util;

use rnet::{Publisher, Subscriber};
use util::{BackgroundPublisher, TestEnv};

#[test]
fn hz_prints_the_rate_as_ros_does() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _pump =
        BackgroundPublisher::start(node.publisher::<[u8]>("/t").open().unwrap(), vec![1].into());
    let text = rnet!(env, "topic", "hz", "/t", "--count", "2", "--window", "50").ok();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].starts_with("average rate: "));
    assert!(lines[1].starts_with("\tmin: ") && lines[1].ends_with("window: 50"), "{text}");
    let ran = rnet!(env, "--json", "topic", "hz", "/t", "--count", "1");
    let report = &ran.json_lines()[0];
    // The publisher sleeps at least a millisecond between messages.
    let rate = report["rate_hz"].as_f64().unwrap();
    assert!(rate > 0.0 && rate <= 1000.0, "{report}");
    assert!(report["min_s"].as_f64().unwrap() >= 0.001, "{report}");
}

#[test]
fn hz_and_bw_print_a_last_report_when_interrupted() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _pump = BackgroundPublisher::start(
        node.publisher::<[u8]>("/t").open().unwrap(),
        vec![1; 10].into(),
    );
    for (command, word) in [("hz", "average rate"), ("bw", "/s from")] {
        let mut run = env.spawn(&["topic", command, "/t"]);
        run.wait_for_stdout(word);
        run.signal("INT");
        let ran = run.wait();
        assert_eq!(ran.code, Some(130), "{ran:#?}");
        assert!(ran.stdout.contains(word), "{ran:#?}");
    }
}

#[test]
fn without_messages_they_time_out() {
    let env = TestEnv::new();
    for command in ["hz", "bw", "delay"] {
        let ran = rnet!(env, "topic", command, "/t", "--timeout", "0.2");
        assert!(ran.stdout.is_empty(), "{ran:#?}");
        let said = ran.fails(124);
        assert!(said.contains("waiting"), "{said}");
    }
}

#[test]
fn a_topic_that_does_not_exist_is_reported_with_one_that_may_be_meant() {
    let env = TestEnv::new();
    let node = env.node("lidar");
    let _scan = node.publisher::<[u8]>("/scan").open().unwrap();
    for command in ["hz", "bw", "echo"] {
        for (topic, hint) in [("/scna", "did you mean /scan?"), ("/typo", "see rnet topic list")] {
            let mut run = env.spawn(&["topic", command, topic]);
            run.wait_for_stderr(&format!("topic {topic} not found in domain clitest; {hint}"));
        }
    }
}

#[test]
fn they_report_silence_and_the_remaining_publishers() {
    let env = TestEnv::new();
    for command in ["hz", "bw"] {
        let (a, b) = (env.node("a"), env.node("b"));
        let publisher = a.publisher::<[u8]>("/t").open().unwrap();
        let idle = b.publisher::<[u8]>("/t").open().unwrap();
        let mut run = env.spawn(&["topic", command, "/t"]);
        run.wait_for_stderr("no new messages; publishers: /");
        let pump = BackgroundPublisher::start(publisher, vec![1].into());
        run.wait_for_stdout(if command == "hz" { "average rate" } else { "/s from" });
        drop(pump);
        run.wait_for_stderr("no new messages; publishers: /b");
        drop(idle);
        run.wait_for_stderr("no new messages; no publishers remain");
    }
}

#[test]
fn delay_reports_silence() {
    let env = TestEnv::new();
    let node = env.node("silent");
    let silent = ["/t", "/T"].map(|topic| node.publisher::<[u8]>(topic).open().unwrap());
    let mut run = env.spawn(&["topic", "delay", "/t"]);
    // The topic exists, so the message suggests no other.
    run.wait_for_stderr("no matched subscriber of /t in domain clitest yet; waiting\n");
    drop(silent);
    let (publisher, subscriber) = talk(&env);
    let reader = subscriber.on(|_| {});
    run.wait_for_stderr("no new messages; publishers: /talker");
    let pump = BackgroundPublisher::start(publisher, vec![1].into());
    run.wait_for_stdout("the last second");
    drop(pump);
    run.wait_for_stderr("no publisher of /t in domain clitest any more; waiting");
    drop(reader);
}

#[test]
fn bw_prints_sizes() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _pump = BackgroundPublisher::start(
        node.publisher::<[u8]>("/t").open().unwrap(),
        vec![1; 2000].into(),
    );
    let text = rnet!(env, "topic", "bw", "/t", "--count", "1").ok();
    assert!(text.contains("/s from 100 messages"), "{text}");
    assert!(text.contains("mean: 2.00 KB min: 2.00 KB max: 2.00 KB"), "{text}");
    let ran = rnet!(env, "--json", "topic", "bw", "/t", "--count", "1", "--window", "5");
    let report = &ran.json_lines()[0];
    assert_eq!((&report["window"], &report["mean_bytes"]), (&5.into(), &2000.0.into()));
    assert!(report["bytes_per_s"].as_f64().unwrap() > 0.0);
}

fn talk(env: &TestEnv) -> (Publisher<[u8]>, Subscriber<[u8]>) {
    let publisher = env.node("talker").publisher::<[u8]>("/t").open().unwrap();
    let subscriber = env.node("hearer").subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, util::TEST_TIMEOUT).unwrap();
    (publisher, subscriber)
}

#[test]
fn delay_reads_the_subscribers_own_histograms() {
    let env = TestEnv::new();
    let (mut publisher, mut subscriber) = talk(&env);
    for _ in 0..100 {
        publisher.send(b"x").unwrap();
        subscriber.recv_timeout(util::TEST_TIMEOUT).unwrap();
    }
    let text = rnet!(env, "topic", "delay", "/t", "--once").ok();
    assert!(text.contains("as measured by its subscribers, all since they joined"), "{text}");
    let row: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(row[..3], ["/hearer", "/talker", "100"]);
    let ran = rnet!(env, "--json", "topic", "delay", "/t", "--once");
    let report = &ran.json_lines()[0];
    assert_eq!((&report["source"], &report["window"]), (&"subscribers".into(), &"total".into()));
    let channel = &report["channels"][0];
    let us = |name: &str| channel[name].as_f64().unwrap();
    assert_eq!(channel["received"], 100);
    assert!(us("p50_us") > 0.0 && us("p50_us") <= us("p99_us") && us("p99_us") <= us("max_us"));
}

#[test]
fn delay_goes_on_second_by_second() {
    let env = TestEnv::new();
    let (publisher, subscriber) = talk(&env);
    let pump = BackgroundPublisher::start(publisher, vec![1].into());
    let reader = subscriber.on(|_| {});
    let ran = rnet!(env, "--json", "topic", "delay", "/t", "--count", "2");
    let reports = ran.json_lines();
    assert_eq!(reports.len(), 2, "{ran:#?}");
    for report in &reports {
        assert_eq!(report["window"], "interval");
        assert!(report["channels"][0]["received"].as_u64().unwrap() > 0, "{report}");
    }
    drop((pump, reader));
}
