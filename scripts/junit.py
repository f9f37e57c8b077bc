#!/usr/bin/env python3
"""Prints notes, slow tests and tests that could not run, from the report of a test run."""

import re
import sys
import xml.etree.ElementTree as ElementTree

SLOW_S, SHOWN = 10.0, 20


def main(path: str) -> None:
    slow, lines = [], set()
    for suite in ElementTree.parse(path).iter("testsuite"):
        for case in suite.iter("testcase"):
            seconds = float(case.get("time", "0"))
            if seconds >= SLOW_S:
                slow.append((seconds, f"{suite.get('name')} {case.get('name')}"))
            for output in case.iter("system-err"):
                lines.update(re.findall(r"^(?:NOT RUN|step-note): .*", output.text or "", re.MULTILINE))
    for line in sorted(lines):
        print(line)
    for seconds, name in sorted(slow, reverse=True)[:SHOWN]:
        print(f"slow: {seconds:5.1f} s {name}")


main(sys.argv[1])
