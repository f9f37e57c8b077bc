"""Message types: descriptions, comparison, and classes of ``.proto`` files.

- :func:`named_dtype` gives a numpy dtype a name, :func:`describe` returns the description of a type.
- :func:`compare_types` states whether a publisher and a subscriber are compatible.
- :func:`load_proto`, :func:`load_proto_text` and :func:`load_descriptor_set` create message classes.

:mod:`rnet.msgs` contains the built-in messages; :mod:`rnet.codec` states which types are allowed.
"""

from __future__ import annotations

from .codec import describe, named_dtype
from .compare import PublishedType, TypeChange, TypeComparison, compare_types
from .protos import Protos, load_descriptor_set, load_proto, load_proto_text

__all__ = [
    "Protos",
    "PublishedType",
    "TypeChange",
    "TypeComparison",
    "compare_types",
    "describe",
    "load_descriptor_set",
    "load_proto",
    "load_proto_text",
    "named_dtype",
]
