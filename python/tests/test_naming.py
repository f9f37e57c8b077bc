"""Namespaces and remapping rules."""

from __future__ import annotations

import pytest
import rnet
from conftest import LIMIT_S


def test_names_go_below_the_namespace_and_rules_rename_them(domain):
    node = rnet.Node("lidar", namespace="/left", remap={"/scan": "/left/eye", "node:lidar": "laser"})
    assert node.name == "/left/laser"
    scans = node.publisher("/scan")
    points = node.publisher("points")
    assert (scans.topic, points.topic) == ("/left/eye", "/left/points")
    assert node.publisher("~/dirty").topic == "/left/laser/dirty"
    heard = rnet.Node("plain").subscriber("/left/eye")
    scans.wait_for_subscribers(1, timeout=LIMIT_S)
    scans.send(b"scan")
    assert bytes(heard.recv(timeout=LIMIT_S)) == b"scan"


def test_services_follow_too(domain):
    node = rnet.Node("texts", remap={"/upper": "/robot/upper"})
    service = node.service("/upper", bytes, bytes, lambda text: text.upper())
    assert service.name == "/robot/upper"
    assert rnet.Node("asker").call("/robot/upper", b"hi", bytes, timeout=LIMIT_S) == b"HI"


def test_the_environment_renames(domain, monkeypatch):
    monkeypatch.setenv("RNET_NAMESPACE", "left")
    monkeypatch.setenv("RNET_REMAP", "/scan=/eye,/a/**=/b/**")
    node = rnet.Node("lidar", remap={"/a/x": "/mine"})
    topics = [node.publisher(name).topic for name in ("/scan", "/a/c", "/a/x", "points")]
    assert topics == ["/eye", "/b/c", "/mine", "/left/points"]
    assert rnet.Node("lidar", namespace="").name == "/lidar"


def test_what_is_no_rule_is_told(domain, monkeypatch):
    with pytest.raises(rnet.errors.BadValueError, match="both names or of neither"):
        rnet.Node("a", remap={"/a/**": "/b"})
    with pytest.raises(rnet.errors.BadValueError, match="namespace.*' ' at character 3"):
        rnet.Node("a", namespace="/a b")
    with pytest.raises(TypeError):
        rnet.Node("a", remap={"/a": 1})
    monkeypatch.setenv("RNET_REMAP", "/a")
    with pytest.raises(rnet.errors.BadValueError, match="RNET_REMAP.*rule 1"):
        rnet.Node("a")
