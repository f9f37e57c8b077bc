"""The report's figures follow from the raw data: computed again, each of them, by `recompute`."""

import copy
import gzip
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import overview  # noqa: E402  (found by the path above)
import report  # noqa: E402
from cells import numbers  # noqa: E402
from recompute import differences, sentence_differences, tables_of  # noqa: E402
from synthetic import Maker  # noqa: E402

RESULTS = HERE.parents[1] / "results"
COMMITTED = sorted(RESULTS.glob("*/raw.json.gz"))


@pytest.fixture(scope="module")
def raw():
    return Maker().make()


def rendered(raw):
    """The report's text, without its plots."""
    return report.markdown(report.raw_data.Data(copy.deepcopy(raw)), {}, "the method")


def test_every_figure_follows_from_the_raw_data(raw):
    text = rendered(raw)
    wrong, compared = differences(raw, text)
    assert wrong == []
    assert sentence_differences(raw, text) == []
    assert compared > 5000
    shown = {name.split(" / ")[0] for name in tables_of(text)}
    assert shown == {*raw["workloads"], "study3", "findings", "targets"}


def test_hand_computed_figures():
    """A raw file so small that its figures can be had by hand."""
    reader = lambda count, span_ns, buckets: {
        "topic": "stream",
        "count": count,
        "lost": 1,
        "out_of_order": 0,
        "corrupt": 0,
        "late": 0,
        "too_late": 0,
        "span_ns": span_ns,
        "latency": {"count": 4, "min": 900, "max": 7900, "sum": 13000, "buckets": buckets},
    }
    readers = [
        reader(4000, 2_000_000, [1000, 3, 8000, 1]),
        reader(4000, 1_000_000, [1000, 1, 3000, 3]),
    ]
    processes = [
        {"name": "publisher 0", "cpu_ns": 5_000_000, "rss_kib": 1024, "rss_peak_kib": 1024}
    ]
    processes += [
        {
            "name": f"subscriber {i}",
            "cpu_ns": 1_500_000,
            "rss_kib": 512,
            "rss_peak_kib": 512,
            "result": {"received": [r]},
        }
        for i, r in enumerate(readers)
    ]
    phase = {"label": "flood", "len": 22, "rate_hz": None, "elapsed_s": 0.1, "processes": processes}
    run = {
        "workload": "study1",
        "variant": "1->2",
        "system": "zmq-tcp",
        "repetition": 0,
        "error": None,
        "elapsed_s": 1,
        "phases": [phase],
    }
    raw = {
        "format": 1,
        "systems": {"zmq-tcp": {"label": "ZeroMQ"}},
        "runs": [run],
        "workloads": {"study1": {"title": "t", "about": "a", "systems": ["zmq-tcp"]}},
    }
    _, header, rows, _ = tables_of(rendered(raw))["study1 / 1->2 / flood"]
    row = dict(zip(header, rows[0]))
    assert row["delivered at each reader, k msg/s"] == "3,000"  # the mean of 2 and 4 million
    assert row["p50, µs"] == "1.00"  # the fourth of eight: 1 1 1 1 3 3 3 8
    assert row["p99, µs"] == "7.90"  # no more than the greatest
    assert row["p99.9, µs"] == "7.90"
    assert row["max, µs"] == "7.90"
    assert row["lost, messages"] == "2"
    assert row["CPU per message delivered, µs"] == "1.00"  # 8 ms for 8,000
    assert row["memory of all processes, MiB"] == "2.00"
    assert "**lost 2 (0.0250 %)**" in row["remarks"]


@pytest.mark.parametrize(
    ("count", "span_ns", "shown"), [(3, 2_000_000, "1.00"), (2, 10**6, "1.00"), (1, 0, "–")]
)
def test_n_messages_span_n_less_one_intervals(count, span_ns, shown):
    times = {"count": count, "min": 1, "max": 1, "sum": count, "buckets": [1, count]}
    reader = {"topic": "stream", "count": count, "span_ns": span_ns, "latency": times}
    reader |= dict.fromkeys(("lost", "out_of_order", "corrupt", "late", "too_late"), 0)
    process = {"name": "s", "cpu_ns": 1, "rss_kib": 1, "result": {"received": [reader]}}
    raw = one_run("study1", "flood", [process])
    text = rendered(raw)
    assert differences(raw, text)[0] == []
    _, header, rows, _ = tables_of(text)["study1 / v / flood"]
    assert dict(zip(header, rows[0]))["delivered at each reader, k msg/s"] == shown


def one_run(workload, label, processes):
    """Raw data of one run of one system with one phase."""
    phase = {"label": label, "len": 22, "rate_hz": None, "elapsed_s": 1, "processes": processes}
    run = {"workload": workload, "variant": "v", "system": "zmq-tcp", "repetition": 0}
    run |= {"error": None, "phases": [phase]}
    return {
        "format": 1,
        "systems": {"zmq-tcp": {"label": "ZeroMQ"}},
        "runs": [run],
        "workloads": {workload: {"title": "t", "about": "a", "systems": ["zmq-tcp"]}},
    }


@pytest.mark.parametrize("trips", [[[1 << 20, 5000], [1 << 20, 7000], [1 << 20, 6000]], []])
def test_lost_round_trips_are_a_row_and_no_failure(trips):
    result = {"round_trips": trips, "round_trips_lost": 1}
    raw = one_run("study2", "trip", [{"name": "p", "cpu_ns": 1, "rss_kib": 1, "result": result}])
    text = rendered(raw)
    assert differences(raw, text)[0] == []
    assert sentence_differences(raw, text) == []
    _, header, rows, _ = tables_of(text)["study2 / v"]
    row = dict(zip(header, rows[0]))
    assert row["lost, round trips"] == "1"
    assert row["≥ 1 MiB, µs"] == ("6.00" if trips else "–")
    assert row["remarks"] == f"**lost 1 ({'25.0' if trips else '100'} %)**"


def test_only_systems_that_lose_by_design_are_said_to(raw):
    lossy = {s["label"] for s in raw["systems"].values() if s["may_lose"]}
    assert lossy
    tables = tables_of(rendered(raw))
    for name, (_, header, rows, _) in tables.items():
        for cells in rows if header[0] == "system" else []:
            told = "by design" in " ".join(cells)
            assert told == (cells[0] in lossy), f"{name}: {cells}"


def test_findings_say_the_worst_first_and_leave_nothing_out(raw):
    text = rendered(raw)
    _, _, rows, _ = tables_of(text)["findings"]
    said = [r[0].split(",")[0].split(":")[0] for r in rows]
    assert sorted(said) == sorted({*raw["workloads"], "study3"})
    assert not any("iceoryx2, polling" in c or "limited" in c for r in rows for c in r)
    assert "- spinning reader: robot-net, spin against iceoryx2, polling" in text
    assert "limited" not in text[text.index("is first in") :].splitlines()[0]


def test_a_changed_finding_is_found(raw):
    text = rendered(raw)
    lines = text.splitlines()
    at = lines.index("<!-- table: findings -->") + 3
    swapped = [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
    assert differences(raw, "\n".join(swapped), "findings")[0] != []
    for was, now in ((" 1 of ", " 2 of "), ("adaptive: ", "spin: ")):
        found = next(i for i in range(at, at + 14) if was.strip() in lines[i])
        other = [
            *lines[:found],
            lines[found].replace(was.strip(), now.strip()),
            *lines[found + 1 :],
        ]
        assert differences(raw, "\n".join(other), "findings")[0] != [], was
    assert sentence_differences(raw, text.replace("is first in ", "is first in 1")) != []


def test_a_changed_target_is_found(raw):
    text = rendered(raw)
    assert differences(raw, text, "targets") == ([], 69)
    at = text.index("<!-- table: targets -->")
    for was, now in (("| yes |", "| **no** |"), ("≥ 200", "≥ 100"), ("| get, 1", "| set, 1")):
        changed = text[:at] + text[at:].replace(was, now, 1)
        assert changed != text, was
        assert differences(raw, changed, "targets")[0] != [], was
    label = raw["systems"]["rnet-state"]["label"]
    assert differences(raw, text.replace(f"{label}: ", f"{label}: 1"), "targets")[0] != []
    only = raw | {"runs": [r for r in raw["runs"] if r["workload"] != "state-cas"]}
    assert "INCR" not in rendered(only)
    assert "targets: compare and set" in str(differences(raw, rendered(only), "targets")[0])


def spoil(raw, change):
    """A copy of `raw` in which `change` was made to one run of ZeroMQ in study 1."""
    spoilt = copy.deepcopy(raw)
    run = next(r for r in spoilt["runs"] if r["workload"] == "study1" and r["system"] == "zmq-tcp")
    change(run)
    return spoilt


CHANGES = {
    "count": lambda run: received(run).update(count=received(run)["count"] * 3),
    "span": lambda run: received(run).update(span_ns=received(run)["span_ns"] // 9),
    "lost": lambda run: received(run).update(lost=1),
    "max": lambda run: received(run)["latency"].update(max=10**10),
    "cpu": lambda run: [
        p.update(cpu_ns=p["cpu_ns"] * 99) for q in run["phases"] for p in q["processes"]
    ],
    "memory": lambda run: run["phases"][0]["processes"][0].update(rss_kib=10**9),
}


def received(run):
    """The first subscription of the run's first phase."""
    return run["phases"][0]["processes"][1]["result"]["received"][0]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_number_is_found(raw, change):
    """The comparison detects errors: a raw file with one changed number does not match the report."""
    raw = raw | {"runs": [r for r in raw["runs"] if r["workload"] == "study1"]}
    before = rendered(raw)
    spoilt = spoil(raw, CHANGES[change])
    # The cost columns are medians over five repetitions: one run alone may leave them as they are.
    if change in ("cpu", "memory"):
        for run in spoilt["runs"]:
            if run["workload"] == "study1" and run["system"] == "zmq-tcp":
                CHANGES[change](run)
    assert differences(spoilt, before, "study1")[0] != []
    after = rendered(spoilt)
    assert after != before
    assert differences(spoilt, after, "study1")[0] == []


def test_a_changed_report_is_found(raw):
    text = rendered(raw)
    name = "study1 / 1->1 / flood"
    _, _, rows, _ = tables_of(text)[name]
    cell = next(c for c in rows[3][1:] if len(numbers(c)) == 3)
    start = text.index(f"<!-- table: {name} -->")
    at = text.index(cell, start)
    other = text[:at] + cell.replace("1", "2", 1).replace("5", "6", 1) + text[at + len(cell) :]
    assert other != text
    assert differences(raw, other, "study1")[0] != []


def test_what_did_not_run_is_a_row_that_says_why(raw):
    tables = tables_of(rendered(raw))
    _, _, rows, _ = tables["state / 1 client / set"]
    assert next(r for r in rows if r[0] == "NATS KV")[-1] == "nats-server is missing"
    _, _, rows, _ = tables["study1 / 1->4 / flood"]
    remarks = {r[0]: r[-1] for r in rows}
    assert remarks["ZeroMQ PAIR tcp"] == "PAIR joins exactly two"
    assert "1 of 5 runs failed" in remarks["nng tcp"]
    assert "**lost 85" in remarks["LCM | udpm"]
    assert len(rows) == len(raw["workloads"]["study1"]["systems"])


def test_a_report_of_nothing_is_made():
    raw = {"format": 1, "systems": {}, "workloads": {}, "runs": []}
    assert "0 runs" in rendered(raw)


def test_the_folder_has_report_plots_and_the_files_of_study_2(raw, tmp_path):
    source = tmp_path / "raw.json.gz"
    with gzip.open(source, "wt", encoding="utf-8") as file:
        json.dump(raw, file)
    report.write(source, tmp_path)
    text = (tmp_path / "REPORT.md").read_text(encoding="utf-8")
    assert differences(raw, text)[0] == []
    pictures = sorted(p.name for p in tmp_path.glob("*.png"))
    assert len(pictures) >= 7
    assert all(f"]({name})" in text for name in [*pictures, "overview.svg"])
    lines = (tmp_path / "study2" / "zmq-tcp-10ms.txt").read_text(encoding="utf-8").splitlines()
    times = [tuple(map(float, line.split())) for line in lines if not line.startswith("#")]
    assert [size for size, _ in times] == list(range(1, 1501))
    trips = {
        t[0] // 1024: t[1] / 1e6
        for r in raw["runs"]
        if (r["workload"], r["system"]) == ("study2", "zmq-tcp")
        for t in r["phases"][0]["processes"][0]["result"]["round_trips"]
    }
    assert all(abs(trips[int(size)] - ms) < 1e-6 for size, ms in times)


@pytest.mark.parametrize("source", COMMITTED, ids=lambda p: p.parent.name)
def test_a_committed_report_follows_from_its_raw_data(source):
    with gzip.open(source, "rt", encoding="utf-8") as file:
        raw = json.load(file)
    text = source.with_name("REPORT.md").read_text(encoding="utf-8")
    wrong, compared = differences(raw, text)
    assert wrong == []
    assert sentence_differences(raw, text) == []
    assert compared > 100


PICTURES = sorted(RESULTS.glob("*/overview.svg"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.parent.name)
def test_a_committed_overview_follows_from_the_report_beside_it(picture):
    """Its figures are those of the table, and it is what `compare report` draws."""
    source = picture.with_name("raw.json.gz")
    text = picture.read_text(encoding="utf-8")
    assert text == overview.svg(report.raw_data.Data(report.raw_data.load(source)))
    _, header, rows, _ = tables_of(picture.with_name("REPORT.md").read_text(encoding="utf-8"))[
        "latency / 1->1"
    ]
    figures = {}
    for cells in rows:
        row = dict(zip(header, cells))
        figures[row["system"].strip("*")] = [row["1 kHz p50, µs"], row["1 kHz p99, µs"]]
    drawn = [t.text for t in ElementTree.fromstring(text) if "end" in t.get("class", "").split()]
    drawn = drawn[3:]
    assert drawn[::3] == [
        "robot-net",
        "iceoryx2 event wake-up",
        "raw TCP",
        "Cyclone DDS, ROS 2 types",
        "Zenoh peer tcp",
        "ZeroMQ PUB/SUB tcp",
        "Redis pub/sub",
        "NATS core",
    ]
    names = ["robot-net, adaptive", *drawn[3::3]]
    assert [drawn[i + 1 : i + 3] for i in range(0, len(drawn), 3)] == [figures[n] for n in names]


def test_the_overview_has_a_row_for_each_system_that_was_measured(raw):
    rows = overview.rows(report.raw_data.Data(copy.deepcopy(raw)))
    assert [system for system, *_ in rows] == overview.SYSTEMS
    few = raw | {"runs": [r for r in raw["runs"] if r["system"] in ("nats", "tcp")]}
    data = report.raw_data.Data(copy.deepcopy(few))
    assert [system for system, *_ in overview.rows(data)] == ["tcp", "nats"]
    places = [float(t.get("cx")) for t in ElementTree.fromstring(overview.svg(data)) if t.get("cx")]
    assert overview.LEFT < places[0] < places[1] < overview.RIGHT
    assert overview.svg(report.raw_data.Data(few | {"runs": []})) is None


def test_the_report_names_the_message_path_that_was_measured(raw):
    assert "\nmessage path: 0123456789abcdef\n" in rendered(raw)
    before = raw | {"machine": {k: v for k, v in raw["machine"].items() if k != "message_path"}}
    assert "message path" not in rendered(before)


def test_each_committed_folder_has_a_report_and_its_raw_data():
    """Otherwise the test above would find nothing, and pass."""
    folders = [p for p in RESULTS.iterdir() if p.is_dir()] if RESULTS.is_dir() else []
    if not folders:
        pytest.skip("no results are committed yet")
    assert COMMITTED
    assert all((source.with_name("REPORT.md")).is_file() for source in COMMITTED)
