//! Tests that events of `tracing` appear on `/log`.

use std::time::Duration;

use rnet::msgs::Log;
use rnet::msgs::log::Level;
use rnet::{LOG_TOPIC, Node};
use tracing_subscriber::layer::SubscriberExt;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn events_are_published_until_the_node_closes() {
    let domain = format!("tracing{}", std::process::id());
    let open = |name| {
        Node::builder(name).dir(std::env::temp_dir()).domain(&domain).open().expect("it opens")
    };
    let (arm, reader) = (open("arm"), open("reader"));
    let mut lines = reader
        .subscriber::<Log>(LOG_TOPIC)
        .transient_local()
        .keep_all()
        .open()
        .expect("a subscriber");
    arm.log().set_level(rnet::LogLevel::Fatal);
    let layer = rnet_tracing::layer(&arm);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        tracing::trace!("begin");
        tracing::info!(joint = 3, name = "elbow", "at {:.1}", 0.25);
        let line = line!() - 1;
        tracing::error!(why = ?Some("dust"));
        let mut next = || (*lines.recv_timeout(LONG).expect("a line")).clone();
        let begin = next();
        assert_eq!((begin.level(), begin.message.as_str()), (Level::Debug, "begin"));
        let info = next();
        let wanted = (Level::Info, "at 0.2 joint=3 name=\"elbow\"", "/arm", line);
        assert_eq!((info.level(), info.message.as_str(), info.name.as_str(), info.line), wanted);
        assert!(info.file.ends_with("layer.rs"), "{}", info.file);
        let error = next();
        assert_eq!((error.level(), error.message.as_str()), (Level::Error, "why=Some(\"dust\")"));
        drop(arm);
        tracing::error!("not published");
        assert!(lines.try_recv().expect("no error").is_none());
    });
    let path = reader.domain_path().to_owned();
    drop((lines, reader));
    std::fs::remove_dir_all(path).ok();
}
