"""Plots of the key-value stores, a row for each."""

import stores
from plot_rows import canvas, medians, one_scale, percentiles


def state(data):
    """Sets and gets per second, on one scale."""
    pairs = [(v, p) for v, p in data.pairs("state") if p in ("set", "get")]
    for clients in dict.fromkeys(v for v, _ in pairs):
        phases = [p for v, p in pairs if v == clients]
        title = f"Values of 22 bytes, {clients}: calls per second"
        figure, panels = canvas(title, len(data.rows("state")), len(phases))
        for axes, phase in zip(panels, phases):
            medians(data, axes, stores.calls_table("state", clients, phase))
            axes.set_title(phase, loc="left")
        one_scale(panels)
        yield "state", f"state-{clients.split()[0]}.png", title, figure


def watch(data):
    """From a set to its watcher, beside messages."""
    for variant in data.variants("state-watch")[:1]:
        phases = [p for v, p in data.pairs("state-watch") if v == variant]
        title = "From a set to its watcher, beside the same 64 bytes as a message"
        figure, panels = canvas(title, len(data.rows("state-watch")), len(phases))
        for axes, phase in zip(panels, phases):
            percentiles(data, axes, "state-watch", variant, phase)
            axes.set_title(f"at {phase}", loc="left")
        one_scale(panels)
        yield "state-watch", "state-watch.png", title, figure
