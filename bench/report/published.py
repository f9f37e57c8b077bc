"""The figures that the founding studies published, beside which ours stand.

Sources: shared/seeds/zeromq-vs-redis.md (study 1) and zenoh-vs-nats.md (study 3). Study 2 shows its
figures as pictures only. They come from other machines and other years: what they tell is which
system was ahead, not what this machine should reach.
"""

# (system, variant) -> k msg/s. The studies ran over loopback TCP.
STUDY1 = {
    ("zmq-tcp", "1->1"): 481.0,
    ("zmq-tcp", "1->4"): 410.0,
    ("zmq-pair", "1->1"): 584.0,
    ("redis-pubsub", "1->1"): 59.0,
    ("redis-pubsub", "1->4"): 67.8,
}

# (system, variant) -> k sets/s.
STUDY1_SETS = {
    ("redis-kv-tcp", "1->1"): 23.6,
    ("redis-kv-async", "1->1"): 78.4,
    ("redis-kv-async", "1->4"): 72.8,
}

# criterion's function -> M elements/s.
STUDY3 = {
    "nats": 1.2210,
    "zenoh": 1.6522,
    "nats_with_mutex": 1.0600,
    "zenoh_with_mutex": 1.3427,
    # The study calls it "zeromq" and states that it has the mutex.
    "zeromq_with_mutex": 0.47209,
}


def study1(system, variant):
    """Messages per second, k, or `None`."""
    return STUDY1.get((system, variant))


def study1_sets(system, variant):
    """Sets per second, k, or `None`."""
    return STUDY1_SETS.get((system, variant))
