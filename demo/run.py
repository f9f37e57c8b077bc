"""`make demo`: a robot of ten processes for DEMO_SECONDS (default 20), in Rust, Python and C++, over rnet.

It starts the nodes, shows their messages, kills the controller in the middle, and restarts it. The exit code
is 0 on success, or 1 with the reason if a message was lost uncounted, a node did not join, or the loop did
not close. README.md describes the nodes; DEMO_BREAK breaks one of them, to test that this is detected. With
DEMO_HOSTS=2 the robot has two computers and the cable between them is cut: two_hosts.py.
"""

import contextlib
import os
import signal
import sys

import summary as summaries
import tables
import two_hosts
from domain import Domain
from session import OUT, ROOT, Demo, target
from supervision import NodeProcesses, DemoFailed

DEFAULT_SECONDS, MIN_SECONDS = 20.0, 5.0


def _seconds():
    text = os.environ.get("DEMO_SECONDS") or str(DEFAULT_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not MIN_SECONDS <= seconds <= 86_400:
        sys.exit(f"demo: DEMO_SECONDS is {text!r}, expected a number from {MIN_SECONDS:.0f} to 86400")
    return seconds


def _interrupt(number, _frame):
    raise KeyboardInterrupt(number)


def main():
    """Runs the demo; returns the exit code."""
    seconds = _seconds()
    hosts = os.environ.get("DEMO_HOSTS") or "1"
    if hosts not in ("1", "2"):
        sys.exit(f"demo: HOSTS is {hosts!r}, expected 1 or 2")
    if hosts == "2" and (why := two_hosts.missing()):
        sys.exit(f"demo: HOSTS=2: {why}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "summary.json").unlink(missing_ok=True)
    # The programs of this checkout, built by `make demo`.
    os.environ["PATH"] = f"{target()}:{os.environ['PATH']}"
    try:
        with Domain() as domain, contextlib.ExitStack() as stack:
            cable = stack.enter_context(two_hosts.cable(domain)) if hosts == "2" else None
            crew = stack.enter_context(NodeProcesses(OUT, ROOT / "demo" / "robot.toml", domain.environment()))
            demo = two_hosts.TwoHosts(crew, seconds, cable) if cable else Demo(crew, seconds)
            evidence, reason = None, None
            try:
                evidence = demo.run()
            except DemoFailed as failure:
                reason = str(failure)
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
        return 130
    summary = summaries.make(demo, evidence, reason)
    summaries.write(summary, OUT / "summary.json")
    if evidence:
        tables.print_summary(summary)
        if cable:
            tables.print_hosts(summary["hosts"])
    for failure in summary["failures"]:
        print(f"demo: FAILED: {failure}", file=sys.stderr)
    if summary["ok"]:
        print(f"\ndemo: ok; all results are in {(OUT / 'summary.json').relative_to(ROOT)}")
    return 0 if summary["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
