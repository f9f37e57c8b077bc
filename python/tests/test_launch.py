"""Launching robots from Python, with the program `rnet` of this checkout."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import rnet
from conftest import LIMIT_S, finish

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug"

Robot = Callable[[str], Path]


@pytest.fixture
def robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Robot:
    """Writes the file of a robot without a black box; `rnet` is the one of this checkout."""
    monkeypatch.setenv("PATH", f"{BUILD}:{os.environ['PATH']}")
    monkeypatch.delenv("RNET_CONFIG", raising=False)

    def write(text: str) -> Path:
        # Atomically: a launcher may be reading the file.
        (tmp_path / "draft").write_text(text + "\n[blackbox]\nenabled = false\n")
        return (tmp_path / "draft").rename(tmp_path / "robot.toml")

    return write


def sleeper(name: str, more: str = "") -> str:
    """A node that appends `+name` to `order` when it starts, and `-name` when it is stopped."""
    script = f"trap 'echo -{name} >> order; exit 0' INT; echo +{name} >> order; while :; do sleep 0.02; done"
    return f'[node.{name}]\ncommand = ["sh", "-c", "{script}"]\n{more}\n'


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)  # sleep: between two checks of a condition


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def test_a_block_starts_nodes_in_their_order_and_stops_them_in_reverse(robot, tmp_path):
    order = tmp_path / "order"
    file = robot(sleeper("a", 'after = ["b"]') + sleeper("b"))
    with rnet.launch(file) as launched:
        launched.wait_ready(timeout=LIMIT_S)
        until(lambda: order.read_text().split() == ["+b", "+a"])
        assert list(launched.nodes) == ["/b", "/a"]
        assert launched.exit_code is None
        node = launched.nodes["/a"]
        assert (node.name, node.state, node.is_ready, node.restarts) == ("/a", "running", True, 0)
        assert node.pid is not None and is_alive(node.pid)
        assert repr(launched) == "Launch(/b: running, /a: running)"
        with pytest.raises(rnet.WaitTimeoutError, match="after 0.01 s"):
            launched.wait(timeout=0.01)
    assert order.read_text().split() == ["+b", "+a", "-a", "-b"]
    assert launched.exit_code == launched.wait() == launched.stop() == 130
    assert [node.state for node in launched.nodes.values()] == ["ended", "ended"]


def test_a_launch_whose_nodes_end_well_ends_with_0(robot):
    file = robot('[var]\nhow = "badly"\n[node.once]\ncommand = ["sh", "-c", "test ${how} = well"]\n')
    assert rnet.launch(file, set={"how": "well"}).wait(timeout=LIMIT_S) == 0


def test_the_host_and_variables_choose_nodes(robot):
    text = sleeper("a", 'host = "base"') + sleeper("b", "when = { sim = true }") + "[var]\nsim = false\n"
    file = robot(text)
    with rnet.launch(file, host="base") as launched:
        assert set(launched.nodes) == {"/a"}
    with rnet.launch(file, host="base", set={"sim": True}) as launched:
        assert set(launched.nodes) == {"/a", "/b"}
    with pytest.raises(rnet.errors.LaunchFailedError, match='expected one of the hosts "base", found "other"'):
        rnet.launch(file, host="other")


def test_a_domain_of_its_own_is_the_nodes_too(robot, tmp_path):
    file = robot('[node.a]\ncommand = ["sh", "-c", "echo $$RNET_DOMAIN $$RNET_DIR > domain"]\n')
    assert rnet.launch(file, domain="left", dir=tmp_path).wait(timeout=LIMIT_S) == 0
    assert (tmp_path / "domain").read_text() == f"left {tmp_path}\n"


def test_the_environment_and_what_the_launcher_is_within_are_the_nodes_too(robot, tmp_path):
    file = robot('[node.a]\ncommand = ["sh", "-c", "echo $$COLOUR $$(nice) > said"]\n')
    before = int(subprocess.check_output(["nice"]))
    launched = rnet.launch(file, env={**os.environ, "COLOUR": "red"}, within=["nice", "-n", "1"])
    assert launched.wait(timeout=LIMIT_S) == 0
    assert (tmp_path / "said").read_text() == f"red {min(before + 1, 19)}\n"


def test_mistakes_are_told_with_their_place_and_nothing_starts(robot, tmp_path):
    file = robot(sleeper("a") + "[node.b]\ncolour = 1\n")
    with pytest.raises(rnet.errors.LaunchFailedError, match=r"robot\.toml:5:1: .*colour"):
        rnet.launch(file)
    with pytest.raises(rnet.errors.LaunchFailedError, match=r"none\.toml: cannot be read"):
        rnet.launch(tmp_path / "none.toml")
    with pytest.raises(rnet.errors.LaunchFailedError, match="it has no|no variable|speed"):
        rnet.launch(robot(sleeper("a")), set={"speed": 1})
    assert not (tmp_path / "order").exists()


def test_what_cannot_be_given_to_a_program_is_refused_at_once(robot):
    file = robot(sleeper("a"))
    with pytest.raises(TypeError, match=r"env of a launch: 'SPEED' is 1; names and values must be str"):
        rnet.launch(file, env={**os.environ, "SPEED": 1})
    for wrong in ({"host": "a\0b"}, {"env": {**os.environ, "A": "a\0b"}}, {"within": [1]}):
        with pytest.raises(rnet.errors.LaunchFailedError, match=r"null byte.*'launch'|not int.*'launch'"):
            rnet.launch(file, **wrong)


def test_what_a_program_in_front_of_the_launcher_prints_is_no_table(robot):
    noisy = ["sh", "-c", 'echo 42; echo null; echo "{}"; exec "$@"', "sh"]
    assert rnet.launch(robot('[node.a]\ncommand = ["true"]\n'), within=noisy).wait(timeout=LIMIT_S) == 0


def test_a_file_is_launched_once(robot):
    file = robot(sleeper("a"))
    with rnet.launch(file):
        with pytest.raises(rnet.errors.LaunchFailedError, match="is already launched in this domain"):
            rnet.launch(file)


def test_a_node_that_is_given_up_is_an_error_of_who_waits_for_it(robot):
    bad = '[node.bad]\ncommand = ["sh", "-c", "exit 3"]\nrestart = "never"\nready = "exited"\n'
    launched = rnet.launch(robot(bad + sleeper("next", 'after = ["bad"]')))
    with pytest.raises(rnet.errors.LaunchFailedError, match="/bad is given up: exit code 3"):
        launched.wait_ready(timeout=LIMIT_S)
    assert launched.wait(timeout=LIMIT_S) == 1
    assert launched.nodes["/next"].state == "waiting"


def test_who_is_not_ready_in_time_is_named(robot):
    with rnet.launch(robot(sleeper("slow", 'ready = "notified"') + sleeper("fast"))) as launched:
        with pytest.raises(rnet.WaitTimeoutError, match="^/slow: not ready after 0.05 s"):
            launched.wait_ready(timeout=0.05)


def test_ready_topics_parameters_and_restarts(robot, node):
    publish = '"topic", "pub", "/scan", "--text", "x", "--rate", "100", "--node-name", "/lidar"'
    more = 'ready = ["/scan"]\nbackoff_s = 0.01\nparams = { gain = 2.5 }'
    file = robot(f'[node.lidar]\ncommand = ["rnet", {publish}]\n{more}\n')
    with rnet.launch(file) as launched:
        launched.wait_ready(timeout=LIMIT_S)
        state = node("looker").state
        assert state["/params/lidar/gain"] == 2.5
        first = launched.nodes["/lidar"].pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        until(lambda: launched.nodes["/lidar"].restarts == 1 and launched.nodes["/lidar"].is_ready)
        assert launched.nodes["/lidar"].pid not in (None, first)


def test_a_changed_file_is_followed_and_a_mistake_in_it_is_logged(robot, caplog):
    file = robot(sleeper("a"))
    with caplog.at_level(logging.WARNING, "rnet.launch"), rnet.launch(file, reload=True) as launched:
        robot("[node.a\n")
        until(lambda: "robot.toml:1:8: " in caplog.text)
        assert launched.nodes["/a"].state == "running"
        robot(sleeper("a") + sleeper("b"))
        until(lambda: "/b" in launched.nodes and launched.nodes["/b"].state == "running")


def test_stop_waits_for_so_long_and_a_second_one_does_no_harm(robot):
    deaf = "trap '' INT TERM; echo > begun; while :; do sleep 0.02; done"
    times = "interrupt_timeout_s = 0.2\nstop_timeout_s = 0.5"
    file = robot(f'[node.deaf]\ncommand = ["sh", "-c", "{deaf}"]\n{times}\n')
    launched = rnet.launch(file)
    until(file.with_name("begun").exists)
    with pytest.raises(rnet.WaitTimeoutError):
        launched.stop(timeout=0.01)
    assert launched.stop(timeout=LIMIT_S) == 130
    assert launched.nodes["/deaf"].detail == "killed by SIGKILL"


MOTOR = """
import atexit, rnet

def note(word):
    with open("ends", "a") as ends:
        print(word, file=ends)

atexit.register(note, "atexit")
node = rnet.Node("motor")
state = node.publisher("/motor/state", last_will=b"died")
state.wait_for_subscribers()
try:
    state.send(b"runs")
    for order in node.subscriber("/motor/order"):
        pass
finally:
    note("finally")
"""


def test_a_stop_runs_finally_and_atexit_and_is_no_death(robot, tmp_path):
    (tmp_path / "motor.py").write_text(MOTOR)
    file = robot(f'[node.motor]\ncommand = ["{sys.executable}", "motor.py"]\n')
    states = rnet.Node("watcher").subscriber("/motor/state")
    for _ in range(2):
        with rnet.launch(file):
            # The second motor sends first: neither a last will nor PeerLostError comes between the two.
            assert bytes(states.recv(timeout=LIMIT_S)) == b"runs"
        assert (tmp_path / "ends").read_text().split() == ["finally", "atexit"]
        (tmp_path / "ends").unlink()


def test_without_the_program_the_error_says_what_brings_it(robot, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(rnet.errors.LaunchFailedError, match="rnet is not installed"):
        rnet.launch(robot(sleeper("a")))


def test_a_forked_child_has_no_part_in_a_launch(robot):
    with rnet.launch(robot(sleeper("a"))) as launched:
        child = os.fork()
        if child == 0:
            try:
                launched.stop()
            except rnet.ClosedError:
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert launched.exit_code is None and launched.nodes["/a"].state == "running"


PROGRAM = """
import sys
import rnet

launched = rnet.launch(sys.argv[1])
launched.wait_ready()
print(launched.nodes["/a"].pid, flush=True)
exec(sys.argv[2])
"""


def start(program: Callable[..., subprocess.Popen[str]], file: Path, then: str) -> tuple[subprocess.Popen[str], int]:
    """A program that launches the robot; the process of node `a`."""
    launcher = program(PROGRAM, str(file), then)
    line = launcher.stdout.readline()
    assert line, launcher.stderr.read()
    until(file.with_name("order").exists)  # before that, it would not catch SIGINT
    return launcher, int(line)


def test_ctrl_c_while_it_waits_stops_the_nodes(robot, program):
    file = robot(sleeper("a"))
    launcher, pid = start(program, file, "launched.wait()")
    launcher.send_signal(signal.SIGINT)
    code, _, err = finish(launcher)
    assert code == -signal.SIGINT and err.rstrip().endswith("KeyboardInterrupt")
    assert not is_alive(pid)
    assert file.with_name("order").read_text().split() == ["+a", "-a"]


def test_the_end_of_the_program_stops_the_nodes(robot, program):
    file = robot(sleeper("a"))
    # Not before the node would catch SIGINT.
    order = str(file.with_name("order"))
    look = "time.sleep(0.01)"  # sleep: between two checks of a condition
    ends = f"import os, time\nwhile not os.path.exists({order!r}): {look}"
    launcher, pid = start(program, file, ends)
    assert finish(launcher)[0] == 0
    assert not is_alive(pid)
    assert file.with_name("order").read_text().split() == ["+a", "-a"]


def test_a_killed_program_harms_no_node_and_the_next_launch_takes_it_over(robot, program):
    file = robot(sleeper("a"))
    launcher, pid = start(program, file, "launched.wait()")
    launcher.kill()
    launcher.wait()

    def next_one() -> rnet.launching.Launch | None:
        try:
            return rnet.launch(file)
        except rnet.errors.LaunchFailedError as error:  # the kernel is killing the launcher
            assert "is already launched" in str(error)
            return None

    found: list[rnet.launching.Launch] = []
    until(lambda: found.append(one) is None if (one := next_one()) else False)
    with found[0] as launched:
        assert launched.nodes["/a"].pid == pid and is_alive(pid)
    assert not is_alive(pid)


def test_the_thread_that_launches_may_end_before_the_nodes(robot):
    found: list[rnet.launching.Launch] = []
    file = robot(sleeper("a"))
    thread = threading.Thread(target=lambda: found.append(rnet.launch(file)))
    thread.start()
    thread.join()
    with found[0] as launched:
        launched.wait_ready(timeout=LIMIT_S)
        with pytest.raises(rnet.WaitTimeoutError):
            launched.wait(timeout=0.2)  # sleep: a launcher that died with the thread would have exited
