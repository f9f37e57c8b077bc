//! `rnet topic hz|bw|delay`.

use crate::util;

use rnet::{Publisher, Subscriber};
use util::{Place, Pump};

#[test]
fn hz_prints_the_rate_as_ros_does() {
    let place = Place::new();
    let node = place.node("a");
    let _pump = Pump::start(node.publisher::<[u8]>("/t").unwrap(), vec![1].into());
    let text = rnet!(place, "topic", "hz", "/t", "--count", "2", "--window", "50").ok();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].starts_with("average rate: "));
    assert!(lines[1].starts_with("\tmin: ") && lines[1].ends_with("window: 50"), "{text}");
    let ran = rnet!(place, "--json", "topic", "hz", "/t", "--count", "1");
    let report = &ran.json_lines()[0];
    // The pump sleeps for at least a millisecond between messages.
    let rate = report["rate_hz"].as_f64().unwrap();
    assert!(rate > 0.0 && rate <= 1000.0, "{report}");
    assert!(report["min_s"].as_f64().unwrap() >= 0.001, "{report}");
}

#[test]
fn hz_and_bw_print_their_last_word_when_interrupted() {
    let place = Place::new();
    let node = place.node("a");
    let _pump = Pump::start(node.publisher::<[u8]>("/t").unwrap(), vec![1; 10].into());
    for (command, word) in [("hz", "average rate"), ("bw", "/s from")] {
        let mut run = place.spawn(&["topic", command, "/t"]);
        run.until_stdout(word);
        run.signal("INT");
        let ran = run.wait();
        assert_eq!(ran.code, Some(130), "{ran:#?}");
        assert!(ran.stdout.contains(word), "{ran:#?}");
    }
}

#[test]
fn without_messages_they_time_out() {
    let place = Place::new();
    for command in ["hz", "bw", "delay"] {
        let ran = rnet!(place, "topic", command, "/t", "--timeout", "0.2");
        assert!(ran.stdout.is_empty(), "{ran:#?}");
        let said = ran.fails(124);
        assert!(said.contains("waiting"), "{said}");
    }
}

#[test]
fn a_topic_that_does_not_exist_is_reported_with_one_that_may_be_meant() {
    let place = Place::new();
    let node = place.node("lidar");
    let _scan = node.publisher::<[u8]>("/scan").unwrap();
    for command in ["hz", "bw", "echo"] {
        for (topic, hint) in [("/scna", "did you mean /scan?"), ("/typo", "see rnet topic list")] {
            let mut run = place.spawn(&["topic", command, topic]);
            run.until_stderr(&format!("topic {topic} not found in domain clitest; {hint}"));
        }
    }
}

#[test]
fn they_say_when_nothing_comes_any_more_and_who_is_left() {
    let place = Place::new();
    for command in ["hz", "bw"] {
        let (a, b) = (place.node("a"), place.node("b"));
        let publisher = a.publisher::<[u8]>("/t").unwrap();
        let idle = b.publisher::<[u8]>("/t").unwrap();
        let mut run = place.spawn(&["topic", command, "/t"]);
        run.until_stderr("no new messages; publishers: /");
        let pump = Pump::start(publisher, vec![1].into());
        run.until_stdout(if command == "hz" { "average rate" } else { "/s from" });
        drop(pump);
        run.until_stderr("no new messages; publishers: /b");
        drop(idle);
        run.until_stderr("no new messages; no publishers remain");
    }
}

#[test]
fn delay_says_when_nothing_comes_any_more() {
    let place = Place::new();
    let node = place.node("silent");
    let silent = ["/t", "/T"].map(|topic| node.publisher::<[u8]>(topic).unwrap());
    let mut run = place.spawn(&["topic", "delay", "/t"]);
    // The topic exists: nothing else was meant.
    run.until_stderr("no matched subscriber of /t in domain clitest yet; waiting\n");
    drop(silent);
    let (publisher, subscriber) = talk(&place);
    let heard = subscriber.on(|_| {});
    run.until_stderr("no new messages; publishers: /talker");
    let pump = Pump::start(publisher, vec![1].into());
    run.until_stdout("the last second");
    drop(pump);
    run.until_stderr("no publisher of /t in domain clitest any more; waiting");
    drop(heard);
}

#[test]
fn bw_prints_sizes() {
    let place = Place::new();
    let node = place.node("a");
    let _pump = Pump::start(node.publisher::<[u8]>("/t").unwrap(), vec![1; 2000].into());
    let text = rnet!(place, "topic", "bw", "/t", "--count", "1").ok();
    assert!(text.contains("/s from 100 messages"), "{text}");
    assert!(text.contains("mean: 2.00 KB min: 2.00 KB max: 2.00 KB"), "{text}");
    let ran = rnet!(place, "--json", "topic", "bw", "/t", "--count", "1", "--window", "5");
    let report = &ran.json_lines()[0];
    assert_eq!((&report["window"], &report["mean_bytes"]), (&5.into(), &2000.0.into()));
    assert!(report["bytes_per_s"].as_f64().unwrap() > 0.0);
}

fn talk(place: &Place) -> (Publisher<[u8]>, Subscriber<[u8]>) {
    let publisher = place.node("talker").publisher::<[u8]>("/t").unwrap();
    let subscriber = place.node("hearer").subscriber::<[u8]>("/t").unwrap();
    publisher.wait_for_subscribers(1, util::SOON).unwrap();
    (publisher, subscriber)
}

#[test]
fn delay_reads_the_subscribers_own_histograms() {
    let place = Place::new();
    let (mut publisher, mut subscriber) = talk(&place);
    for _ in 0..100 {
        publisher.send(b"x").unwrap();
        subscriber.recv(util::SOON).unwrap();
    }
    let text = rnet!(place, "topic", "delay", "/t", "--once").ok();
    assert!(text.contains("as measured by its subscribers, all since they joined"), "{text}");
    let row: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(row[..3], ["/hearer", "/talker", "100"]);
    let ran = rnet!(place, "--json", "topic", "delay", "/t", "--once");
    let report = &ran.json_lines()[0];
    assert_eq!((&report["source"], &report["window"]), (&"subscribers".into(), &"total".into()));
    let channel = &report["channels"][0];
    let us = |name: &str| channel[name].as_f64().unwrap();
    assert_eq!(channel["received"], 100);
    assert!(us("p50_us") > 0.0 && us("p50_us") <= us("p99_us") && us("p99_us") <= us("max_us"));
}

#[test]
fn delay_goes_on_second_by_second() {
    let place = Place::new();
    let (publisher, subscriber) = talk(&place);
    let pump = Pump::start(publisher, vec![1].into());
    let heard = subscriber.on(|_| {});
    let ran = rnet!(place, "--json", "topic", "delay", "/t", "--count", "2");
    let reports = ran.json_lines();
    assert_eq!(reports.len(), 2, "{ran:#?}");
    for report in &reports {
        assert_eq!(report["window"], "interval");
        assert!(report["channels"][0]["received"].as_u64().unwrap() > 0, "{report}");
    }
    drop((pump, heard));
}
