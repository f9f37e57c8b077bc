"""Raw data of the orchestrator's form, made up from a seed: realistic in shape."""

import random

SYSTEMS = {
    # id: (label, language, flood msg/s, latency µs, µs per KiB)
    "unix": ("Unix socket, no library", "rust", 2.6e7, 9, 0.4),
    "tcp": ("TCP, no library", "rust", 2.2e7, 12, 0.6),
    "rnet-spin": ("robot-net, spin", "rust", 2.1e7, 0.6, 0.05),
    "rnet-adaptive": ("robot-net, adaptive", "rust", 1.9e7, 5, 0.05),
    "rnet-block": ("robot-net, block", "rust", 1.5e7, 28, 0.05),
    "iceoryx2-poll": ("iceoryx2, polling", "rust", 1.4e6, 0.5, 0.1),
    "iceoryx2-event": ("iceoryx2, event wake-up", "rust", 1.5e6, 9, 0.1),
    "zmq-tcp": ("ZeroMQ PUB/SUB tcp", "rust", 3.8e6, 78, 1.3),
    "zmq-pair": ("ZeroMQ PAIR tcp", "rust", 4.8e6, 70, 1.2),
    "nng": ("nng tcp", "rust", 5e5, 120, 1.7),
    "zenoh-tcp": ("Zenoh peer tcp", "rust", 2.7e6, 98, 2.6),
    "cyclonedds": ("Cyclone DDS, ROS 2 types", "rust", 2.4e5, 60, 1.5),
    "redis-pubsub": ("Redis pub/sub", "rust", 1.6e6, 70, 1.4),
    "nats": ("NATS core", "rust", 1.2e6, 150, 1.8),
    "lcm": ("LCM | udpm", "rust", 3e5, 60, 2.0),
    "rnet-cpp": ("robot-net, adaptive, C++", "c++", 1.8e7, 5, 0.05),
    "zmq-cpp": ("ZeroMQ PUB/SUB tcp, C++", "c++", 3.9e6, 76, 1.3),
    "py-zmq": ("ZeroMQ PUB/SUB tcp (Python)", "python", 5.9e5, 120, 1.3),
    "py-rnet": ("robot-net reliable (Python)", "python", 9e5, 15, 0.1),
    "redis-kv-tcp": ("Redis get/set, synchronous", "rust", 2.5e4, 40, 1),
    "redis-kv-async": ("Redis get/set, asynchronous", "rust", 3.1e5, 90, 1),
    "redis-kv": ("Redis get/set, Unix socket", "rust", 2.9e4, 34, 1),
    "rnet-state": ("robot-net state", "rust", 6e6, 0.15, 0.04),
    "rnet-cell": ("robot-net state, cell", "rust", 9e6, 0.1, 0.04),
    "nats-kv": ("NATS KV", "rust", 0, 0, 0),
    "rnet-call": ("robot-net service", "rust", 0, 3, 0),
    "zmq-req": ("ZeroMQ REQ/REP tcp", "rust", 0, 60, 0),
    "grpc": ("gRPC unary, tcp", "rust", 0, 150, 0),
    "rnet-watch": ("robot-net state, set and watch", "rust", 0, 6, 0),
    "redis-keyspace": ("Redis SET and keyspace notification", "rust", 0, 60, 0),
}
STORES = ["rnet-state", "rnet-cell", "redis-kv", "redis-kv-tcp", "redis-kv-async", "nats-kv"]
HOSTS = ["rnet-adaptive", "zenoh-tcp", "cyclonedds", "zmq-tcp", "nats"]
WATCHED = ["rnet-watch", "redis-keyspace"]
CALLS = ["rnet-call", "zmq-req", "grpc"]
PYTHON = ["py-zmq", "py-rnet"]
CPP = ["rnet-cpp", "zmq-cpp"]
FIELD = [s for s in SYSTEMS if s not in STORES + PYTHON + CPP + WATCHED + CALLS]


class Maker:
    """Makes raw data. `repeat` repetitions; everything follows from `seed`."""

    def __init__(self, seed=7, repeat=5):
        self.random = random.Random(seed)
        self.repeat = repeat
        self.runs = []

    def times(self, typical_us, count):
        """A distribution as the harness writes it: values to 1 %, the ends exact."""
        samples = [
            int(1000 * typical_us * self.random.lognormvariate(0, 0.35)) + 1 for _ in range(300)
        ]
        samples.append(int(typical_us * 1000 * self.random.uniform(8, 40)))
        # Many messages in few buckets: each sample represents several.
        weight = max(1, count // len(samples))
        buckets = {}
        for ns in samples:
            step = max(1, 1 << max(0, ns.bit_length() - 8))
            upper = ns // step * step + step - 1
            buckets[upper] = buckets.get(upper, 0) + weight
        flat = [x for pair in sorted(buckets.items()) for x in pair]
        total = sum(samples) * weight
        n = len(samples) * weight
        return {"count": n, "min": min(samples), "max": max(samples), "sum": total, "buckets": flat}

    def process(self, name, result=None, cpu_s=0.2):
        cpu_ns = int(cpu_s * 1e9 * self.random.uniform(0.8, 1.2))
        rss = self.random.randrange(3000, 90000)
        made = {"name": name, "cpu_ns": cpu_ns, "rss_kib": rss, "rss_peak_kib": rss + 100}
        return made | ({"result": result} if result else {})

    def reader(self, rate, typical_us, seconds, topic="stream", lost=0):
        latency = self.times(typical_us, int(rate * seconds))
        span = int(latency["count"] / rate * 1e9 * self.random.uniform(0.95, 1.05))
        late = latency["count"] // 100 if typical_us > 100 else 0
        counts = {
            "lost": lost,
            "out_of_order": 0,
            "corrupt": 0,
            "late": late,
            "too_late": late // 7,
        }
        return {
            "topic": topic,
            "count": latency["count"],
            "span_ns": span,
            "latency": latency,
        } | counts

    def phase(self, label, processes, length=None, rate_hz=None, elapsed_s=0.5):
        return {
            "label": label,
            "len": length,
            "rate_hz": rate_hz,
            "elapsed_s": elapsed_s,
            "processes": processes,
        }

    def carried(
        self, label, rate, typical_us, readers=1, publishers=1, seconds=0.5, length=64, lost=0
    ):
        sent = {
            "topic": "stream",
            "count": int(rate * seconds),
            "elapsed_ns": int(seconds * 1e9),
            "lag_max_ns": 52000,
        }
        processes = [self.process(f"publisher {i}", {"sent": [sent]}) for i in range(publishers)]
        for i in range(readers):
            received = [
                self.reader(rate * publishers, typical_us, seconds, lost=lost if i == 0 else 0)
            ]
            processes.append(self.process(f"subscriber {i}", {"received": received}))
        return self.phase(label, processes, length, rate, seconds)

    def run(self, workload, variant, system, repetition, phases, error=None):
        self.runs.append(
            {
                "workload": workload,
                "variant": variant,
                "system": system,
                "repetition": repetition,
                "error": error,
                "elapsed_s": 1.5,
                "phases": phases,
            }
        )

    def field(self, system, repetition):
        _, _, flood, us, per_kib = SYSTEMS[system]
        flood *= self.random.uniform(0.9, 1.1)
        for readers in (1, 4):
            if system == "zmq-pair" and readers == 4:
                continue
            each = flood / readers**0.7
            phases = [
                self.carried(
                    "flood", each, us * 40, readers, length=22, lost=17 if system == "lcm" else 0
                ),
                self.carried("limited", each * 0.8, us * 3, readers, length=22),
            ]
            error = (
                "the subscriber has heard nobody for 10 s"
                if (system, repetition, readers) == ("nng", 2, 4)
                else None
            )
            self.run("study1", f"1->{readers}", system, repetition, [] if error else phases, error)
        trips = []
        for kib in range(1 + repetition, 1501, self.repeat):
            trips.append(
                [
                    kib * 1024,
                    int(1000 * (4 * us + 2 * per_kib * kib) * self.random.lognormvariate(0, 0.2)),
                ]
            )
        pinged = {"round_trips": trips}
        if system == "lcm":
            pinged = {"round_trips": trips[:-3], "round_trips_lost": 3}
        pinger = [self.process("pinger", pinged), self.process("echo")]
        self.run(
            "study2", "10 ms", system, repetition, [self.phase("round trip", pinger, elapsed_s=3)]
        )
        rates = [("10 kHz", 1e4, 1), ("1 kHz", 1e3, 1.5), ("100 Hz", 100, 3), ("1 Hz", 1, 6)]
        self.run(
            "latency",
            "1->1",
            system,
            repetition,
            [self.carried(label, hz, us * by) for label, hz, by in rates],
        )
        sizes = [
            ("16 B", 16),
            ("1 KiB", 1024),
            ("64 KiB", 65536),
            ("1 MiB", 1 << 20),
            ("4 MiB", 4 << 20),
        ]
        self.run(
            "sizes",
            "1->1",
            system,
            repetition,
            [self.carried(label, 100, us * 3 + per_kib * n / 1024, length=n) for label, n in sizes],
        )
        floods = [("1 KiB", 1024), ("64 KiB", 65536), ("1 MiB", 1 << 20), ("1 MiB filled", 1 << 20)]
        self.run(
            "throughput",
            "1->1",
            system,
            repetition,
            [
                self.carried(label, 1e6 / (1e6 / flood + per_kib * n / 1024), us * 9, length=n)
                for label, n in floods
            ],
        )
        for readers in (1, 2, 4, 8):
            self.run(
                "readers",
                f"1->{readers}",
                system,
                repetition,
                [self.carried("1 kHz", 1e3, us * readers**0.8, readers)],
            )
        self.run(
            "publishers",
            "10->1",
            system,
            repetition,
            [self.carried("100 Hz each", 100, us * 3, publishers=10)],
        )
        self.urgent("urgent", "1->1", system, repetition)
        self.robot(system, repetition, us)
        self.memory(system, repetition)

    def urgent(self, workload, variant, system, repetition):
        _, _, flood, us, per_kib = SYSTEMS[system]
        event = self.reader(100, us * 3, 0.5, "event")
        sent = lambda lag_us: {
            "topic": "event",
            "count": 50,
            "elapsed_ns": 10**9,
            "lag_max_ns": int(lag_us * self.random.uniform(900, 1100)),
        }
        alone = [
            self.process("publisher 0", {"sent": [sent(60)]}),
            self.process("subscriber 0", {"received": [event]}),
        ]
        bulk = self.reader(1e6 / (1e6 / flood + per_kib * 64), us * 20, 1, "bulk")
        loaded = self.reader(100, us * 12, 1, "event")
        both = [
            self.process("publisher 0", {"sent": [sent(900)]}),
            self.process("subscriber 0", {"received": [loaded, bulk]}),
        ]
        self.run(
            workload,
            variant,
            system,
            repetition,
            [self.phase("unloaded", alone, 64, 100.0), self.phase("loaded", both, 64, 100.0)],
        )

    def robot(self, system, repetition, us):
        if system not in (
            "rnet-adaptive",
            "rnet-block",
            "cyclonedds",
            "zenoh-tcp",
            "zmq-tcp",
            "nats",
        ):
            return
        nodes = []
        for i, name in enumerate(("montreal", "lyon", "hamburg", "osaka", "mandalay")):
            got = [
                self.reader(100 / (1 + i), us * 2, 4, topic)
                for topic in (f"topic_{i}", f"topic_{i + 1}")
            ]
            sent = {"topic": name, "count": 400, "elapsed_ns": 4 * 10**9, "lag_max_ns": 90000}
            nodes.append(self.process(name, {"received": got, "sent": [sent]}))
        self.run(
            "sierra_nevada",
            "sierra_nevada",
            system,
            repetition,
            [self.phase("robot", nodes, elapsed_s=4.02)],
        )

    def memory(self, system, repetition):
        """Ten topics and a hundred, in the first repetition only."""
        if repetition:
            return
        for topics in (10, 100):
            phase = self.carried("10 Hz each", 10, SYSTEMS[system][3], 10, topics, length=100)
            kib = lambda most: self.random.randrange(topics * most) + 9000
            phase["memory"] = {"processes_kib": kib(90), "shared_kib": kib(40)}
            self.run("memory", f"{topics} topics", system, repetition, [phase])

    def client(self, call, rate, us, seconds=0.5, tries=0):
        count = int(rate * seconds)
        calls = {
            "call": call,
            "count": count,
            "distinct": int(count * 0.8) if call == "get" else 0,
            "wrong": 0,
            "elapsed_ns": int(seconds * 1e9),
            "latency": self.times(us, count),
            "age": self.times(us * 1.4, count if call == "get" else 0),
        } | ({"tries": int(count * tries)} if tries else {})
        return self.process(f"{call}ter", {"calls": calls})

    def stores(self, system, repetition):
        _, _, rate, us, _ = SYSTEMS[system]
        if not rate:
            return
        for readers in (1, 4):
            clients = [
                self.client("set", rate, us),
                *(self.client("get", rate / readers, us) for _ in range(readers)),
            ]
            server = self.process("server")
            self.run(
                "study1-kv",
                f"1->{readers}",
                system,
                repetition,
                [self.phase("set and get", [*clients, server], 22)],
            )
            phases = [
                self.phase(
                    call,
                    [*(self.client(call, rate / readers, us) for _ in range(readers)), server],
                    22,
                )
                for call in ("set", "get")
            ]
            self.run(
                "state", "1 client" if readers == 1 else "4 clients", system, repetition, phases
            )

    def more_of_state(self, system, repetition):
        """Sizes, counting together, durable sets."""
        _, _, rate, us, per_kib = SYSTEMS[system]
        if not rate:
            return
        sizes = [("22 B", 22), ("1 KiB", 1024), ("64 KiB", 65536), ("1 MiB", 1 << 20)]
        slower = lambda n: (rate / (1 + per_kib * n / 1024 / us), us + per_kib * n / 1024)
        phases = [
            self.phase(f"{call} {text}", [self.client(call, *slower(n))], n)
            for call in ("set", "get")
            for text, n in sizes
        ]
        self.run("state-sizes", "1 client", system, repetition, phases)
        for clients in (1, 4):
            of = f"{clients} client{'s' if clients > 1 else ''}"
            for call, text, tries in (
                ("add", "add", 1),
                ("compare_and_set", "compare and set", 1.0 + 0.5 * (clients - 1)),
            ):
                adding = [self.client(call, rate / tries, us, tries=tries) for _ in range(clients)]
                total = [self.process(f"client {i}", {"calls": TOTAL}) for i in range(clients)]
                phases = [self.phase("count", adding, 22), self.phase("total", total, 22)]
                self.run("state-cas", f"{text}, {of}", system, repetition, phases)
            sets = [self.client("set", min(rate, 4e3), max(us, 250)) for _ in range(clients)]
            self.run("state-durable", of, system, repetition, [self.phase("set", sets, 22)])

    def watched(self, system, repetition):
        us = SYSTEMS[system][3]
        phases = [self.carried(text, hz, us) for text, hz in (("1 kHz", 1e3), ("10 kHz", 1e4))]
        self.run("state-watch", "1->1", system, repetition, phases)

    def calls(self, system, repetition):
        us = SYSTEMS[system][3]
        for variant in ("at once", "1 ms"):
            times = [
                [64, int(2000 * us * self.random.lognormvariate(0, 0.2))] for _ in range(500)
            ]
            pinger = [self.process("pinger", {"round_trips": times}), self.process("echo")]
            phase = self.phase("round trip", pinger, elapsed_s=0.5)
            self.run("call", variant, system, repetition, [phase])

    def hosts(self, system, repetition):
        """Two hosts: the cable, and what joins them."""
        _, _, flood, us, per_kib = SYSTEMS[system]
        between = {"rnet-adaptive": ["link a", "link b"], "nats": ["server"]}.get(system, [])

        def joined(phase, copies=1):
            phase["processes"] += [self.process(who) for who in between]
            sent = sum(
                s["count"] for p in phase["processes"] for s in p.get("result", {}).get("sent", [])
            )
            each = (phase["len"] + 60) * copies * self.random.uniform(1, 1.1)
            return phase | {"wire_bytes": int(sent * each)}

        floods = [("22 B", 22), ("1 KiB", 1024), ("1 MiB", 1 << 20)]
        slower = lambda n: flood / 5 / (1 + per_kib * n / 1024 / us)
        phases = [joined(self.carried(t, slower(n), us * 9, length=n)) for t, n in floods]
        self.run("hosts-throughput", "1->1", system, repetition, phases)
        paced = [("64 B", 64), ("1 KiB", 1024)]
        phases = [joined(self.carried(t, 1e3, us * 4, length=n)) for t, n in paced]
        self.run("hosts-latency", "1->1", system, repetition, phases)
        for readers in (1, 10):
            carried = self.carried("1 kHz", 1e3, us * 4, readers, length=1024)
            copies = 1 if between == ["link a", "link b"] else readers
            phases = [joined(carried, copies)]
            self.run("hosts-readers", f"1->{readers}", system, repetition, phases)
        for cable in ("20 Mbit/s", "1 Gbit/s"):
            self.urgent("hosts-urgent", cable, system, repetition)

    def cpp(self, system, repetition):
        _, _, flood, us, per_kib = SYSTEMS[system]
        sizes = [("22 B", 22), ("1 KiB", 1024), ("1 MiB loaned", 1 << 20)]
        phases = [
            self.carried(label, 1e6 / (1e6 / flood + per_kib * n / 1024), us * 9, length=n)
            for label, n in sizes
        ]
        self.run("cpp", "throughput", system, repetition, phases)
        self.run("cpp", "latency", system, repetition, [self.carried("10 kHz", 1e4, us)])

    def python(self, system, repetition):
        _, _, rate, us, _ = SYSTEMS[system]
        self.run(
            "python",
            "throughput",
            system,
            repetition,
            [self.carried("flood", rate, us * 9, length=22)],
        )
        self.run("python", "latency", system, repetition, [self.carried("1 kHz", 1e3, us)])

    def make(self):
        for repetition in range(self.repeat):
            for system in FIELD:
                self.field(system, repetition)
            for system in STORES:
                self.stores(system, repetition)
                self.more_of_state(system, repetition)
            for system in [*CALLS, "rnet-adaptive"]:
                self.calls(system, repetition)
            for system in [*WATCHED, "rnet-adaptive", "nats"]:
                self.watched(system, repetition)
            for system in HOSTS:
                self.hosts(system, repetition)
            for system in [*CPP, "rnet-adaptive", "zmq-tcp"]:
                self.cpp(system, repetition)
            for system in PYTHON:
                self.python(system, repetition)
        return {
            "format": 1,
            "machine": {
                "cpu": "Made Up 9000",
                "cores": 2,
                "kernel": "6.18",
                "governor": None,
                "memory_gib": 7.6,
                "os": "Debian 12",
                "virtual": "kvm",
                "rustc": "rustc 1.90",
                "python": "3.11.7",
                "pinning": "none",
                "disk": "ext4 on /dev/made-up",
                "commit": "0000000",
                "message_path": "0123456789abcdef",
            },
            "options": {
                "repeat": self.repeat,
                "quick": False,
                "scale": 1.0,
                "started": "2026-01-02T03:04:05Z",
                "elapsed_s": 1800.0,
                "command": "compare run --repeat 5",
            },
            "systems": {s: about(s) for s in SYSTEMS},
            "workloads": {
                w: {"title": w, "about": f"Made up {w}.", "systems": members(w)} for w in WORKLOADS
            },
            "skipped": [
                {
                    "workload": "study1",
                    "variant": "1->4",
                    "system": "zmq-pair",
                    "why": "PAIR joins exactly two",
                }
            ],
            "runs": self.runs,
            "study3": {
                "study": "zenoh-vs-nats",
                "quick": False,
                "messages_per_iteration": 1000,
                "message_len_bytes": 13,
                "functions": [
                    function("rnet", 61000.0, 1.0),
                    function("rnet_with_mutex", 65000.0, 1.0),
                    function("zenoh", 605260.0, 0.9),
                    function("zenoh_with_mutex", 705260.0, 1.0),
                    function("libzmq", 50000.0, 1.0),
                    function("zeromq", 20000.0, 1.0, delivered_share=0.5),
                    function("nats", None, None),
                ],
            },
        }


def function(name, time_ns, share, delivered_share=1.0):
    """One function of study 3, of whose messages these shares were delivered."""
    row = {"function": name, "system": name, "mutex": False, "setup": "defaults"}
    if time_ns is None:
        return row | {"why_not": "no server", "pub_sub": None, "delivered": None}

    def figures(times, published, share):
        time = {"low": times * 0.99, "estimate": times, "high": times * 1.02}
        delivered = int(published * share)
        return {"published": published, "delivered": delivered, "time_ns": time}

    pub_sub, delivered = (
        figures(time_ns, 900_000, share),
        figures(time_ns * 1.5, 400_000, delivered_share),
    )
    return row | {"why_not": None, "pub_sub": pub_sub, "delivered": delivered}


WORKLOADS = [
    "study1",
    "study1-kv",
    "study2",
    "latency",
    "sizes",
    "throughput",
    "readers",
    "publishers",
    "call",
    "sierra_nevada",
    "memory",
    "urgent",
    "hosts-throughput",
    "hosts-latency",
    "hosts-readers",
    "hosts-urgent",
    "state",
    "state-sizes",
    "state-cas",
    "state-durable",
    "state-watch",
    "cpp",
    "python",
]
# The value that a client reads at the end.
TOTAL = {
    "call": "total",
    "count": 0,
    "total": 7,
    "distinct": 0,
    "wrong": 0,
    "elapsed_ns": 0,
    "latency": {"count": 0, "min": 0, "max": 0, "sum": 0, "buckets": []},
    "age": {"count": 0, "min": 0, "max": 0, "sum": 0, "buckets": []},
}


def members(workload):
    """The systems that take part in a workload."""
    if workload == "sierra_nevada":
        return ["rnet-adaptive", "rnet-block", "cyclonedds", "zenoh-tcp", "zmq-tcp", "nats"]
    if workload.startswith("hosts-"):
        return HOSTS
    if workload == "python":
        return PYTHON
    if workload == "cpp":
        return [*CPP, "rnet-adaptive", "zmq-tcp"]
    if workload == "call":
        return [*CALLS, "rnet-adaptive"]
    if workload == "state-watch":
        return [*WATCHED, "rnet-adaptive", "nats"]
    stores = workload == "study1-kv" or workload.startswith("state")
    return STORES if stores else FIELD


def about(system):
    """A system's description."""
    label, language, *_ = SYSTEMS[system]
    kind = "key_value" if system in STORES else "pubsub"
    lossy = "UDP: what the buffer has no room for | is gone" if system == "lcm" else None
    missing = "nats-server is missing" if system == "nats-kv" else None
    return {
        "label": label,
        "client": "made up",
        "language": language,
        "version": None if missing else "1.2.3",
        "unavailable": missing,
        "settings": ["no-drop, as its guide advises"],
        "kind": kind,
        "may_lose": lossy,
    }
