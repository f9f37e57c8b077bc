"""The message that all systems carry, as described in bench/harness/src/message.rs."""

from __future__ import annotations

import struct

import numpy as np

HEADER = struct.Struct("<QQ")
HEADER_LEN = HEADER.size
PAGE = 4096
# Stride of long messages that are compared whole; of the others a word per page is compared.
WHOLE_EVERY = 1024

HELLO, DATA, FILLED, END = 1, 2, 3, 4

# The second word of the header: kind (60..64), phase (52..60), publisher (40..52), number (0..40).
NUMBER_BITS = 40
NUMBER_MASK = (1 << NUMBER_BITS) - 1


def stream_word(kind: int, phase: int, publisher: int) -> int:
    """The common bits, above the number, of messages of one kind, phase and publisher."""
    return kind << 20 | (phase & 0xFF) << 12 | publisher & 0xFFF


def header_word(kind: int, phase: int, publisher: int, number: int) -> int:
    """The second word of a header."""
    return stream_word(kind, phase, publisher) << NUMBER_BITS | number & NUMBER_MASK


def patterned(length: int) -> bytes:
    """The content of a message of this length: a pattern fixed by position."""
    position = np.arange(length, dtype=np.uint64)
    return ((position * 131 + (position >> np.uint64(8)) + 7) & np.uint64(0xFF)).astype(
        np.uint8
    ).tobytes()


def page_words(message) -> np.ndarray:
    """The first word of each whole page of a message but the first page, as a view."""
    whole = len(message) // PAGE * PAGE
    return np.frombuffer(message, np.uint8, whole).view("<u8")[PAGE // 8 :: PAGE // 8]


def long_content_is_right(message, number: int, template: bytes) -> bool:
    """Checks a message of a page or more: the number in each page, and now and then everything."""
    if not bool((page_words(message) == number).all()):
        return False
    if number % WHOLE_EVERY:
        return True
    expected = bytearray(template[: len(message)])
    page_words(expected)[:] = number
    return bytes(message[HEADER_LEN:]) == expected[HEADER_LEN:]


def _words(message) -> np.ndarray:
    count = (len(message) - HEADER_LEN) // 8
    return np.frombuffer(message, np.uint8, count * 8, HEADER_LEN).view("<u8")


def fill(message, number: int) -> None:
    """Writes every word after the header: the number plus the word's position."""
    words = _words(message)
    words[:] = np.arange(number, number + len(words), dtype=np.uint64)
    for i in range(HEADER_LEN + 8 * len(words), len(message)):
        message[i] = 0


def sum_is_right(message, number: int) -> bool:
    """Whether a filled message adds up."""
    words = _words(message)
    count = len(words)
    expected = number * count + count * (count - 1) // 2
    return int(words.sum(dtype=np.uint64)) == expected & 0xFFFF_FFFF_FFFF_FFFF
