"""Checks that no message was lost without being counted. Three independent counts must agree.

1. rnet's own counts, which the watcher reads as an observer: a message sent to a subscriber since it was
   admitted is received, skipped by its settings, queued, or lost by a named cause. There is no other outcome.
2. Each sender's count of the messages that it passed to rnet.
3. The logger's count, from the numbers that the senders wrote into the messages themselves.

A subscriber that was killed is not counted: its unread messages are not a loss. A publisher that was killed
is: the watcher keeps its log open, and reads from it how much was sent in total.
"""

CAUSES = ("overrun", "link", "restart", "detached")


def lost(subscription):
    """Messages that a subscriber has counted as lost, for any cause."""
    return sum(subscription["lost"][cause] for cause in CAUSES)


def unaccounted(subscription):
    """Messages owed to a subscriber and not accounted for. Negative: counted twice."""
    known = subscription["received"] + subscription["skipped"] + subscription["queued"] + lost(subscription)
    return subscription["owed"] - known


def is_settled(books):
    """Whether all sent messages are accounted for, so that the counts are final."""
    return all(
        unaccounted(s) == 0 and (s["queued"] == 0 or _may_leave_messages(s))
        for s in books["subscriptions"]
        if not s["gone"]
    )


def _may_leave_messages(subscription):
    """Whether a subscriber reads the newest messages alone. The logger reads all."""
    return subscription["skipped"] > subscription["received"] and subscription["node"].lstrip("/") != "logger"


def check(books, sent_by_node, tally):
    """All disagreements, as text; an empty list if no message was lost uncounted.

    `books`: the watcher's; `sent_by_node`: {node: {topic: messages}} from the nodes; `tally`: the logger's,
    by topic.
    """
    return [*_check_books(books), *_check_senders(books, sent_by_node), *_check_logger(books, tally)]


def _check_books(books):
    for subscription in books["subscriptions"]:
        if subscription["gone"]:
            continue
        who = f"{subscription['node']} on {subscription['topic']}"
        if subscription["unserved"]:
            yield f"{who}: {subscription['unserved']} publishers are not connected to it"
        difference = unaccounted(subscription)
        if difference > 0:
            yield f"{who}: {difference} messages were lost but not counted"
        if difference < 0:
            yield f"{who}: {-difference} messages were counted but never sent"


def _check_senders(books, sent_by_node):
    published = {}
    for publisher in books["publishers"]:
        if not publisher["gone"]:
            published[publisher["node"].lstrip("/"), publisher["topic"]] = publisher["sent"]
    reported = {(node, topic): count for node, topics in sent_by_node.items() for topic, count in topics.items()}
    for node, topic in sorted(published.keys() | reported.keys()):
        mine, theirs = reported.get((node, topic)), published.get((node, topic))
        if mine != theirs:
            yield f"{node} reports {mine} messages sent on {topic}, but rnet counted {theirs}"


def _check_logger(books, tally):
    subscriptions = {
        s["topic"]: s for s in books["subscriptions"] if s["node"].lstrip("/") == "logger" and not s["gone"]
    }
    for topic in sorted(subscriptions.keys() | tally.keys()):
        if topic not in subscriptions or topic not in tally:
            yield f"the logger and rnet disagree whether the logger receives {topic}"
            continue
        count, subscription = tally[topic], subscriptions[topic]
        # The logger is asked after the watcher, and may have received meanwhile what was queued.
        received, counted = count["received"], subscription["received"]
        if not counted <= received <= counted + subscription["queued"]:
            yield f"the logger received {received} messages of {topic}, but rnet counted {counted}"
        # rnet may count more: losses before the first received message leave no gap in the numbers.
        if count["missing"] > lost(subscription):
            missing, counted = count["missing"], lost(subscription)
            yield f"the logger misses {missing} messages of {topic}, but rnet counted {counted} lost"
        if count["disordered"]:
            yield f"the logger received {count['disordered']} messages of {topic} twice or out of order"
