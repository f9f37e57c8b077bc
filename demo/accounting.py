"""Was a message lost without being counted? Three independent counts must agree.

1. rnet's own books, which the watcher keeps from outside: what was sent to a subscriber since it was admitted is
   received, passed over at its wish, waiting for it, or lost by a named cause. Nothing else can become of a message.
2. Each sender's count of what it handed to rnet.
3. The logger's count, from the numbers that the senders wrote into the messages themselves.

A subscriber that was killed is not asked any more: what it had not read was lost by nobody. A publisher that was killed
is: the watcher holds on to its log and reads in it how much was sent in the end.
"""

CAUSES = ("overrun", "link", "restart", "detached")


def lost(subscription):
    """Messages that a subscriber knows it has lost, whatever the cause."""
    return sum(subscription["lost"][cause] for cause in CAUSES)


def unaccounted(subscription):
    """Messages that were owed to a subscriber and of which nobody knows what became. Negative: counted twice."""
    known = subscription["received"] + subscription["skipped"] + subscription["queued"] + lost(subscription)
    return subscription["owed"] - known


def is_settled(books):
    """Whether all that was sent has been dealt with, so that the books can be closed."""
    return all(
        unaccounted(s) == 0 and (s["queued"] == 0 or s["skipped"] > s["received"])
        for s in books["subscriptions"]
        if not s["gone"]
    )


def check(books, sent_by_node, tally):
    """All that does not agree, in words; an empty list if no message was lost unseen.

    `books`: the watcher's; `sent_by_node`: {node: {topic: messages}} as the nodes say; `tally`: the logger's, by topic.
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
    told = {(node, topic): count for node, topics in sent_by_node.items() for topic, count in topics.items()}
    for node, topic in sorted(published.keys() | told.keys()):
        mine, theirs = told.get((node, topic)), published.get((node, topic))
        if mine != theirs:
            yield f"{node} reports {mine} messages sent on {topic}, but rnet counted {theirs}"


def _check_logger(books, tally):
    heard = {
        s["topic"]: s for s in books["subscriptions"] if s["node"].lstrip("/") == "logger" and not s["gone"]
    }
    for topic in sorted(heard.keys() | tally.keys()):
        if topic not in heard or topic not in tally:
            yield f"the logger and rnet disagree whether the logger receives {topic}"
            continue
        count, subscription = tally[topic], heard[topic]
        if count["received"] != subscription["received"]:
            received, counted = count["received"], subscription["received"]
            yield f"the logger received {received} messages of {topic}, but rnet counted {counted}"
        # rnet may know of more: what was lost before the first message heard leaves no gap in the numbers.
        if count["missing"] > lost(subscription):
            missing, counted = count["missing"], lost(subscription)
            yield f"the logger misses {missing} messages of {topic}, but rnet counted {counted} lost"
        if count["disordered"]:
            yield f"the logger received {count['disordered']} messages of {topic} twice or out of order"
