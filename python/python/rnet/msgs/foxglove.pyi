"""The Foxglove messages, as viewers know them: ``from rnet.msgs.foxglove import JointStates``.

Written by python/tools/message_stubs.py from the .proto files; do not edit.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, Literal, Never, TypeAlias, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer as _Messages
from google.protobuf.internal.containers import RepeatedScalarFieldContainer as _Values
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

_T = TypeVar("_T")

_Fields: TypeAlias = Mapping[str, Any]
_Timestamp: TypeAlias = Timestamp | datetime | _Fields
_Duration: TypeAlias = Duration | timedelta | _Fields

class _Part(Generic[_T]):
    def __get__(self, message: object, cls: object = None, /) -> _T: ...
    def __set__(self, message: object, value: Never, /) -> None: ...

class _Time(_Part[Timestamp]):
    def __set__(self, message: object, value: datetime, /) -> None: ...

class _Span(_Part[Duration]):
    def __set__(self, message: object, value: timedelta, /) -> None: ...

__all__ = [
    "ArrowPrimitive", "CameraCalibration", "CircleAnnotation", "Color", "CompressedAudio",
    "CompressedImage", "CompressedPointCloud", "CompressedVideo", "CubePrimitive",
    "CylinderPrimitive", "Event", "FrameTransform", "FrameTransforms", "GeoJSON", "Grid",
    "ImageAnnotations", "JointState", "JointStates", "KeyValuePair", "LaserScan",
    "LinePrimitive", "LocationFix", "LocationFixes", "Log", "ModelPrimitive", "Odometry",
    "PackedElementField", "Point2", "Point3", "Point3InFrame", "PointCloud",
    "PointsAnnotation", "Pose", "PoseInFrame", "PosesInFrame", "Quaternion", "RawAudio",
    "RawImage", "SceneEntity", "SceneEntityDeletion", "SceneUpdate", "SpherePrimitive",
    "TextAnnotation", "TextPrimitive", "TriangleListPrimitive", "Vector2", "Vector3",
    "VoxelGrid"
]

class ArrowPrimitive(Message):
    """An arrow in a scene."""
    pose: _Part[Pose]
    shaft_length: float
    shaft_diameter: float
    head_length: float
    head_diameter: float
    color: _Part[Color]
    def __init__(self, *,
        pose: Pose | _Fields | None = ..., shaft_length: float | None = ...,
        shaft_diameter: float | None = ..., head_length: float | None = ...,
        head_diameter: float | None = ..., color: Color | _Fields | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["pose", "color"]) -> bool: ...

class CameraCalibration(Message):
    """How a camera maps directions to pixels."""
    timestamp: _Time
    frame_id: str
    width: int
    height: int
    distortion_model: str
    D: _Values[float]
    K: _Values[float]
    R: _Values[float]
    P: _Values[float]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ..., width: int | None = ...,
        height: int | None = ..., distortion_model: str | None = ...,
        D: Iterable[float] | None = ..., K: Iterable[float] | None = ...,
        R: Iterable[float] | None = ..., P: Iterable[float] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class CircleAnnotation(Message):
    """A circle drawn over an image."""
    timestamp: _Time
    position: _Part[Point2]
    diameter: float
    thickness: float
    fill_color: _Part[Color]
    outline_color: _Part[Color]
    metadata: _Messages[KeyValuePair]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., position: Point2 | _Fields | None = ...,
        diameter: float | None = ..., thickness: float | None = ...,
        fill_color: Color | _Fields | None = ..., outline_color: Color | _Fields | None = ...,
        metadata: Iterable[KeyValuePair | _Fields] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal[
        "timestamp", "position", "fill_color", "outline_color"
    ]) -> bool: ...

class Color(Message):
    """A colour with opacity; each part from 0 to 1, not multiplied by the opacity."""
    r: float
    g: float
    b: float
    a: float
    def __init__(self, *,
        r: float | None = ..., g: float | None = ..., b: float | None = ...,
        a: float | None = ...
    ) -> None: ...

class CompressedAudio(Message):
    """A piece of sound: one whole packet of its codec."""
    timestamp: _Time
    data: bytes
    format: str
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., data: bytes | None = ..., format: str | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class CompressedImage(Message):
    """An image in a file format for single images."""
    timestamp: _Time
    frame_id: str
    data: bytes
    format: str
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        data: bytes | None = ..., format: str | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class CompressedPointCloud(Message):
    """Points in space, compressed."""
    timestamp: _Time
    frame_id: str
    pose: _Part[Pose]
    data: bytes
    format: str
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        pose: Pose | _Fields | None = ..., data: bytes | None = ..., format: str | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose"]) -> bool: ...

class CompressedVideo(Message):
    """One picture of a video stream."""
    timestamp: _Time
    frame_id: str
    data: bytes
    format: str
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        data: bytes | None = ..., format: str | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class CubePrimitive(Message):
    """A box in a scene."""
    pose: _Part[Pose]
    size: _Part[Vector3]
    color: _Part[Color]
    def __init__(self, *,
        pose: Pose | _Fields | None = ..., size: Vector3 | _Fields | None = ...,
        color: Color | _Fields | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["pose", "size", "color"]) -> bool: ...

class CylinderPrimitive(Message):
    """A cylinder or cut-off cone in a scene, its axis along z."""
    pose: _Part[Pose]
    size: _Part[Vector3]
    bottom_scale: float
    top_scale: float
    color: _Part[Color]
    def __init__(self, *,
        pose: Pose | _Fields | None = ..., size: Vector3 | _Fields | None = ...,
        bottom_scale: float | None = ..., top_scale: float | None = ...,
        color: Color | _Fields | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["pose", "size", "color"]) -> bool: ...

class Event(Message):
    """A stretch of time that is worth finding again in a recording."""
    start_time: _Time
    end_time: _Time
    metadata: _Messages[KeyValuePair]
    def __init__(self, *,
        start_time: _Timestamp | None = ..., end_time: _Timestamp | None = ...,
        metadata: Iterable[KeyValuePair | _Fields] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["start_time", "end_time"]) -> bool: ...

class FrameTransform(Message):
    """How one frame lies in another."""
    timestamp: _Time
    parent_frame_id: str
    child_frame_id: str
    translation: _Part[Vector3]
    rotation: _Part[Quaternion]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., parent_frame_id: str | None = ...,
        child_frame_id: str | None = ..., translation: Vector3 | _Fields | None = ...,
        rotation: Quaternion | _Fields | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "translation", "rotation"]) -> bool: ...

class FrameTransforms(Message):
    """Several transforms at once, each with a time of its own."""
    transforms: _Messages[FrameTransform]
    def __init__(self, *,
        transforms: Iterable[FrameTransform | _Fields] | None = ...
    ) -> None: ...

class GeoJSON(Message):
    """Shapes on a map as GeoJSON (RFC 7946)."""
    geojson: str
    def __init__(self, *, geojson: str | None = ...) -> None: ...

class Grid(Message):
    """A map of square or oblong cells in a plane: occupancy, costs, heights."""
    timestamp: _Time
    frame_id: str
    pose: _Part[Pose]
    column_count: int
    cell_size: _Part[Vector2]
    row_stride: int
    cell_stride: int
    fields: _Messages[PackedElementField]
    data: bytes
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        pose: Pose | _Fields | None = ..., column_count: int | None = ...,
        cell_size: Vector2 | _Fields | None = ..., row_stride: int | None = ...,
        cell_stride: int | None = ...,
        fields: Iterable[PackedElementField | _Fields] | None = ..., data: bytes | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose", "cell_size"]) -> bool: ...

class ImageAnnotations(Message):
    """What is to be drawn over one image."""
    timestamp: _Time
    circles: _Messages[CircleAnnotation]
    points: _Messages[PointsAnnotation]
    texts: _Messages[TextAnnotation]
    metadata: _Messages[KeyValuePair]
    def __init__(self, *,
        timestamp: _Timestamp | None = ...,
        circles: Iterable[CircleAnnotation | _Fields] | None = ...,
        points: Iterable[PointsAnnotation | _Fields] | None = ...,
        texts: Iterable[TextAnnotation | _Fields] | None = ...,
        metadata: Iterable[KeyValuePair | _Fields] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class JointState(Message):
    """One joint by name, as viewers know it."""
    name: str
    position: float
    velocity: float
    acceleration: float
    effort: float
    def __init__(self, *,
        name: str | None = ..., position: float | None = ..., velocity: float | None = ...,
        acceleration: float | None = ..., effort: float | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal[
        "position", "velocity", "acceleration", "effort"
    ]) -> bool: ...

class JointStates(Message):
    """Several joints at one time."""
    timestamp: _Time
    joints: _Messages[JointState]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., joints: Iterable[JointState | _Fields] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class KeyValuePair(Message):
    """A name and a text, for what has no field of its own."""
    key: str
    value: str
    def __init__(self, *, key: str | None = ..., value: str | None = ...) -> None: ...

class LaserScan(Message):
    """One sweep of a scanner that turns about an axis."""
    timestamp: _Time
    frame_id: str
    pose: _Part[Pose]
    start_angle: float
    end_angle: float
    ranges: _Values[float]
    intensities: _Values[float]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        pose: Pose | _Fields | None = ..., start_angle: float | None = ...,
        end_angle: float | None = ..., ranges: Iterable[float] | None = ...,
        intensities: Iterable[float] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose"]) -> bool: ...

class LinePrimitive(Message):
    """Lines through points in a scene."""
    Type: ClassVar[EnumTypeWrapper]
    LINE_STRIP: ClassVar[int]
    LINE_LOOP: ClassVar[int]
    LINE_LIST: ClassVar[int]
    type: int
    pose: _Part[Pose]
    thickness: float
    scale_invariant: bool
    points: _Messages[Point3]
    color: _Part[Color]
    colors: _Messages[Color]
    indices: _Values[int]
    def __init__(self, *,
        type: int | None = ..., pose: Pose | _Fields | None = ...,
        thickness: float | None = ..., scale_invariant: bool | None = ...,
        points: Iterable[Point3 | _Fields] | None = ..., color: Color | _Fields | None = ...,
        colors: Iterable[Color | _Fields] | None = ..., indices: Iterable[int] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["pose", "color"]) -> bool: ...

class LocationFix(Message):
    """Where a satellite receiver is on the earth (WGS 84)."""
    PositionCovarianceType: ClassVar[EnumTypeWrapper]
    UNKNOWN: ClassVar[int]
    APPROXIMATED: ClassVar[int]
    DIAGONAL_KNOWN: ClassVar[int]
    KNOWN: ClassVar[int]
    timestamp: _Time
    frame_id: str
    latitude: float
    longitude: float
    altitude: float
    position_covariance: _Values[float]
    position_covariance_type: int
    heading: float
    velocity: _Part[Vector3]
    color: _Part[Color]
    metadata: _Messages[KeyValuePair]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        latitude: float | None = ..., longitude: float | None = ...,
        altitude: float | None = ..., position_covariance: Iterable[float] | None = ...,
        position_covariance_type: int | None = ..., heading: float | None = ...,
        velocity: Vector3 | _Fields | None = ..., color: Color | _Fields | None = ...,
        metadata: Iterable[KeyValuePair | _Fields] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal[
        "timestamp", "heading", "velocity", "color"
    ]) -> bool: ...

class LocationFixes(Message):
    """Several places at once, for example of a fleet."""
    fixes: _Messages[LocationFix]
    def __init__(self, *, fixes: Iterable[LocationFix | _Fields] | None = ...) -> None: ...

class Log(Message):
    """A line for people to read."""
    Level: ClassVar[EnumTypeWrapper]
    UNKNOWN: ClassVar[int]
    DEBUG: ClassVar[int]
    INFO: ClassVar[int]
    WARNING: ClassVar[int]
    ERROR: ClassVar[int]
    FATAL: ClassVar[int]
    timestamp: _Time
    level: int
    message: str
    name: str
    file: str
    line: int
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., level: int | None = ..., message: str | None = ...,
        name: str | None = ..., file: str | None = ..., line: int | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class ModelPrimitive(Message):
    """A 3D model in a scene, by address or with its bytes."""
    pose: _Part[Pose]
    scale: _Part[Vector3]
    color: _Part[Color]
    override_color: bool
    url: str
    media_type: str
    data: bytes
    def __init__(self, *,
        pose: Pose | _Fields | None = ..., scale: Vector3 | _Fields | None = ...,
        color: Color | _Fields | None = ..., override_color: bool | None = ...,
        url: str | None = ..., media_type: str | None = ..., data: bytes | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["pose", "scale", "color"]) -> bool: ...

class Odometry(Message):
    """Where a body is and how fast it moves, as estimated from wheels, legs, cameras or a
    filter (REP-105)."""
    timestamp: _Time
    frame_id: str
    body_frame_id: str
    pose: _Part[Pose]
    linear_velocity: _Part[Vector3]
    angular_velocity: _Part[Vector3]
    pose_covariance: _Values[float]
    velocity_covariance: _Values[float]
    metadata: _Messages[KeyValuePair]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        body_frame_id: str | None = ..., pose: Pose | _Fields | None = ...,
        linear_velocity: Vector3 | _Fields | None = ...,
        angular_velocity: Vector3 | _Fields | None = ...,
        pose_covariance: Iterable[float] | None = ...,
        velocity_covariance: Iterable[float] | None = ...,
        metadata: Iterable[KeyValuePair | _Fields] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal[
        "timestamp", "pose", "linear_velocity", "angular_velocity"
    ]) -> bool: ...

class PackedElementField(Message):
    """One number within each element of a packed array: one of a point's coordinates, or a
    cell's height."""
    NumericType: ClassVar[EnumTypeWrapper]
    UNKNOWN: ClassVar[int]
    UINT8: ClassVar[int]
    INT8: ClassVar[int]
    UINT16: ClassVar[int]
    INT16: ClassVar[int]
    UINT32: ClassVar[int]
    INT32: ClassVar[int]
    FLOAT32: ClassVar[int]
    FLOAT64: ClassVar[int]
    name: str
    offset: int
    type: int
    def __init__(self, *,
        name: str | None = ..., offset: int | None = ..., type: int | None = ...
    ) -> None: ...

class Point2(Message):
    """A place in a plane, mostly in an image: x to the right, y down, and the zero is the outer
    corner of the top left pixel."""
    x: float
    y: float
    def __init__(self, *, x: float | None = ..., y: float | None = ...) -> None: ...

class Point3(Message):
    """A place in space, in the frame of the message that holds it."""
    x: float
    y: float
    z: float
    def __init__(self, *,
        x: float | None = ..., y: float | None = ..., z: float | None = ...
    ) -> None: ...

class Point3InFrame(Message):
    """A place in space, with its time and frame."""
    timestamp: _Time
    frame_id: str
    point: _Part[Point3]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        point: Point3 | _Fields | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "point"]) -> bool: ...

class PointCloud(Message):
    """Points in space, packed one after the other."""
    timestamp: _Time
    frame_id: str
    pose: _Part[Pose]
    point_stride: int
    fields: _Messages[PackedElementField]
    data: bytes
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        pose: Pose | _Fields | None = ..., point_stride: int | None = ...,
        fields: Iterable[PackedElementField | _Fields] | None = ..., data: bytes | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose"]) -> bool: ...

class PointsAnnotation(Message):
    """Points or lines drawn over an image."""
    Type: ClassVar[EnumTypeWrapper]
    UNKNOWN: ClassVar[int]
    POINTS: ClassVar[int]
    LINE_LOOP: ClassVar[int]
    LINE_STRIP: ClassVar[int]
    LINE_LIST: ClassVar[int]
    timestamp: _Time
    type: int
    points: _Messages[Point2]
    outline_color: _Part[Color]
    outline_colors: _Messages[Color]
    fill_color: _Part[Color]
    thickness: float
    metadata: _Messages[KeyValuePair]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., type: int | None = ...,
        points: Iterable[Point2 | _Fields] | None = ...,
        outline_color: Color | _Fields | None = ...,
        outline_colors: Iterable[Color | _Fields] | None = ...,
        fill_color: Color | _Fields | None = ..., thickness: float | None = ...,
        metadata: Iterable[KeyValuePair | _Fields] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal[
        "timestamp", "outline_color", "fill_color"
    ]) -> bool: ...

class Pose(Message):
    """Where a thing is and how it is turned."""
    position: _Part[Vector3]
    orientation: _Part[Quaternion]
    def __init__(self, *,
        position: Vector3 | _Fields | None = ..., orientation: Quaternion | _Fields | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["position", "orientation"]) -> bool: ...

class PoseInFrame(Message):
    """Where a thing is and how it is turned, with time and frame."""
    timestamp: _Time
    frame_id: str
    pose: _Part[Pose]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        pose: Pose | _Fields | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose"]) -> bool: ...

class PosesInFrame(Message):
    """A row of poses in one frame: a path to follow, or the guesses of a particle filter."""
    timestamp: _Time
    frame_id: str
    poses: _Messages[Pose]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        poses: Iterable[Pose | _Fields] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class Quaternion(Message):
    """A rotation as a unit quaternion, in the order x y z w."""
    x: float
    y: float
    z: float
    w: float
    def __init__(self, *,
        x: float | None = ..., y: float | None = ..., z: float | None = ...,
        w: float | None = ...
    ) -> None: ...

class RawAudio(Message):
    """A piece of sound, uncompressed, its channels interleaved."""
    timestamp: _Time
    data: bytes
    format: str
    sample_rate: int
    number_of_channels: int
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., data: bytes | None = ..., format: str | None = ...,
        sample_rate: int | None = ..., number_of_channels: int | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class RawImage(Message):
    """An image, uncompressed."""
    timestamp: _Time
    frame_id: str
    width: int
    height: int
    encoding: str
    step: int
    data: bytes
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ..., width: int | None = ...,
        height: int | None = ..., encoding: str | None = ..., step: int | None = ...,
        data: bytes | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class SceneEntity(Message):
    """A thing in a scene, drawn of several parts that share its frame."""
    timestamp: _Time
    frame_id: str
    id: str
    lifetime: _Span
    frame_locked: bool
    metadata: _Messages[KeyValuePair]
    arrows: _Messages[ArrowPrimitive]
    cubes: _Messages[CubePrimitive]
    spheres: _Messages[SpherePrimitive]
    cylinders: _Messages[CylinderPrimitive]
    lines: _Messages[LinePrimitive]
    triangles: _Messages[TriangleListPrimitive]
    texts: _Messages[TextPrimitive]
    models: _Messages[ModelPrimitive]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ..., id: str | None = ...,
        lifetime: _Duration | None = ..., frame_locked: bool | None = ...,
        metadata: Iterable[KeyValuePair | _Fields] | None = ...,
        arrows: Iterable[ArrowPrimitive | _Fields] | None = ...,
        cubes: Iterable[CubePrimitive | _Fields] | None = ...,
        spheres: Iterable[SpherePrimitive | _Fields] | None = ...,
        cylinders: Iterable[CylinderPrimitive | _Fields] | None = ...,
        lines: Iterable[LinePrimitive | _Fields] | None = ...,
        triangles: Iterable[TriangleListPrimitive | _Fields] | None = ...,
        texts: Iterable[TextPrimitive | _Fields] | None = ...,
        models: Iterable[ModelPrimitive | _Fields] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "lifetime"]) -> bool: ...

class SceneEntityDeletion(Message):
    """Takes things out of a scene."""
    Type: ClassVar[EnumTypeWrapper]
    MATCHING_ID: ClassVar[int]
    ALL: ClassVar[int]
    timestamp: _Time
    type: int
    id: str
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., type: int | None = ..., id: str | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class SceneUpdate(Message):
    """A change to a scene: deletions first, then what is new or replaced."""
    deletions: _Messages[SceneEntityDeletion]
    entities: _Messages[SceneEntity]
    def __init__(self, *,
        deletions: Iterable[SceneEntityDeletion | _Fields] | None = ...,
        entities: Iterable[SceneEntity | _Fields] | None = ...
    ) -> None: ...

class SpherePrimitive(Message):
    """A sphere or ellipsoid in a scene."""
    pose: _Part[Pose]
    size: _Part[Vector3]
    color: _Part[Color]
    def __init__(self, *,
        pose: Pose | _Fields | None = ..., size: Vector3 | _Fields | None = ...,
        color: Color | _Fields | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["pose", "size", "color"]) -> bool: ...

class TextAnnotation(Message):
    """A text drawn over an image."""
    timestamp: _Time
    position: _Part[Point2]
    text: str
    font_size: float
    text_color: _Part[Color]
    background_color: _Part[Color]
    metadata: _Messages[KeyValuePair]
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., position: Point2 | _Fields | None = ...,
        text: str | None = ..., font_size: float | None = ...,
        text_color: Color | _Fields | None = ...,
        background_color: Color | _Fields | None = ...,
        metadata: Iterable[KeyValuePair | _Fields] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal[
        "timestamp", "position", "text_color", "background_color"
    ]) -> bool: ...

class TextPrimitive(Message):
    """A text in a scene."""
    pose: _Part[Pose]
    billboard: bool
    font_size: float
    scale_invariant: bool
    color: _Part[Color]
    text: str
    def __init__(self, *,
        pose: Pose | _Fields | None = ..., billboard: bool | None = ...,
        font_size: float | None = ..., scale_invariant: bool | None = ...,
        color: Color | _Fields | None = ..., text: str | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["pose", "color"]) -> bool: ...

class TriangleListPrimitive(Message):
    """Triangles in a scene: each three points are one, seen from both sides."""
    pose: _Part[Pose]
    points: _Messages[Point3]
    color: _Part[Color]
    colors: _Messages[Color]
    indices: _Values[int]
    def __init__(self, *,
        pose: Pose | _Fields | None = ..., points: Iterable[Point3 | _Fields] | None = ...,
        color: Color | _Fields | None = ..., colors: Iterable[Color | _Fields] | None = ...,
        indices: Iterable[int] | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["pose", "color"]) -> bool: ...

class Vector2(Message):
    """Two components along the axes of a frame."""
    x: float
    y: float
    def __init__(self, *, x: float | None = ..., y: float | None = ...) -> None: ...

class Vector3(Message):
    """Three components along the axes of a frame: x forward, y left, z up on a robot's body
    (REP-103)."""
    x: float
    y: float
    z: float
    def __init__(self, *,
        x: float | None = ..., y: float | None = ..., z: float | None = ...
    ) -> None: ...

class VoxelGrid(Message):
    """A map of cells in space."""
    timestamp: _Time
    frame_id: str
    pose: _Part[Pose]
    row_count: int
    column_count: int
    cell_size: _Part[Vector3]
    slice_stride: int
    row_stride: int
    cell_stride: int
    fields: _Messages[PackedElementField]
    data: bytes
    def __init__(self, *,
        timestamp: _Timestamp | None = ..., frame_id: str | None = ...,
        pose: Pose | _Fields | None = ..., row_count: int | None = ...,
        column_count: int | None = ..., cell_size: Vector3 | _Fields | None = ...,
        slice_stride: int | None = ..., row_stride: int | None = ...,
        cell_stride: int | None = ...,
        fields: Iterable[PackedElementField | _Fields] | None = ..., data: bytes | None = ...
    ) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose", "cell_size"]) -> bool: ...
