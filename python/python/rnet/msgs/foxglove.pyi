"""The Foxglove messages, as used by viewers: ``from rnet.msgs.foxglove import JointStates``.

Written by python/tools/message_stubs.py from the .proto files; do not edit.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Literal

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer as _Messages
from google.protobuf.internal.containers import RepeatedScalarFieldContainer as _Values
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message
from . import _Duration, _Given, _Part, _Span, _Time, _Timestamp

__all__ = ["ArrowPrimitive", "CameraCalibration", "CircleAnnotation", "Color",
    "CompressedAudio", "CompressedImage", "CompressedPointCloud", "CompressedVideo",
    "CubePrimitive", "CylinderPrimitive", "Event", "FrameTransform", "FrameTransforms",
    "GeoJSON", "Grid", "ImageAnnotations", "JointState", "JointStates", "KeyValuePair",
    "LaserScan", "LinePrimitive", "LocationFix", "LocationFixes", "Log", "ModelPrimitive",
    "Odometry", "PackedElementField", "Point2", "Point3", "Point3InFrame", "PointCloud",
    "PointsAnnotation", "Pose", "PoseInFrame", "PosesInFrame", "Quaternion", "RawAudio",
    "RawImage", "SceneEntity", "SceneEntityDeletion", "SceneUpdate", "SpherePrimitive",
    "TextAnnotation", "TextPrimitive", "TriangleListPrimitive", "Vector2", "Vector3",
    "VoxelGrid"]

class ArrowPrimitive(Message):
    """An arrow in a scene."""
    pose: _Part[Pose]
    shaft_length: float
    shaft_diameter: float
    head_length: float
    head_diameter: float
    color: _Part[Color]
    def __init__(self, *, pose: _Given[Pose] = ..., shaft_length: float = ...,
        shaft_diameter: float = ..., head_length: float = ..., head_diameter: float = ...,
        color: _Given[Color] = ...) -> None: ...
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
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ..., width: int = ...,
        height: int = ..., distortion_model: str = ..., D: Iterable[float] = ...,
        K: Iterable[float] = ..., R: Iterable[float] = ...,
        P: Iterable[float] = ...) -> None: ...
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
    def __init__(self, *, timestamp: _Timestamp = ..., position: _Given[Point2] = ...,
        diameter: float = ..., thickness: float = ..., fill_color: _Given[Color] = ...,
        outline_color: _Given[Color] = ...,
        metadata: Iterable[_Given[KeyValuePair]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "position", "fill_color",
        "outline_color"]) -> bool: ...

class Color(Message):
    """A colour with opacity; each part from 0 to 1, not multiplied by the opacity."""
    r: float
    g: float
    b: float
    a: float
    def __init__(self, *, r: float = ..., g: float = ..., b: float = ...,
        a: float = ...) -> None: ...

class CompressedAudio(Message):
    """A piece of sound: one whole packet of its codec."""
    timestamp: _Time
    data: bytes
    format: str
    def __init__(self, *, timestamp: _Timestamp = ..., data: bytes = ...,
        format: str = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class CompressedImage(Message):
    """An image in a file format for single images."""
    timestamp: _Time
    frame_id: str
    data: bytes
    format: str
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ..., data: bytes = ...,
        format: str = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class CompressedPointCloud(Message):
    """Points in space, compressed."""
    timestamp: _Time
    frame_id: str
    pose: _Part[Pose]
    data: bytes
    format: str
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        pose: _Given[Pose] = ..., data: bytes = ..., format: str = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose"]) -> bool: ...

class CompressedVideo(Message):
    """One picture of a video stream."""
    timestamp: _Time
    frame_id: str
    data: bytes
    format: str
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ..., data: bytes = ...,
        format: str = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class CubePrimitive(Message):
    """A box in a scene."""
    pose: _Part[Pose]
    size: _Part[Vector3]
    color: _Part[Color]
    def __init__(self, *, pose: _Given[Pose] = ..., size: _Given[Vector3] = ...,
        color: _Given[Color] = ...) -> None: ...
    def HasField(self, field_name: Literal["pose", "size", "color"]) -> bool: ...

class CylinderPrimitive(Message):
    """A cylinder or cut-off cone in a scene, its axis along z."""
    pose: _Part[Pose]
    size: _Part[Vector3]
    bottom_scale: float
    top_scale: float
    color: _Part[Color]
    def __init__(self, *, pose: _Given[Pose] = ..., size: _Given[Vector3] = ...,
        bottom_scale: float = ..., top_scale: float = ...,
        color: _Given[Color] = ...) -> None: ...
    def HasField(self, field_name: Literal["pose", "size", "color"]) -> bool: ...

class Event(Message):
    """A stretch of time that is worth finding again in a recording."""
    start_time: _Time
    end_time: _Time
    metadata: _Messages[KeyValuePair]
    def __init__(self, *, start_time: _Timestamp = ..., end_time: _Timestamp = ...,
        metadata: Iterable[_Given[KeyValuePair]] = ...) -> None: ...
    def HasField(self, field_name: Literal["start_time", "end_time"]) -> bool: ...

class FrameTransform(Message):
    """How one frame lies in another."""
    timestamp: _Time
    parent_frame_id: str
    child_frame_id: str
    translation: _Part[Vector3]
    rotation: _Part[Quaternion]
    def __init__(self, *, timestamp: _Timestamp = ..., parent_frame_id: str = ...,
        child_frame_id: str = ..., translation: _Given[Vector3] = ...,
        rotation: _Given[Quaternion] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "translation", "rotation"]) -> bool: ...

class FrameTransforms(Message):
    """Several transforms at once, each with a time of its own."""
    transforms: _Messages[FrameTransform]
    def __init__(self, *, transforms: Iterable[_Given[FrameTransform]] = ...) -> None: ...

class GeoJSON(Message):
    """Shapes on a map as GeoJSON (RFC 7946)."""
    geojson: str
    def __init__(self, *, geojson: str = ...) -> None: ...

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
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        pose: _Given[Pose] = ..., column_count: int = ..., cell_size: _Given[Vector2] = ...,
        row_stride: int = ..., cell_stride: int = ...,
        fields: Iterable[_Given[PackedElementField]] = ..., data: bytes = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose", "cell_size"]) -> bool: ...

class ImageAnnotations(Message):
    """What is to be drawn over one image."""
    timestamp: _Time
    circles: _Messages[CircleAnnotation]
    points: _Messages[PointsAnnotation]
    texts: _Messages[TextAnnotation]
    metadata: _Messages[KeyValuePair]
    def __init__(self, *, timestamp: _Timestamp = ...,
        circles: Iterable[_Given[CircleAnnotation]] = ...,
        points: Iterable[_Given[PointsAnnotation]] = ...,
        texts: Iterable[_Given[TextAnnotation]] = ...,
        metadata: Iterable[_Given[KeyValuePair]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class JointState(Message):
    """One joint by name, as viewers know it."""
    name: str
    position: float
    velocity: float
    acceleration: float
    effort: float
    def __init__(self, *, name: str = ..., position: float = ..., velocity: float = ...,
        acceleration: float = ..., effort: float = ...) -> None: ...
    def HasField(self, field_name: Literal["position", "velocity", "acceleration",
        "effort"]) -> bool: ...

class JointStates(Message):
    """Several joints at one time."""
    timestamp: _Time
    joints: _Messages[JointState]
    def __init__(self, *, timestamp: _Timestamp = ...,
        joints: Iterable[_Given[JointState]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class KeyValuePair(Message):
    """A name and a text, for what has no field of its own."""
    key: str
    value: str
    def __init__(self, *, key: str = ..., value: str = ...) -> None: ...

class LaserScan(Message):
    """One sweep of a scanner that turns about an axis."""
    timestamp: _Time
    frame_id: str
    pose: _Part[Pose]
    start_angle: float
    end_angle: float
    ranges: _Values[float]
    intensities: _Values[float]
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        pose: _Given[Pose] = ..., start_angle: float = ..., end_angle: float = ...,
        ranges: Iterable[float] = ..., intensities: Iterable[float] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose"]) -> bool: ...

class LinePrimitive(Message):
    """Lines through points in a scene."""
    Type: ClassVar[EnumTypeWrapper]
    LINE_STRIP: ClassVar[int]; LINE_LOOP: ClassVar[int]; LINE_LIST: ClassVar[int]
    type: int
    pose: _Part[Pose]
    thickness: float
    scale_invariant: bool
    points: _Messages[Point3]
    color: _Part[Color]
    colors: _Messages[Color]
    indices: _Values[int]
    def __init__(self, *, type: int = ..., pose: _Given[Pose] = ..., thickness: float = ...,
        scale_invariant: bool = ..., points: Iterable[_Given[Point3]] = ...,
        color: _Given[Color] = ..., colors: Iterable[_Given[Color]] = ...,
        indices: Iterable[int] = ...) -> None: ...
    def HasField(self, field_name: Literal["pose", "color"]) -> bool: ...

class LocationFix(Message):
    """Where a satellite receiver is on the earth (WGS 84)."""
    PositionCovarianceType: ClassVar[EnumTypeWrapper]
    UNKNOWN: ClassVar[int]; APPROXIMATED: ClassVar[int]; DIAGONAL_KNOWN: ClassVar[int]
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
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        latitude: float = ..., longitude: float = ..., altitude: float = ...,
        position_covariance: Iterable[float] = ..., position_covariance_type: int = ...,
        heading: float = ..., velocity: _Given[Vector3] = ..., color: _Given[Color] = ...,
        metadata: Iterable[_Given[KeyValuePair]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "heading", "velocity",
        "color"]) -> bool: ...

class LocationFixes(Message):
    """Several places at once, for example of a fleet."""
    fixes: _Messages[LocationFix]
    def __init__(self, *, fixes: Iterable[_Given[LocationFix]] = ...) -> None: ...

class Log(Message):
    """A line for people to read."""
    Level: ClassVar[EnumTypeWrapper]
    UNKNOWN: ClassVar[int]; DEBUG: ClassVar[int]; INFO: ClassVar[int]; WARNING: ClassVar[int]
    ERROR: ClassVar[int]; FATAL: ClassVar[int]
    timestamp: _Time
    level: int
    message: str
    name: str
    file: str
    line: int
    def __init__(self, *, timestamp: _Timestamp = ..., level: int = ..., message: str = ...,
        name: str = ..., file: str = ..., line: int = ...) -> None: ...
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
    def __init__(self, *, pose: _Given[Pose] = ..., scale: _Given[Vector3] = ...,
        color: _Given[Color] = ..., override_color: bool = ..., url: str = ...,
        media_type: str = ..., data: bytes = ...) -> None: ...
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
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        body_frame_id: str = ..., pose: _Given[Pose] = ...,
        linear_velocity: _Given[Vector3] = ..., angular_velocity: _Given[Vector3] = ...,
        pose_covariance: Iterable[float] = ..., velocity_covariance: Iterable[float] = ...,
        metadata: Iterable[_Given[KeyValuePair]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose", "linear_velocity",
        "angular_velocity"]) -> bool: ...

class PackedElementField(Message):
    """One number within each element of a packed array: one of a point's coordinates, or a
    cell's height."""
    NumericType: ClassVar[EnumTypeWrapper]
    UNKNOWN: ClassVar[int]; UINT8: ClassVar[int]; INT8: ClassVar[int]; UINT16: ClassVar[int]
    INT16: ClassVar[int]; UINT32: ClassVar[int]; INT32: ClassVar[int]; FLOAT32: ClassVar[int]
    FLOAT64: ClassVar[int]
    name: str
    offset: int
    type: int
    def __init__(self, *, name: str = ..., offset: int = ..., type: int = ...) -> None: ...

class Point2(Message):
    """A place in a plane, mostly in an image: x to the right, y down, and the zero is the outer
    corner of the top left pixel."""
    x: float
    y: float
    def __init__(self, *, x: float = ..., y: float = ...) -> None: ...

class Point3(Message):
    """A place in space, in the frame of the message that holds it."""
    x: float
    y: float
    z: float
    def __init__(self, *, x: float = ..., y: float = ..., z: float = ...) -> None: ...

class Point3InFrame(Message):
    """A place in space, with its time and frame."""
    timestamp: _Time
    frame_id: str
    point: _Part[Point3]
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        point: _Given[Point3] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "point"]) -> bool: ...

class PointCloud(Message):
    """Points in space, packed one after the other."""
    timestamp: _Time
    frame_id: str
    pose: _Part[Pose]
    point_stride: int
    fields: _Messages[PackedElementField]
    data: bytes
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        pose: _Given[Pose] = ..., point_stride: int = ...,
        fields: Iterable[_Given[PackedElementField]] = ..., data: bytes = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose"]) -> bool: ...

class PointsAnnotation(Message):
    """Points or lines drawn over an image."""
    Type: ClassVar[EnumTypeWrapper]
    UNKNOWN: ClassVar[int]; POINTS: ClassVar[int]; LINE_LOOP: ClassVar[int]
    LINE_STRIP: ClassVar[int]; LINE_LIST: ClassVar[int]
    timestamp: _Time
    type: int
    points: _Messages[Point2]
    outline_color: _Part[Color]
    outline_colors: _Messages[Color]
    fill_color: _Part[Color]
    thickness: float
    metadata: _Messages[KeyValuePair]
    def __init__(self, *, timestamp: _Timestamp = ..., type: int = ...,
        points: Iterable[_Given[Point2]] = ..., outline_color: _Given[Color] = ...,
        outline_colors: Iterable[_Given[Color]] = ..., fill_color: _Given[Color] = ...,
        thickness: float = ..., metadata: Iterable[_Given[KeyValuePair]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "outline_color",
        "fill_color"]) -> bool: ...

class Pose(Message):
    """Where a thing is and how it is turned."""
    position: _Part[Vector3]
    orientation: _Part[Quaternion]
    def __init__(self, *, position: _Given[Vector3] = ...,
        orientation: _Given[Quaternion] = ...) -> None: ...
    def HasField(self, field_name: Literal["position", "orientation"]) -> bool: ...

class PoseInFrame(Message):
    """Where a thing is and how it is turned, with time and frame."""
    timestamp: _Time
    frame_id: str
    pose: _Part[Pose]
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        pose: _Given[Pose] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose"]) -> bool: ...

class PosesInFrame(Message):
    """A row of poses in one frame: a path to follow, or the guesses of a particle filter."""
    timestamp: _Time
    frame_id: str
    poses: _Messages[Pose]
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        poses: Iterable[_Given[Pose]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class Quaternion(Message):
    """A rotation as a unit quaternion, in the order x y z w."""
    x: float
    y: float
    z: float
    w: float
    def __init__(self, *, x: float = ..., y: float = ..., z: float = ...,
        w: float = ...) -> None: ...

class RawAudio(Message):
    """A piece of sound, uncompressed, its channels interleaved."""
    timestamp: _Time
    data: bytes
    format: str
    sample_rate: int
    number_of_channels: int
    def __init__(self, *, timestamp: _Timestamp = ..., data: bytes = ..., format: str = ...,
        sample_rate: int = ..., number_of_channels: int = ...) -> None: ...
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
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ..., width: int = ...,
        height: int = ..., encoding: str = ..., step: int = ..., data: bytes = ...) -> None: ...
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
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ..., id: str = ...,
        lifetime: _Duration = ..., frame_locked: bool = ...,
        metadata: Iterable[_Given[KeyValuePair]] = ...,
        arrows: Iterable[_Given[ArrowPrimitive]] = ...,
        cubes: Iterable[_Given[CubePrimitive]] = ...,
        spheres: Iterable[_Given[SpherePrimitive]] = ...,
        cylinders: Iterable[_Given[CylinderPrimitive]] = ...,
        lines: Iterable[_Given[LinePrimitive]] = ...,
        triangles: Iterable[_Given[TriangleListPrimitive]] = ...,
        texts: Iterable[_Given[TextPrimitive]] = ...,
        models: Iterable[_Given[ModelPrimitive]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "lifetime"]) -> bool: ...

class SceneEntityDeletion(Message):
    """Takes things out of a scene."""
    Type: ClassVar[EnumTypeWrapper]
    MATCHING_ID: ClassVar[int]; ALL: ClassVar[int]
    timestamp: _Time
    type: int
    id: str
    def __init__(self, *, timestamp: _Timestamp = ..., type: int = ...,
        id: str = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class SceneUpdate(Message):
    """A change to a scene: deletions first, then what is new or replaced."""
    deletions: _Messages[SceneEntityDeletion]
    entities: _Messages[SceneEntity]
    def __init__(self, *, deletions: Iterable[_Given[SceneEntityDeletion]] = ...,
        entities: Iterable[_Given[SceneEntity]] = ...) -> None: ...

class SpherePrimitive(Message):
    """A sphere or ellipsoid in a scene."""
    pose: _Part[Pose]
    size: _Part[Vector3]
    color: _Part[Color]
    def __init__(self, *, pose: _Given[Pose] = ..., size: _Given[Vector3] = ...,
        color: _Given[Color] = ...) -> None: ...
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
    def __init__(self, *, timestamp: _Timestamp = ..., position: _Given[Point2] = ...,
        text: str = ..., font_size: float = ..., text_color: _Given[Color] = ...,
        background_color: _Given[Color] = ...,
        metadata: Iterable[_Given[KeyValuePair]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "position", "text_color",
        "background_color"]) -> bool: ...

class TextPrimitive(Message):
    """A text in a scene."""
    pose: _Part[Pose]
    billboard: bool
    font_size: float
    scale_invariant: bool
    color: _Part[Color]
    text: str
    def __init__(self, *, pose: _Given[Pose] = ..., billboard: bool = ...,
        font_size: float = ..., scale_invariant: bool = ..., color: _Given[Color] = ...,
        text: str = ...) -> None: ...
    def HasField(self, field_name: Literal["pose", "color"]) -> bool: ...

class TriangleListPrimitive(Message):
    """Triangles in a scene: each three points are one, seen from both sides."""
    pose: _Part[Pose]
    points: _Messages[Point3]
    color: _Part[Color]
    colors: _Messages[Color]
    indices: _Values[int]
    def __init__(self, *, pose: _Given[Pose] = ..., points: Iterable[_Given[Point3]] = ...,
        color: _Given[Color] = ..., colors: Iterable[_Given[Color]] = ...,
        indices: Iterable[int] = ...) -> None: ...
    def HasField(self, field_name: Literal["pose", "color"]) -> bool: ...

class Vector2(Message):
    """Two components along the axes of a frame."""
    x: float
    y: float
    def __init__(self, *, x: float = ..., y: float = ...) -> None: ...

class Vector3(Message):
    """Three components along the axes of a frame: x forward, y left, z up on a robot's body
    (REP-103)."""
    x: float
    y: float
    z: float
    def __init__(self, *, x: float = ..., y: float = ..., z: float = ...) -> None: ...

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
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        pose: _Given[Pose] = ..., row_count: int = ..., column_count: int = ...,
        cell_size: _Given[Vector3] = ..., slice_stride: int = ..., row_stride: int = ...,
        cell_stride: int = ..., fields: Iterable[_Given[PackedElementField]] = ...,
        data: bytes = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose", "cell_size"]) -> bool: ...
