"""Study 3: criterion's "Pub-Sub", and what of it was delivered.

`raw["study3"]` is what bench/study3 writes; its first page (bench/study3/src/lib.rs) shows the form.
"""

import published
from numbers_text import NOTHING, three, whole
from standing import Standing
from table import lines_of

DEFAULT = "rnet"
TIME = "Pub-Sub-delivered: time of an iteration, µs [95 %]"
HEADER = [
    "function",
    "Pub-Sub: time of an iteration, µs [95 %]",
    "Pub-Sub: published, M msg/s",
    "published by the founding study, M msg/s",
    TIME,
    "robot-net (default) : this, until delivered",
    "Pub-Sub-delivered: delivered, M msg/s",
    "Pub-Sub: published in all, messages",
    "Pub-Sub: delivered in all, messages",
    "remarks",
]


def render(raw):
    """Lines of Markdown."""
    study = raw.get("study3")
    if not study or not study.get("functions"):
        return []
    elements = study["messages_per_iteration"]
    functions = sorted(study["functions"], key=estimate)
    return [
        "## Study 3: criterion's Pub-Sub",
        "",
        f"`study3`: an iteration publishes {elements:,} messages of {study['message_len_bytes']} "
        "bytes; the subscriber lives in the same process. *Pub-Sub* is the study's figure, how fast "
        "`publish` returns: a system that drops looks fast in it. The other columns are what the "
        "study does not show: the time until all are counted at the subscriber, and how many of the "
        "published messages were delivered. Sorted by the time until delivered. robot-net (default) is “rnet”; below 1 "
        "robot-net is faster. Functions that lost messages in Pub-Sub-delivered come last, without "
        "a ratio: their time is no figure.",
        "",
        "<!-- table: study3 -->",
        *lines_of(HEADER, [of_function(f, elements, default_time(functions)) for f in functions]),
        "",
    ]


def is_ours(function):
    """Whether it is robot-net's."""
    return DEFAULT in function["function"].split("_")


def time_of_all(function):
    """The time until all are delivered, ns; `None` where not all were."""
    time = time_of(function, "delivered")
    return time["estimate"] if time and not lost_in(function, "delivered") else None


def default_time(functions):
    """`time_of_all` of our default function, or `None`."""
    return next((time_of_all(f) for f in functions if f["function"] == DEFAULT), None)


def standings(raw):
    """The rank of our default function among the others: one `Standing`, or none."""
    functions = (raw.get("study3") or {}).get("functions") or []
    ours = default_time(functions)
    others = sorted(
        (time_of_all(f), f["function"]) for f in functions if not is_ours(f) and time_of_all(f)
    )
    if ours is None and not others:
        return []
    best = others[0] if others else None
    found = Standing(
        title=f"study3: {TIME}",
        ours=(DEFAULT, ours / 1e3) if ours else None,
        other=(best[1], best[0] / 1e3) if best else None,
        floor=None,
        ratio=ours / best[0] if ours and best else None,
        less_is_better=True,
        ahead=sum(time < ours for time, _ in others) if ours else 0,
        others=len(others),
    )
    return [found]


def time_of(function, group):
    """Criterion's estimate with the ends of its interval, or `None`."""
    return (function.get(group) or {}).get("time_ns")


def estimate(function):
    """Sort key of the rows: functions that lost messages or did not run come last."""
    time = time_of(function, "delivered")
    return (time is None, lost_in(function, "delivered") > 0, time["estimate"] if time else 0)


def lost_in(function, group):
    """Messages published and not delivered."""
    figures = function.get(group)
    return figures["published"] - figures["delivered"] if figures else 0


def of_function(function, elements, ours):
    """The cells of one function."""
    name = function["function"]
    strong = "**" if is_ours(function) else ""
    cells = []
    for group in ("pub_sub", "delivered"):
        time, text, rate = time_of(function, group), NOTHING, NOTHING
        if time:
            low, middle, high = (three(time[k] / 1e3) for k in ("low", "estimate", "high"))
            text, rate = f"{middle} [{low}–{high}]", three(elements * 1e3 / time["estimate"])
        cells += [text, rate]
    cells.insert(2, three(published.STUDY3.get(name)))
    theirs = time_of_all(function)
    cells.insert(4, three(ours / theirs if ours and theirs else None))
    counted = function.get("pub_sub") or {}
    cells += [whole(counted.get("published")), whole(counted.get("delivered"))]
    return [f"{strong}{name}{strong}", *cells, remark(function)]


def remark(function):
    """Losses, and why it did not run."""
    said = []
    for group, title in (("pub_sub", "Pub-Sub"), ("delivered", "Pub-Sub-delivered")):
        lost = lost_in(function, group)
        if lost:
            share = three(100 * lost / function[group]["published"])
            said.append(f"**{title}: lost {whole(lost)} ({share} %)**")
    if function.get("why_not"):
        said.append(function["why_not"])
    return "; ".join(said)
