"""Message metadata, and gaps that the publisher reports."""

from __future__ import annotations

import numpy as np
import pytest
import rnet
from conftest import LIMIT_S
from rnet.msgs import Image, Imu

FULL = {
    "origin": rnet.events.Origin(2**64 - 1, 7, 3),
    "source_ns": -5,
    "correlation": 2**64 - 1,
    "gap": rnet.events.KnownGap("link", 4),
}


def carried(sample: rnet.Sample) -> dict[str, object]:
    return {name: getattr(sample, name) for name in FULL}


@pytest.mark.parametrize("length", [0, 22, 4096, 4097, 100_000])
def test_messages_of_every_length_carry_it(pair, length):
    publisher, subscriber = pair("/t")
    for given in ({}, FULL, {"correlation": 0}):
        publisher.send(bytes(length), **given)
        sample = subscriber.recv_sample(timeout=LIMIT_S)
        assert bytes(sample) == bytes(length)
        assert carried(sample) == dict.fromkeys(FULL) | given
    assert type(FULL["origin"]) is rnet.events.Origin and subscriber.stats()[0].lost["link"] == 4


def test_typed_messages_carry_it(pair):
    imus, seen = pair("/imu", Imu)
    imus.send(Imu(frame_id="imu_link"), **FULL)
    sample = seen.recv_sample(timeout=LIMIT_S)
    assert (sample.value, carried(sample)) == (Imu(frame_id="imu_link"), FULL)


def test_images_carry_it(pair):
    images, seen = pair("/image", Image)
    image = Image.from_array(np.full((4, 6), 9, np.uint8), "mono8")
    images.send(image, **FULL)
    sample = seen.recv_sample(timeout=LIMIT_S)
    assert (sample.value.array.tolist(), carried(sample)) == (image.array.tolist(), FULL)


def test_gaps_are_counted_by_their_cause(pair):
    publisher, subscriber = pair("/t")
    publisher.publish_gap("link", 5)
    publisher.send(b"", gap=("restart", 2))
    assert subscriber.recv(timeout=LIMIT_S) is not None
    assert subscriber.try_recv() is None
    assert subscriber.stats()[0].lost == {"overrun": 0, "link": 5, "restart": 2, "detached": 0}


def test_what_is_no_meta_is_refused(pair):
    publisher, subscriber = pair("/t")
    for given in ({"gap": ("fog", 1)}, {"correlation": -1}, {"source_ns": 2**63}, {"origin": (1, 2)}):
        with pytest.raises((rnet.errors.BadValueError, OverflowError, ValueError, TypeError)):
            publisher.send(b"", **given)
    with pytest.raises(rnet.errors.BadValueError, match="overrun, link, restart, detached"):
        publisher.publish_gap("fog", 1)
    with pytest.raises(TypeError):
        publisher.send(b"", FULL["origin"])
    assert (publisher.sent, subscriber.try_recv()) == (0, None)
    publisher.close()
    with pytest.raises(rnet.ClosedError):
        publisher.send(b"", **FULL)
    with pytest.raises(rnet.ClosedError):
        publisher.publish_gap("link", 1)
