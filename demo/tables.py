"""The displayed tables: live while the demo runs, and the summary at its end."""

import sys

COLUMNS = f"{'topic':<18} {'rate (Hz)':>10} {'p50 (us)':>10} {'p99 (us)':>10} {'max (us)':>10} {'lost':>7}"


def microseconds(value):
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def topic_row(topic, rate_hz, latency_us, lost):
    p50, p99, longest = (microseconds(latency_us[key]) for key in ("p50", "p99", "max"))
    return f"{topic:<18} {rate_hz:>10,.1f} {p50:>10} {p99:>10} {longest:>10} {lost:>7,}"


class LiveTable:
    """A table that is redrawn in place on a terminal; elsewhere each one is printed below the last."""

    def __init__(self, out=sys.stdout):
        self._out, self._in_place, self._height = out, out.isatty(), 0

    def print_line(self, text):
        """Prints a permanent line above the table."""
        print(text, file=self._out, flush=True)
        self._height = 0

    def show(self, title, rows):
        """`rows`: the watcher's, see demo/nodes-rust/src/rates.rs."""
        lines = [title, COLUMNS]
        lines += [topic_row(row["topic"], row["rate_hz"], row["latency_us"], row["lost"]) for row in rows]
        if self._in_place and self._height:
            self._out.write(f"\x1b[{self._height}A\x1b[J")
        self._height = len(lines)
        print("\n".join(lines), file=self._out, flush=True)


def print_summary(summary, out=sys.stdout):
    """Prints the summary of summary.json for people."""

    def say(text=""):
        print(text, file=out)

    say(f"\nSummary of {summary['seconds']:.1f} s\n")
    say(f"{COLUMNS} {'messages':>10}")
    for topic, t in summary["topics"].items():
        say(f"{topic_row(topic, t['rate_hz'], t['latency_us'], t['lost'])} {t['messages']:>10,}")
    say(f"\n{'node':<12} {'language':<9} {'CPU (%)':>8} {'memory (MB)':>12} {'joined in (ms)':>15}")
    for node, n in summary["nodes"].items():
        join = "-" if n["join_ms"] is None else f"{n['join_ms']:.2f}"
        say(f"{node:<12} {n['language']:<9} {n['cpu_percent']:>8.1f} {n['rss_kb'] / 1024:>12.1f} {join:>15}")
    recovery, loop = summary["recovery"], summary["loop"]
    say()
    if loop:
        times = loop["round_trip_us"]
        say(
            f"loop          {loop['rate_hz']:.0f} Hz; from state to torque and back: "
            f"p50 {microseconds(times['p50'])} us, p99 {microseconds(times['p99'])} us"
        )
    if recovery:
        held, again = recovery["held_after_ms"], recovery["recovery_ms"]
        cut = "hosts" in summary
        say(
            f"{'cable         cut' if cut else 'controller    killed'} at {recovery['killed_at_s']:.1f} s; "
            + ("no safe hold" if held is None else f"safe hold engaged {held:.0f} ms later")
            + f"; {'healed' if cut else 'restarted'} after {recovery['down_s']:.1f} s; "
            + ("loop not closed again" if again is None else f"loop closed again {again:.0f} ms after that")
        )
    if recovery and recovery["stopped_ms"] is not None:
        say(
            f"stop          by authority over the motors: held {recovery['stopped_ms']:.0f} ms after the "
            f"order, driven again {recovery['went_on_ms']:.0f} ms after the release"
        )
    for stop in summary["stops"]:
        verb = "raised" if stop["active"] else "released"
        say(
            f"urgent stop   {verb} at {stop['at_s']:.2f} s ({stop['reason']}), received by the watcher "
            f"{stop['latency_us']:.0f} us later"
        )
    say(f"camera        {summary['camera_source']}")
    say(f"robot         {_state_periods(summary['verdicts'])}")
    accounting = summary["accounting"]
    say(
        f"messages      {accounting['sent']:,} sent; {accounting['received']:,} received by all "
        f"subscribers, {accounting['lost']:,} lost and counted, {accounting['unaccounted']:,} lost without "
        "being counted"
    )


def print_hosts(hosts, out=sys.stdout):
    """Messages that crossed between two hosts."""
    for name, host in hosts.items():
        link = host["link"]
        offset, about, trip = (link[key] for key in ("clock_offset_us", "clock_uncertainty_us", "round_trip_us"))
        print(
            f"\nTo host {name} ({', '.join(host['nodes'])}); round trip {microseconds(trip)} us, clock of "
            f"the other host {(offset or 0) * 1e-6:+,.3f} s, uncertainty {microseconds(about)} us",
            file=out,
        )
        print(f"{'topic':<18} {'messages':>10} {'p50 (us)':>10} {'p99 (us)':>10}  lost", file=out)
        for topic, t in host["topics"].items():
            p50, p99 = (microseconds(t["latency_us"][key]) for key in ("p50", "p99"))
            lost = ", ".join(f"{count:,} {cause}" for cause, count in t["lost"].items() if count) or "0"
            print(f"{topic:<18} {t['crossed']:>10,} {p50:>10} {p99:>10}  {lost}", file=out)


def _state_periods(verdicts):
    """Successive windows of one state, joined."""
    parts = []
    for verdict in verdicts:
        if parts and parts[-1][0] == verdict["state"]:
            parts[-1][2] = verdict["until_s"]
        else:
            parts.append([verdict["state"], verdict["from_s"], verdict["until_s"]])
    return ", ".join(f"{state} {begin:.1f}-{end:.1f} s" for state, begin, end in parts) or "no verdicts"
