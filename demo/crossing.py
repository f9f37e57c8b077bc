"""Compares the messages that crossed between two hosts, and finds uncounted losses.

Each host has a watcher with its own counts, in which the publishers of the other host are proxies. A proxy's
own log is like any other; the link's losses are not in it but in its `known_lost`, and its subscribers count
them as lost too. Three conditions must hold, in addition to the logger's own count (accounting.py):

1. The counts of each host agree by themselves.
2. A publisher's numbers, from the first that crossed, are those that its proxies sent, one proxy after another,
   and those that they know to be missing. No number is in neither, and none in both, except for messages that the
   publisher keeps for late joiners, which the next proxy may repeat.
3. Each sender's count equals that of its own host's watcher.
"""

import accounting


def local(books):
    """The counts of one host without proxies: only the publishers and subscriptions of its own nodes."""
    gaps = {}
    for proxy in _proxies(books):
        gaps[proxy["topic"]] = gaps.get(proxy["topic"], 0) + sum(proxy["known_lost"].values())
    own = [s for s in books["subscriptions"] if not s["proxy"]]
    return {
        **books,
        "publishers": [p for p in books["publishers"] if not p["proxy"]],
        "subscriptions": [_owed_with_gaps(s, gaps.get(s["topic"], 0)) for s in own],
    }


def _owed_with_gaps(subscription, gaps):
    """A subscriber counts as lost the gaps that its proxies have reported since it was admitted."""
    if subscription["gone"]:
        return subscription
    counted = min(max(0, -accounting.unaccounted(subscription)), gaps)
    return {**subscription, "owed": subscription["owed"] + counted}


def _proxies(books):
    return [p for p in books["publishers"] if p["proxy"]]


def crossing_publishers(books_by_host):
    """(host, publisher of another host, its proxies there in order) of all crossing topics."""
    for host, books in books_by_host.items():
        for other, source in books_by_host.items():
            if other == host:
                continue
            for publisher in source["publishers"]:
                if publisher["proxy"]:
                    continue
                ends = [p for p in _proxies(books) if p["stands_for"] == publisher["id"]]
                # A proxy with only a gap continues where the previous one ended.
                begun = sorted((p for p in ends if p["first"] is not None), key=lambda end: end["first"])
                if begun:
                    yield host, publisher, begun + [p for p in ends if p["first"] is None]


def _missing(end):
    return sum(end["known_lost"].values())


def uncounted(publisher, ends):
    """(messages of the publisher that no proxy has counted, messages that several have counted)."""
    never, twice, until = 0, 0, None
    for end in ends:
        first = until if end["first"] is None else end["first"]
        if until is not None:
            never += max(0, first - until)
            twice += max(0, until - first - publisher["kept"])
        until = max(until or 0, first + end["sent"] + _missing(end))
    return never + max(0, publisher["sent"] - until), twice + max(0, until - publisher["sent"])


def check(books_by_host, sent_by_host, tally, tally_host):
    """All disagreements, as text; an empty list if no message was lost uncounted."""
    for host, books in books_by_host.items():
        own_tally = tally if host == tally_host else {}
        for problem in accounting.check(local(books), sent_by_host[host], own_tally):
            yield f"host {host}: {problem}"
    for host, publisher, ends in crossing_publishers(books_by_host):
        never, twice = uncounted(publisher, ends)
        if never:
            yield f"{never} messages of {publisher['topic']} were lost in transit to {host} but not counted"
        if twice:
            yield f"{twice} messages of {publisher['topic']} were counted twice in transit to {host}"


def is_settled(books_by_host):
    """Whether all sent messages are accounted for on both hosts, so that the counts are final."""
    return all(accounting.is_settled(local(books)) for books in books_by_host.values()) and all(
        uncounted(publisher, ends) == (0, 0) for _, publisher, ends in crossing_publishers(books_by_host)
    )


def merged(books_by_host):
    """The combined counts of all hosts, with the time of the first. Latency is that of the host to which a
    topic crosses.
    """
    books = {host: local(books) for host, books in books_by_host.items()}
    latency = {}
    for host in books.values():
        latency.update({topic: times for topic, times in host["latency_us"].items() if times["p50"] is not None})
    for host, publisher, _ in crossing_publishers(books_by_host):
        latency[publisher["topic"]] = books[host]["latency_us"].get(publisher["topic"])
    return {
        "at_ns": next(iter(books.values()))["at_ns"],
        "publishers": [p for host in books.values() for p in host["publishers"]],
        "subscriptions": [s for host in books.values() for s in host["subscriptions"]],
        "latency_us": {topic: times for topic, times in latency.items() if times},
    }


def summary(books_by_host, status_by_host, nodes_by_host):
    """Received messages of each host by topic, and the status of its link."""
    crossed = {}
    for host, publisher, ends in crossing_publishers(books_by_host):
        topics = crossed.setdefault(host, {})
        topics[publisher["topic"]] = topics.get(publisher["topic"], 0) + sum(end["sent"] for end in ends)
    return {
        host: {
            "nodes": nodes_by_host[host],
            "topics": {
                topic: {
                    "crossed": count,
                    "latency_us": books["latency_us"].get(topic),
                    "lost": _lost(local(books), topic),
                }
                for topic, count in sorted(crossed.get(host, {}).items())
            },
            "link": link(status_by_host[host]),
        }
        for host, books in books_by_host.items()
    }


def _lost(books, topic):
    receiving = [s for s in books["subscriptions"] if s["topic"] == topic and not s["gone"]]
    return {cause: sum(s["lost"][cause] for s in receiving) for cause in accounting.CAUSES}


def link(status):
    """The status of the other host, from a host's `rnet link status --json`."""
    peer = status["peers"][0]
    return {
        "host": peer["host"],
        "state": peer["state"],
        "term": status["term"],
        "round_trip_us": _microseconds(peer["round_trip"]),
        "clock_offset_us": _microseconds(peer["clock_offset"]),
        "clock_uncertainty_us": _microseconds(peer["clock_offset_uncertainty"]),
        "problems": status["problems"],
        # Its counters restart when the other host returns.
        "topics": [
            {key: topic[key] for key in ("name", "direction", "messages", "lost", "skipped", "held_back_text")}
            for topic in peer["topics"]
        ],
    }


def _microseconds(duration):
    """Microseconds of a protobuf duration in JSON, such as "0.000166486s"; None if it is unknown."""
    return float(duration.removesuffix("s")) * 1e6 if duration else None
