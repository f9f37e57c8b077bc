"""Figures published by the founding studies."""

# The founding study's figures, k/s, read once more from shared/seeds/zeromq-vs-redis.md.
PUBLISHED = {
    ("study1", "1->1", "zmq-tcp"): 481,
    ("study1", "1->1", "zmq-pair"): 584,
    ("study1", "1->1", "redis-pubsub"): 59.0,
    ("study1", "1->4", "zmq-tcp"): 410,
    ("study1", "1->4", "redis-pubsub"): 67.8,
    ("study1-kv", "1->1", "redis-kv-tcp"): 23.6,
    ("study1-kv", "1->1", "redis-kv-async"): 78.4,
    ("study1-kv", "1->4", "redis-kv-async"): 72.8,
}

# M messages/s, from zenoh-vs-nats.md.
STUDY3 = {
    "nats": 1.221,
    "zenoh": 1.6522,
    "nats_with_mutex": 1.06,
    "zenoh_with_mutex": 1.3427,
    "zeromq_with_mutex": 0.47209,
}
