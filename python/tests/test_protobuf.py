"""Protobuf classes from .proto files, and the built-in messages."""

from __future__ import annotations

import datetime
import importlib
import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rnet
from google.protobuf import descriptor_pb2, timestamp_pb2
from grpc_tools import protoc
from rnet import msgs, pools

ROBOT = """
syntax = "proto3";
package my.robot;

import "foxglove/Pose.proto";
import "google/protobuf/timestamp.proto";
import "parts/arm.proto";
import "rnet/msgs/JointState.proto";

// What the arm is about to do.
message Plan {
  // How one step is done.
  enum Mode {
    MODE_UNSPECIFIED = 0;
    MODE_FAST = 3;  // At full speed.
  }
  message Step { double length = 1; }

  foxglove.Pose goal = 1;
  rnet.msgs.JointState start = 2;
  // Speed along the path. Unit: m/s
  double speed = 3;
  google.protobuf.Timestamp at = 4;
  repeated Step steps = 5;
  Mode mode = 6;
  map<string, my.parts.Arm> arms = 7;
}

enum Side { LEFT = 0; RIGHT = 1; }
"""

ARM = 'syntax = "proto3"; package my.parts; message Arm { int32 joints = 1; }'

numbers: Iterator[int] = iter(range(1_000_000))


def fresh(package: str = "fresh") -> str:
    """A package name that no other test uses: a process has only one default pool."""
    return f"{package}{next(numbers)}"


@pytest.fixture
def robot_file(tmp_path: Path) -> Path:
    (tmp_path / "include" / "parts").mkdir(parents=True)
    (tmp_path / "include" / "parts" / "arm.proto").write_text(ARM)
    path = tmp_path / "robot.proto"
    path.write_text(ROBOT)
    return path


@pytest.fixture
def robot(robot_file: Path) -> rnet.types.Protos:
    return rnet.load_proto(robot_file, include=robot_file.parent / "include")


def test_a_file_gives_classes_of_the_official_runtime(robot):
    assert list(robot) == ["my.robot.Plan", "my.robot.Side"] and len(robot) == 2
    assert {"Plan", "Side", "my", "foxglove", "google", "rnet"} <= set(dir(robot))
    assert repr(robot) == "<rnet.types.Protos of robot.proto: my.robot.Plan, my.robot.Side>"
    plan = robot.Plan(speed=0.5, steps=[{"length": 2}], arms={"left": robot.my.parts.Arm(joints=7)})
    assert plan.DESCRIPTOR.full_name == "my.robot.Plan"
    assert robot.Plan.FromString(plan.SerializeToString()) == plan
    assert plan.arms["left"].joints == 7
    assert robot.Plan.MODE_FAST == robot.Plan.Mode.Value("MODE_FAST") == 3
    assert robot.Side.Name(1) == "RIGHT"


def test_types_are_found_by_package_and_by_full_name(robot):
    assert robot.my.robot.Plan is robot["my.robot.Plan"] is robot.Plan
    assert robot["my.robot.Plan.Step"] is robot.Plan.Step
    assert robot["my.robot.Plan.Mode"].Value("MODE_FAST") == 3
    assert robot.foxglove.Pose is robot["foxglove.Pose"] is msgs.Pose
    assert "my.parts.Arm" in robot and "my.parts.Leg" not in robot and 3 not in robot
    assert list(robot.my.parts) == ["my.parts.Arm"] and dir(robot.my) == ["parts", "robot"]
    assert repr(robot.my.parts) == "<rnet package my.parts>"
    with pytest.raises(AttributeError, match="has no 'Plam': it has Plan, Side"):
        robot.Plam
    with pytest.raises(KeyError, match=r"my\.robot\.Plan\.Stop"):
        robot["my.robot.Plan.Stop"]


def test_built_in_messages_are_fields_of_loaded_ones(robot):
    pose = msgs.Pose(position=msgs.Vector3(x=1.0))
    plan = robot.Plan(goal=pose, start=msgs.JointState(names=["elbow"]))
    assert plan.goal == pose and plan.start.names == ["elbow"]
    plan.goal.CopyFrom(msgs.Pose())
    assert plan.goal == msgs.Pose()


def test_time_stamps_have_what_the_runtime_gives_them(robot):
    when = datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.timezone.utc)
    plan = robot.Plan(at=when)
    assert plan.at.ToDatetime(datetime.timezone.utc) == when
    assert isinstance(plan.at, timestamp_pb2.Timestamp)
    plan.at = when + datetime.timedelta(seconds=1)
    assert plan.at.ToSeconds() == when.timestamp() + 1


def test_the_same_file_again_gives_the_same_classes(robot, robot_file):
    again = rnet.load_proto(robot_file, include=[str(robot_file.parent / "include")])
    assert again.Plan is robot.Plan
    texts = {"parts/arm.proto": ARM}
    assert rnet.types.load_proto_text(ROBOT, name="robot.proto", imports=texts).Plan is robot.Plan
    # Comments are not part of the type.
    bare = ROBOT.replace("// Speed along the path. Unit: m/s", "")
    assert rnet.types.load_proto_text(bare, name="robot.proto", imports=texts).Plan is robot.Plan


@pytest.mark.parametrize("times", [1, 2])
def test_two_versions_of_a_type_live_in_one_process(tmp_path, times):
    # Each round loads the same two versions, in opposite order.
    text = 'syntax = "proto3"; package versions; import "foxglove/Pose.proto"; import '
    text += '"google/protobuf/timestamp.proto"; message Plan { foxglove.Pose goal = 1; %s }'
    loaded = {}
    for version in ("old", "new")[::1 if times == 1 else -1]:
        (tmp_path / version).mkdir()
        path = tmp_path / version / "robot.proto"
        field = "double speed = 2;" if version == "old" else "google.protobuf.Timestamp at = 3;"
        path.write_text(text % field)
        loaded[version] = rnet.load_proto(path)
    old, new = loaded["old"], loaded["new"]
    assert old.Plan is not new.Plan
    assert [f.name for f in old.Plan.DESCRIPTOR.fields] == ["goal", "speed"]
    assert [f.name for f in new.Plan.DESCRIPTOR.fields] == ["goal", "at"]
    # Each has its own types, and all of them are accessible.
    for protos in (old, new):
        pose = protos.foxglove.Pose(position={"x": 1.0})
        plan = protos.Plan(goal=pose)
        assert protos.Plan.FromString(plan.SerializeToString()).goal.position.x == 1.0
    assert old.Plan.FromString(new.Plan(goal={}).SerializeToString()) == old.Plan(goal={})
    # Well-known types are those of the runtime, in a private pool too.
    plan = new.Plan(at=datetime.datetime(2026, 7, 1))
    assert plan.at.ToJsonString() == "2026-07-01T00:00:00Z"


def test_files_that_have_only_their_name_in_common_share_a_pool():
    one, other = fresh(), fresh()
    text = 'syntax = "proto3"; package %s; import "foxglove/Pose.proto"; message M { foxglove.Pose p = 1; }'
    first = rnet.types.load_proto_text(text % one, name="messages.proto")
    second = rnet.types.load_proto_text(text % other, name="messages.proto")
    assert first.foxglove.Pose is second.foxglove.Pose is msgs.Pose
    assert second.M(p=msgs.Pose()).DESCRIPTOR.full_name == f"{other}.M"
    assert repr(second) == f"<rnet.types.Protos of messages.proto: {other}.M>"
    # A third file that imports the second one finds it.
    imports = {"messages.proto": text % other}
    third = f'syntax = "proto3"; package {fresh()}; import "messages.proto"; message N {{ {other}.M m = 1; }}'
    third = rnet.types.load_proto_text(third, imports=imports)
    assert third.N(m=second.M()).DESCRIPTOR.fields[0].message_type is second.M.DESCRIPTOR
    assert rnet.types.load_proto_text(text % other, name="messages.proto").M is second.M


def test_several_files_at_once(tmp_path):
    a, b = fresh(), fresh()
    (tmp_path / "a.proto").write_text(
        f'syntax = "proto3"; package {a}; message Both {{}} message One {{}}'
    )
    (tmp_path / "b.proto").write_text(
        f'syntax = "proto3"; package {b}; import "a.proto"; message Both {{ {a}.One one = 1; }}'
    )
    protos = rnet.load_proto(tmp_path / "a.proto", tmp_path / "b.proto")
    assert list(protos) == [f"{a}.Both", f"{a}.One", f"{b}.Both"]
    assert protos[f"{b}.Both"](one=protos.One())
    with pytest.raises(AttributeError, match=f"'{a}.Both'.* or .*'{b}.Both'"):
        protos.Both
    with pytest.raises(TypeError, match="at least one file"):
        rnet.load_proto()


def test_files_that_contradict_each_other_are_refused(tmp_path):
    package = fresh()
    for name, field in (("a", "int32"), ("b", "string")):
        text = f'syntax = "proto3"; package {package}; message M {{ {field} x = 1; }}'
        (tmp_path / f"{name}.proto").write_text(text)
    said = rf"rnet\.load_proto: {package}\.M is defined twice: in a\.proto and in b\.proto"
    with pytest.raises(rnet.errors.SchemaError, match=said):
        rnet.load_proto(tmp_path / "a.proto", tmp_path / "b.proto")


def compiled(folder: Path, file: str, *flags: str) -> Path:
    """A descriptor set of Google's own compiler."""
    out = folder / f"{file}.bin"
    google = Path(protoc.__file__).parent / "_proto"
    includes = [f"-I{folder}", f"-I{google}"]
    arguments = ["protoc", *includes, f"--descriptor_set_out={out}", *flags, file]
    assert protoc.main(arguments) == 0
    return out


def test_a_descriptor_set_of_protoc(tmp_path):
    package = fresh()
    (tmp_path / "base.proto").write_text(f'syntax = "proto3"; package {package}; message Base {{}}')
    (tmp_path / "top.proto").write_text(
        f'syntax = "proto3"; package {package}; import "base.proto"; option java_package = "x";'
        f"service S {{ rpc Go(Top) returns (Base); }} message Top {{ Base base = 1; }}"
    )
    made = compiled(tmp_path, "top.proto", "--include_imports", "--include_source_info")
    protos = rnet.load_proto(made)
    assert list(protos) == [f"{package}.Top"]
    assert protos.Top(base=getattr(protos, package).Base())
    assert rnet.load_proto(made).Top is protos.Top is rnet.types.load_descriptor_set(made.read_bytes()).Top
    # The set has a private pool, unlike the file.
    default = msgs.Pose.DESCRIPTOR.file.pool
    top = rnet.load_proto(tmp_path / "top.proto").Top
    assert top.DESCRIPTOR.file.pool is default is not protos.Top.DESCRIPTOR.file.pool


def test_a_descriptor_set_has_the_classes_that_are_there(tmp_path):
    """protoc and our own compiler create the same classes."""
    package = fresh()
    text = f'syntax = "proto3"; package {package}; import "google/protobuf/timestamp.proto";'
    text += "message Top { google.protobuf.Timestamp at = 1; }"
    (tmp_path / "top.proto").write_text(text)
    top = rnet.load_proto(tmp_path / "top.proto").Top
    assert rnet.load_proto(compiled(tmp_path, "top.proto", "--include_imports")).Top is top


SETS_OF_OTHERS = """
import rnet
from google.protobuf import descriptor_pb2
def other(name, package):
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
    file.message_type.add(name="Pose").field.add(name="x", number=1, label=1, type=9)
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
theirs = rnet.types.load_descriptor_set(other("foxglove/Pose.proto", "foxglove")).Pose
assert theirs(x="text").x == "text"
assert rnet.types.load_descriptor_set(other("any.proto", "foxglove")).Pose is not theirs
rnet.types.load_descriptor_set(other("my.proto", "my_own"))
from rnet import msgs
msgs.Pose(position=msgs.Vector3())
# A file of this program may have what a stranger had, too.
mine = rnet.types.load_proto_text('syntax = "proto3"; package my_own; message Pose { double x = 1; }')
assert mine.Pose.DESCRIPTOR.file.pool is msgs.Pose.DESCRIPTOR.file.pool
from foxglove_schemas_protobuf.Pose_pb2 import Pose
assert Pose is msgs.Pose
"""

FILES_WITH_OUR_NAMES = """
import rnet
pose = 'syntax = "proto3"; package foxglove; message Pose { string x = 1; }'
theirs = rnet.types.load_proto_text(pose, name="any.proto").Pose
assert theirs(x="text").x == "text"
from rnet import msgs
msgs.Pose(position=msgs.Vector3())
from foxglove_schemas_protobuf.Pose_pb2 import Pose
assert Pose is msgs.Pose
"""


@pytest.mark.parametrize("program", [SETS_OF_OTHERS, FILES_WITH_OUR_NAMES])
def test_types_of_others_change_nothing_for_our_own(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


OPTIONS = """
    syntax = "proto3";
    package {package};
    import "google/protobuf/descriptor.proto";
    extend google.protobuf.FieldOptions {{ string {package}_unit = 50001; }}
    message Speed {{ double value = 1 [({package}_unit) = "m/s"]; }}
"""


@pytest.mark.parametrize("is_set", [False, True])
def test_files_with_options_of_their_own_are_loaded(tmp_path, is_set):
    package = fresh("options")
    path = tmp_path / "speed.proto"
    path.write_text(OPTIONS.format(package=package))
    if is_set:
        path = compiled(tmp_path, "speed.proto", "--include_imports")
    speed = rnet.load_proto(path).Speed
    assert speed.FromString(speed(value=2.0).SerializeToString()).value == 2.0


def test_loading_without_end_is_refused(monkeypatch):
    text = 'syntax = "proto3"; package endless; message M { int32 a%d = 1; }'

    def of_set(number: int) -> bytes:
        file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="endless", syntax="proto3")
        file.message_type.add(name="M").field.add(name=f"b{number}", number=1, label=1, type=5)
        return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()

    rnet.types.load_proto_text(text % 0)
    # Private pools of other tests would accept it.
    monkeypatch.setattr(pools, "_pools", pools._pools[:1])
    monkeypatch.setattr(pools, "MAX_POOLS", 2 + len(pools._of_sets))
    first = rnet.types.load_descriptor_set(of_set(0)).M
    for load in (lambda: rnet.types.load_descriptor_set(of_set(1)), lambda: rnet.types.load_proto_text(text % 1)):
        with pytest.raises(rnet.errors.SchemaError, match="MAX_POOLS") as caught:
            load()
        assert (caught.value.reason, caught.value.limit_name) == ("limit", "MAX_POOLS")
    # Existing types stay.
    assert rnet.types.load_descriptor_set(of_set(0)).M is first


def test_time_stamps_of_a_later_version():
    """The official classes are those of the default pool."""
    text = 'syntax = "proto3"; package stamped; import "google/protobuf/timestamp.proto";'
    text += "message M { google.protobuf.Timestamp at = 1; %s }"
    rnet.types.load_proto_text(text % "")
    new = rnet.types.load_proto_text(text % "int32 n = 2;")
    with pytest.raises(TypeError):
        new.M(at=timestamp_pb2.Timestamp(seconds=5))
    made = new["google.protobuf.Timestamp"](seconds=5)
    assert new.M(at=made).at.ToSeconds() == 5
    assert new.M(at=made.ToDatetime()).at == made


def test_a_built_in_message_is_had_by_name_again_and_again():
    program = """
from rnet.codec import codec
for name in ("foxglove.LaserScan", "rnet.msgs.Imu"):
    assert codec(name).cls is codec(name).cls
from rnet.msgs import Imu, LaserScan
import pickle
assert Imu is codec("rnet.msgs.Imu").cls and pickle.loads(pickle.dumps(LaserScan())) == LaserScan()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_modules_of_protoc_have_the_same_classes(tmp_path, monkeypatch):
    package = fresh()
    (tmp_path / f"{package}.proto").write_text(
        f"""
        syntax = "proto2";
        package {package};
        option java_package = "com.example";
        message Old {{
          required int32 number_of_things = 1 [deprecated = true];
          optional string other = 2 [default = "none"];
          repeated int32 packed = 3 [packed = true];
          extensions 100 to 200;
          enum E {{ option allow_alias = true; A = 1; B = 1; }}
          optional group Part = 4 {{ optional E e = 1; }}
          oneof one {{ int32 x = 5; string y = 6; }}
        }}
        service S {{ rpc Go(Old) returns (Old); }}
        """
    )
    made = protoc.main(["protoc", f"-I{tmp_path}", f"--python_out={tmp_path}", f"{package}.proto"])
    assert made == 0
    monkeypatch.syspath_prepend(str(tmp_path))
    module: Any = importlib.import_module(f"{package}_pb2")
    assert rnet.load_proto(tmp_path / f"{package}.proto").Old is module.Old


# -- what is wrong with a file ---------------------------------------------------------------------


def raised(text: str, **arguments: Any) -> rnet.errors.SchemaError:
    with pytest.raises(rnet.errors.SchemaError) as caught:
        rnet.types.load_proto_text(text, **arguments)
    return caught.value


def test_what_does_not_parse_is_told_with_its_place():
    error = raised('syntax = "proto3";\nmessage A {\n  int32 x = ;\n}', name="robot.proto")
    assert (error.reason, error.file, error.line, error.column) == ("proto", "robot.proto", 3, 13)
    assert str(error).startswith("robot.proto:3:13: ") and isinstance(error, ValueError)
    error = raised('syntax = "proto3";\nmessage A { B b = 1; }')
    assert (error.reason, error.line) == ("proto", 2) and "'B'" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.line, str(again)) == (rnet.errors.SchemaError, 2, str(error))


def test_a_missing_import_says_where_it_was_looked_for(robot_file):
    with pytest.raises(rnet.errors.SchemaError) as caught:
        rnet.load_proto(robot_file, include=["/nowhere"])
    error = caught.value
    assert (error.reason, error.name) == ("missing_import", "parts/arm.proto")
    assert (error.file, error.line) == ("robot.proto", 7)
    assert error.looked_in == [str(robot_file.parent), "/nowhere"]


def test_a_cyclic_import_is_named():
    imports = {name: f'syntax = "proto3"; import "{other}";' for name, other in [("a", "b"), ("b", "a")]}
    error = raised('syntax = "proto3"; import "a";', imports=imports)
    assert (error.reason, error.cycle) == ("cyclic_import", ["a", "b", "a"])


def test_files_that_cannot_be_read(tmp_path):
    for name in ("none.proto", "none.bin"):
        with pytest.raises(rnet.errors.SchemaError, match="No such file") as caught:
            rnet.load_proto(tmp_path / name)
        assert (caught.value.reason, caught.value.file) == ("read", str(tmp_path / name))
    (tmp_path / "bad.proto").write_bytes(b"\xff")
    with pytest.raises(rnet.errors.SchemaError, match="UTF-8"):
        rnet.load_proto(tmp_path / "bad.proto")


def test_a_descriptor_set_that_explodes_reaches_a_limit(tmp_path):
    path = tmp_path / "bomb.bin"
    file = descriptor_pb2.FileDescriptorProto(name="bomb.proto")
    for n in range(5000):
        file.message_type.add(name=f"M{n}")
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    with pytest.raises(rnet.errors.SchemaError) as caught:
        rnet.load_proto(path)
    error = caught.value
    assert (error.reason, error.limit_name, error.limit) == ("limit", "MAX_SCHEMA_TYPES", 4096)
    path.write_bytes(bytes(2 << 20))
    with pytest.raises(rnet.errors.SchemaError) as caught:
        rnet.load_proto(path)
    assert caught.value.limit_name == "MAX_SCHEMA_LEN_BYTES"
    path.write_bytes(b"\x0a\xff\xff\xff\xff\x07x")
    with pytest.raises(rnet.errors.SchemaError) as caught:
        rnet.load_proto(path)
    assert caught.value.reason == "malformed"


def test_a_set_that_lacks_a_file_is_refused(tmp_path):
    (tmp_path / "base.proto").write_text('syntax = "proto3"; message LackedBase {}')
    text = 'syntax = "proto3"; import "base.proto"; message Lacking { LackedBase base = 1; }'
    (tmp_path / "top.proto").write_text(text)
    with pytest.raises(rnet.errors.SchemaError) as caught:
        rnet.load_proto(compiled(tmp_path, "top.proto"))
    assert "base.proto" in str(caught.value)


# -- rnet.msgs ---------------------------------------------------------------------------------------


def test_the_built_in_messages():
    for module in (msgs, msgs.foxglove):
        assert len(module.__all__) >= 48
        for name in module.__all__:
            cls = getattr(module, name)
            if module is msgs and name in ("Image", "PointCloud", "Tensor"):
                assert cls.__name__ == name and cls.__doc__ and not hasattr(cls, "DESCRIPTOR")
                continue
            assert cls.DESCRIPTOR.name == name and cls.__doc__, name
            assert pickle.loads(pickle.dumps(cls())) == cls(), name
    assert msgs.JointState.DESCRIPTOR.full_name == "rnet.msgs.JointState"
    assert msgs.foxglove.JointState.DESCRIPTOR.full_name == "foxglove.JointState"
    assert msgs.LaserScan is msgs.foxglove.LaserScan
    assert {"Imu", "LaserScan", "foxglove"} <= set(dir(msgs))
    for module in (msgs, msgs.foxglove):
        with pytest.raises(AttributeError, match="no message 'Lidar'"):
            module.Lidar


def test_classes_that_the_runtime_made_first_are_pickled_too():
    program = """
import pickle
from rnet.msgs import Imu
Imu(angular_velocity={"x": 1.0}).angular_velocity
from rnet.msgs import Vector3
assert pickle.loads(pickle.dumps(Vector3(x=1.0))) == Vector3(x=1.0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_help_shows_comments_units_and_enums():
    doc = msgs.JointCommand.__doc__
    assert doc.startswith("What the joints of a robot shall do")
    assert "Protobuf message rnet.msgs.JointCommand." in doc
    assert "  kp: repeated double\n    Stiffness. Unit: N*m/rad or N/m" in doc
    assert "  MODE_EFFORT = 5  With `effort`." in doc
    assert "  pose: foxglove.Pose" in msgs.PoseEstimate.__doc__
    assert msgs.Diagnostic.Status.__doc__


def test_comments_of_loaded_files_are_doc_strings(robot):
    assert robot.Plan.__doc__ == (
        "What the arm is about to do.\n\nProtobuf message my.robot.Plan.\n\nFields:\n"
        "  goal: foxglove.Pose\n  start: rnet.msgs.JointState\n"
        "  speed: double\n    Speed along the path. Unit: m/s\n"
        "  at: google.protobuf.Timestamp\n  steps: repeated my.robot.Plan.Step\n"
        "  mode: my.robot.Plan.Mode\n  arms: map<string, my.parts.Arm>\n\n"
        "Enum Mode: How one step is done.\n  MODE_UNSPECIFIED = 0\n"
        "  MODE_FAST = 3  At full speed."
    )


FOXGLOVE = """
import importlib, pkgutil
def theirs():
    import foxglove_schemas_protobuf as package
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name.endswith("_pb2")]
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return [getattr(m, n.removesuffix("_pb2")) for m, n in zip(modules, names)]
def ours():
    from rnet.msgs import foxglove
    return [getattr(foxglove, name) for name in foxglove.__all__]
"""


@pytest.mark.parametrize("order", ["a, b = theirs(), ours()", "b, a = ours(), theirs()"])
def test_the_package_of_foxglove_has_the_same_classes(order):
    check = "assert len(a) == len(b) and set(map(id, a)) == set(map(id, b)); print(len(a))"
    done = subprocess.run(
        [sys.executable, "-c", f"{FOXGLOVE}\n{order}\n{check}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(msgs.foxglove.__all__)


def test_rnet_is_imported_without_the_protobuf_runtime():
    program = """
import sys
import rnet
assert not any(name.startswith("google") for name in sys.modules)
sys.modules["google"] = None
for ask in (lambda: rnet.msgs.Imu, lambda: rnet.types.load_proto_text('syntax = "proto3";')):
    try:
        ask()
    except rnet.errors.MissingProtobufError as error:
        assert isinstance(error, ImportError) and "pip install protobuf" in str(error)
    else:
        raise AssertionError
from rnet import codec
assert codec.codec("f8").raises is None
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_foxglove_module_is_there():
    import foxglove_schemas_protobuf as theirs

    modules = [m.name for m in pkgutil.iter_modules(theirs.__path__) if m.name.endswith("_pb2")]
    assert sorted(name.removesuffix("_pb2") for name in modules) == msgs.foxglove.__all__
