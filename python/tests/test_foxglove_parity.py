"""Our Foxglove messages match the originals: each file has the same descriptor as in the PyPI package."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

import foxglove_schemas_protobuf as theirs
import grpc_tools
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

MSGS = Path(__file__).parents[2] / "crates" / "rnet-schema" / "msgs"
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"

Files = dict[str, descriptor_pb2.FileDescriptorProto]


def without_json_names(message: descriptor_pb2.DescriptorProto) -> None:
    """protoc fills in those that follow from the names; the package would have only others."""
    for field in message.field:
        field.ClearField("json_name")
    for nested in message.nested_type:
        without_json_names(nested)


def compiled(folder: Path) -> Files:
    """The files of msgs/, compiled by Google's own compiler."""
    names = sorted(str(path.relative_to(MSGS)) for path in MSGS.rglob("*.proto"))
    out = folder / "set.bin"
    code = protoc.main(
        ["protoc", f"-I{MSGS}", f"-I{WELL_KNOWN}", f"--descriptor_set_out={out}", *names]
    )
    assert code == 0, "protoc refused a file: see its messages above"
    files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    for file in files:
        for message in file.message_type:
            without_json_names(message)
    return {file.name: file for file in files}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return compiled(tmp_path_factory.mktemp("descriptors"))


@pytest.fixture(scope="module")
def published() -> Files:
    files = {}
    for module in pkgutil.iter_modules(theirs.__path__):
        if module.name.endswith("_pb2"):
            file = descriptor_pb2.FileDescriptorProto()
            importlib.import_module(f"{theirs.__name__}.{module.name}").DESCRIPTOR.CopyToProto(file)
            files[file.name] = file
    return files


def test_none_is_missing_and_none_is_invented(ours: Files, published: Files) -> None:
    assert len(published) >= 40, "the package was not found, or is not what it was"
    assert {name for name in ours if name.startswith("foxglove/")} == set(published)


def test_each_file_has_the_same_descriptor(ours: Files, published: Files) -> None:
    different = []
    for name, wanted in published.items():
        if ours[name] != wanted:
            different.append(f"ours:\n{ours[name]}\npublished:\n{wanted}")
    assert not different, "\n".join(different)


def test_both_can_live_in_one_process(ours: Files, published: Files) -> None:
    """The default pool rejects a second file with a name unless its content is the same."""
    pool: Any = descriptor_pool.Default()
    for name in published:
        pool.AddSerializedFile(ours[name].SerializeToString())


def test_our_own_messages_are_known_to_the_official_runtime(ours: Files) -> None:
    pool = descriptor_pool.DescriptorPool()
    for module in ("timestamp_pb2", "duration_pb2"):
        known = importlib.import_module(f"google.protobuf.{module}")
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    waiting = dict(ours)
    while waiting:
        ready = [n for n, f in waiting.items() if not any(d in waiting for d in f.dependency)]
        assert ready, f"files that import each other: {sorted(waiting)}"
        for name in ready:
            pool.AddSerializedFile(waiting.pop(name).SerializeToString())

    made = 0
    for name in ours:
        if name.startswith("rnet/"):
            full_name = name.removesuffix(".proto").replace("/", ".")
            message_type = message_factory.GetMessageClass(pool.FindMessageTypeByName(full_name))
            assert message_type.FromString(message_type().SerializeToString()) == message_type()
            made += 1
    assert made > 0

    joint_state = message_factory.GetMessageClass(
        pool.FindMessageTypeByName("rnet.msgs.JointState")
    )
    message = joint_state(names=["elbow"], position=[1.5])
    message.timestamp.FromNanoseconds(1_700_000_000_000_000_001)
    again = joint_state.FromString(message.SerializeToString())
    assert again == message
    assert again.timestamp.ToNanoseconds() == 1_700_000_000_000_000_001
