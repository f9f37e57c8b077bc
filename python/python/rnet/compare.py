"""Compatibility of types, by the rules of docs/design/types.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from . import _rnet, codec

__all__ = ["PublishedType", "TypeChange", "TypeComparison", "compare_types"]


class PublishedType(NamedTuple):
    """The type of one publisher of a topic, as the publisher describes it; from ``Node.published_types``."""

    #: Id of the publisher, as in ``Sample.publisher``.
    publisher: int
    #: Name of its node.
    node: str
    #: The kind of its messages.
    kind: Literal["raw", "plain", "protobuf", "unknown"]
    #: Name of the type, for protobuf messages the full name; empty for raw bytes.
    name: str
    #: For a protobuf message: a FileDescriptorSet with comments; None if it cannot be read.
    descriptor_set: bytes | None
    #: For a plain type: its layout as JSON.
    layout: str | None


class TypeChange(NamedTuple):
    """One difference between the type of a publisher and that of a subscriber."""

    #: The rule of docs/design/types.md that covers it: "field.renamed".
    rule: str
    #: Whether it makes the types incompatible.
    breaking: bool
    #: The field, from the outside in: "pose.x"; empty for the types as a whole.
    path: str
    #: What the publisher has there; empty for nothing.
    publisher: str
    #: What the subscriber has there; empty for nothing.
    subscriber: str

    def __str__(self) -> str:
        where = f" `{self.path}`" if self.path else ""
        publisher, subscriber = self.publisher or "nothing", self.subscriber or "nothing"
        return f"{self.rule}{where}: publisher has {publisher}, subscriber has {subscriber}"


@dataclass(frozen=True)
class TypeComparison:
    """Whether a subscriber is compatible with a publisher; true if it is."""

    compatible: bool
    #: All differences, breaking ones first.
    changes: tuple[TypeChange, ...]

    def __bool__(self) -> bool:
        return self.compatible

    def __str__(self) -> str:
        word = "compatible" if self.compatible else "INCOMPATIBLE"
        lines = [word if self.changes else "no difference"]
        for change in self.changes:
            lines.append(f"  {'breaking ' if change.breaking else ''}{change}")
        return "\n".join(lines)


def compare_types(publisher: Any, subscriber: Any) -> TypeComparison:
    """Whether subscribers with one type can receive from publishers with another type.

    Both are types as for ``Node.publisher``, or a :class:`PublishedType`. Nodes make the same check when
    they connect. It is not symmetric; for an old and a new version of a type, check both directions.

    Raises SchemaError for an invalid descriptor set; TypeError for an object that is not a type.
    """
    changes = [
        TypeChange(*change)
        for change in _rnet.compare_types(_described(publisher), _described(subscriber))
    ]
    return TypeComparison(not any(change.breaking for change in changes), tuple(changes))


def _described(of: Any) -> str | tuple[bytes, str]:
    if not isinstance(of, PublishedType):
        return '{"kind":"raw"}' if of is None else codec.codec(of).described
    if of.kind == "unknown":
        raise ValueError(f"the type of node {of.node} has a kind that this version of rnet does not support")
    if of.kind == "protobuf":
        if of.descriptor_set is None:
            raise ValueError(f"the type {of.name} of node {of.node} could not be read")
        return of.descriptor_set, of.name
    return of.layout or '{"kind":"raw"}'
