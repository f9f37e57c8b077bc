"""Runs README.md and every page of the guide, and compares output with the code blocks (``played_page``)."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from played_page import LIMIT_S, RNET, ROOT, Play, blocks, play_in, run_python, run_session

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "guide").glob("*.md"))]

#: Blocks that are not run, by page and first line, with the reason. Their `rnet` commands are still parsed.
NOT_RUN = {
    ("README.md", "make demo"): "this test is part of `make test`, and demo/ has tests of the demo",
    ("README.md", "make dist"): "`make test-dist` runs it and its results",
    ("getting-started.md", "make build"): "this test needs its result",
    ("getting-started.md", "cargo run --bin example-hello-listener"): "examples/rust/tests/examples.rs runs both",
    ("check-your-machine.md", "rnet bench throughput"): "minutes; crates/rnet-cli/tests/it/bench.rs runs each for a moment",
    ("check-your-machine.md", "rnet bench topology --example > topology.toml"): "minutes; crates/rnet-cli/tests/it/bench.rs runs each for a moment",
    ("real-time.md", "rnet doctor --realtime"): "its output depends on the machine",
    ("real-time.md", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet isolcpus=managed_irq,domain,2-3 nohz_full=2-3 irqaffinity=0-1"'): "a system file",
    ("real-time.md", "chrt -f 50 ./controller"): "rights to SCHED_FIFO",
    ("real-time.md", "import ctypes"): "rights to SCHED_FIFO, and a core",
    ("real-time.md", "docker run --ipc=host --cpuset-cpus=2,3 --ulimit rtprio=90 --ulimit memlock=-1 --device /dev/cpu_dma_latency …"): "docker",
    ('deploying.md', 'docker run --ipc=host --user "$(id -u):$(id -g)" -e RNET_DOMAIN=left robot python camera.py'): "docker; containers_communicate_and_detect_death in crates/rnet-node/tests/it/presence.rs tests it",
    ("deploying.md", "sudo install -D arm.py /etc/rnet/nodes/arm"): "systemd; scripts/dist-test.sh verifies the unit",
    ("deploying.md", "sudo systemd-sysusers rnet.conf && sudo systemd-tmpfiles --create rnet.conf && sudo systemctl daemon-reload"): "scripts/dist-test.sh runs it in its own root",
    ("two-computers.md", "rnet node list --verbose"): "two hosts; crates/rnet-net/tests/it/rnet_link.rs and crates/rnet-cli/tests/it/link.rs test it",
    ("two-computers.md", "rnet state get @robot/arm/mode"): "two hosts; crates/rnet-cli/tests/it/state.rs and param.rs test it",
    ("two-computers.md", "import rnet"): "two hosts; python/tests/test_state_of.py tests it",
    ("two-computers.md", "RNET_INSECURE=1 rnet link --network peers --connect tcp/10.0.0.2:7450 --host laptop"): "two hosts",
    ("playing.md", "rnet bag info run.mcap"): "a recording; crates/rnet-cli/tests/it/bag.rs runs each",
    ("playing.md", "rnet bag check run.mcap"): "a recording; crates/rnet-cli/tests/it/bag.rs runs each",
    ("playing.md", "rnet bag plot run.mcap /imu.linear_acceleration.x"): "a recording; crates/rnet-cli/tests/it/bag.rs runs each",
    ("playing.md", "rnet bag filter run.mcap --topic '/arm/**' --start 10 --end 20 --output arm.mcap"): "a recording; crates/rnet-cli/tests/it/bag.rs runs each",
    ("playing.md", "rnet play run.mcap"): "a recording; crates/rnet-cli/tests/it/play.rs runs each",
    ("playing.md", "rnet play run.mcap --paused --node-name /player"): "a recording; crates/rnet-cli/tests/it/play.rs calls each",
    ("playing.md", "rnet rerun run.mcap --node ./controller"): "a recording; crates/rnet-cli/tests/it/rerun.rs runs each",
    ("dashboard.md", "rnet dashboard"): "serves until it is stopped; crates/rnet-cli/tests/it/dashboard.rs runs it",
    ("dashboard.md", "openssl rand -hex 24 > token && chmod 600 token"): "a certificate; crates/rnet-dashboard/tests/it/hostile.rs makes one",
    ("see.md", "rnet trace --chain /imu,/estimate,/cmd --budget-ms 10"): "a robot; crates/rnet-cli/tests/it/trace.rs runs it",
    ("cpp.md", "sudo apt-get install ./librnet1_*.deb ./librnet-dev_*.deb"): "test_cpp.py installs them in its own root",
    ("cpp.md", "make build"): "`make build-c` installs the library of this test",
    ("cpp.md", "export CMAKE_PREFIX_PATH=$HOME/rnet"): "these tests set both",
    ("cpp.md", "colcon build --cmake-args -DCMAKE_PREFIX_PATH=$HOME/rnet"): "test_cpp.py runs it",
    ("security.md", "ssh laptop mkdir -p .config/rnet"): "two hosts; crates/rnet-cli/tests/it/keys.rs copies the file",
    ("deploying.md", 'sudo usermod -aG rnet "$USER"'): "changes the machine's users",
}

#: Blocks with a name are files of the page's commands; test_cpp.py compiles the others.
CODE = {"c", "cpp", "cmake", "xml"}


def begin(lines: list[str]) -> str:
    """The first line without its trailing comment."""
    return lines[0].partition("  ")[0]


def not_run(page: Path, lines: list[str]) -> bool:
    return (page.name, begin(lines)) in NOT_RUN


def pages(*languages: str) -> pytest.MarkDecorator:
    """The pages that have a block in one of these languages."""
    found = [page for page in PAGES if blocks(page, *languages)]
    return pytest.mark.parametrize("page", found, ids=lambda page: page.stem)


@pages("console")
def test_commands_print_what_the_page_says(page: Path, played: Callable[[Path], Play]) -> None:
    played(page)


@pages("python", "pycon")
def test_python_does_what_the_page_says(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with play_in() as play:
        for name in ("RNET_DIR", "RNET_STATE_DIR"):
            monkeypatch.setenv(name, play.environment[name])
        monkeypatch.setenv("RNET_DOMAIN", "python")
        monkeypatch.delenv("RNET_GROUP", raising=False)
        monkeypatch.chdir(play.where)
        run_python(page, partial(not_run, page))
        run_session(page)


@pages("rust")
def test_rust_is_compiled(page: Path) -> None:
    """Each block is a doc test or part of an example, whose tests run it."""
    crates = [ROOT / "tests" / "messages" / "src" / "lib.rs", ROOT / "crates" / "rnet-record" / "src" / "lib.rs"]
    if any(re.search(rf'[/"]{page.name}"', crate.read_text()) for crate in crates):
        return
    sources = (ROOT / "examples" / "rust").glob("*/*.rs")
    programs = [[line.strip() for line in source.read_text().splitlines()] for source in sources]
    for _, _, block in blocks(page, "rust"):
        wanted = [line.strip() for line in block]
        found = any(
            program[at : at + len(wanted)] == wanted for program in programs for at in range(len(program))
        )
        assert found, f"{page.name}: neither compiled as a doc test nor in an example: {wanted}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_played(page: Path) -> None:
    ran = "\n".join(line for _, _, lines in blocks(page, "console") for line in lines if line.startswith("$ "))
    for language, name, lines in blocks(page):
        if language == "sh":
            assert not_run(page, lines), f"{page.name}: write its output, as ```console: {lines}"
            for line in lines:
                if line.startswith("rnet "):
                    options = shlex.split(line, comments=True)[1:]
                    options = options[: options.index(">")] if ">" in options else options
                    # The words after --node belong to another program.
                    end = options.index("--node") if options[0] == "rerun" else len(options)
                    options.insert(end, "--help")
                    subprocess.run([RNET, *options], check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)
        elif language == "python" and name:
            module = name.removesuffix(".py").replace("/", ".")
            assert name in ran.split() or f"-m {module} " in f"{ran} ".replace("\n", " "), f"{page.name}: nothing runs {name}"
        else:
            assert language in {"console", "pycon", "python", "rust", "proto", "text", "ini", "toml", "yaml"} | CODE, language
    text = page.read_text(encoding="utf-8").splitlines()
    fences = sum(line.startswith("```") for line in text)
    assert fences == 2 * len(blocks(page)), f"{page.name}: a block without a language, or indented"


def test_blocks_in_not_run_exist() -> None:
    shown = {(page.name, begin(lines)) for page in PAGES for language, _, lines in blocks(page) if language != "console"}
    assert NOT_RUN.keys() <= shown
