//! What a page shows of a node that has died.

use crate::util;

use std::process::{Command, Stdio};

use rnet::Node;
use serde_json::json;
use util::{Page, TestDomain, has_node};

/// The process of a node that is killed.
#[test]
#[ignore = "run as a child process by another test"]
fn lidar_process() {
    if std::env::var_os("RNET_DIR").is_none() {
        return;
    }
    let _node = Node::new("lidar").unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn dead_node_is_shown_as_gone_and_as_problem() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let figures = page.sub(json!({"what": "figures", "interval_ms": 250}));
    let location = place.location();
    let mut lidar = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "died::lidar_process", "--ignored"])
        .env("RNET_DIR", location.base())
        .env("RNET_DOMAIN", location.id().as_str())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    page.data(figures, |data| has_node(data, "/lidar").then_some(()));
    lidar.kill().unwrap();
    lidar.wait().unwrap();
    let data =
        page.data(figures, |data| (data["gone"][0]["node"] == "/lidar").then(|| data.clone()));
    let problems = data["problems"].as_array().unwrap();
    assert!(problems.iter().any(|problem| problem["check"] == "dead"), "{data}");
}
