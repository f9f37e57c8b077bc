"""``node.log`` and ``LogHandler``: lines for people on ``/log``."""

from __future__ import annotations

import inspect
import logging
import os
import threading

import pytest
import rnet
from conftest import LIMIT_S
from rnet.msgs import Log


@pytest.fixture
def reader(node):
    return node("reader").subscriber("/log", Log, transient_local=True, keep_all=True)


def heard(reader):
    return reader.recv(timeout=LIMIT_S)


def test_a_line_says_who_said_it_where_and_how_bad_it_is(node, reader, capfd):
    arm = node("arm")
    arm.log.warning("joint %d is at %.1f °C", 3, 71.5)
    line = inspect.currentframe().f_lineno - 1
    log = heard(reader)
    assert (log.name, log.message, log.level) == ("/arm", "joint 3 is at 71.5 °C", Log.WARNING)
    assert (os.path.basename(log.file), log.line) == ("test_log.py", line)
    assert log.HasField("timestamp")
    assert capfd.readouterr().err.endswith("] [/arm]: joint 3 is at 71.5 °C\n")


def test_lines_below_the_level_are_dropped_and_not_formatted(node, reader):
    class Loud:
        def __str__(self):
            raise AssertionError("it was formatted")

    arm = node("arm")
    assert arm.log.level == "info"
    arm.log.debug("%s", Loud())
    arm.log.level = "error"
    arm.log.warning("%s", Loud())
    arm.log.fatal("the end")
    assert heard(reader).message == "the end"
    with pytest.raises(rnet.errors.BadValueError, match="must be debug, info"):
        arm.log.level = "loud"
    # Logging does not raise: a text that cannot be formatted is logged with the reason.
    arm.log.error("%d", "no number")
    text = heard(reader).message
    assert text.startswith("'%d' % ('no number',) (TypeError: "), text
    arm.log.error(Loud())
    assert "cannot be shown (AssertionError: it was formatted)" in heard(reader).message
    arm.log.error({"a": 1})
    arm.log.error("100 %")
    arm.log.error("\udcff")
    assert [heard(reader).message for _ in range(3)] == ["{'a': 1}", "100 %", "���"]


def test_a_flood_is_held_back(node):
    arm = node("arm")
    while not arm.log.suppressed_count:
        arm.log._publish("info", "tick", "loop.py", 7)


def test_a_node_that_is_closed_still_has_stderr(node, capfd):
    arm = node("arm")
    log = arm.log
    arm.close()
    log.error("line %d", 1)
    assert capfd.readouterr().err == "[ERROR] [/arm]: line 1\n"
    with pytest.raises(rnet.ClosedError):
        log._publish("info", "line", "a.py", 1)


def test_many_threads_log(node, reader):
    arm = node("arm")
    arm.log.info("begin")
    assert heard(reader).message == "begin"

    def work(number):
        for at in range(20):
            arm.log._publish("info", f"{number} {at}", f"{number}.py", 1)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [heard(reader).message for _ in range(160)]
    assert sorted(texts) == sorted(f"{number} {at}" for number in range(8) for at in range(20))


def test_the_records_of_logging_are_lines(node, reader, capfd):
    arm = node("arm")
    arm.log.level = "fatal"  # the records have passed their own level
    logger = logging.getLogger("test_log")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    handler = rnet.log.LogHandler(arm, logging.INFO)
    logger.addHandler(handler)
    try:
        logger.debug("below")
        logger.info("joint %d", 3)
        line = inspect.currentframe().f_lineno - 1
        logger.log(35, "between")
        try:
            raise ValueError("no angle")
        except ValueError:
            logger.exception("failed")
        logger.critical("the end")
        logs = [heard(reader) for _ in range(4)]
        assert [log.level for log in logs] == [Log.INFO, Log.WARNING, Log.ERROR, Log.FATAL]
        assert (logs[0].message, logs[0].line) == ("joint 3", line)
        assert logs[2].message.startswith("failed\nTraceback") and logs[2].message.endswith("ValueError: no angle")
        arm.close()
        logger.error("dropped")
        assert capfd.readouterr().err == ""
    finally:
        logger.removeHandler(handler)
