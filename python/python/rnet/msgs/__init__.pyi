"""The built-in messages: ``from rnet.msgs import JointState, LaserScan``.

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
from . import foxglove as foxglove
from .foxglove import (ArrowPrimitive, CameraCalibration, CircleAnnotation, Color,
    CompressedAudio, CompressedImage, CompressedPointCloud, CompressedVideo, CubePrimitive,
    CylinderPrimitive, FrameTransform, FrameTransforms, GeoJSON, Grid, ImageAnnotations,
    JointStates, KeyValuePair, LaserScan, LinePrimitive, LocationFix, LocationFixes, Log,
    ModelPrimitive, Odometry, PackedElementField, Point2, Point3, Point3InFrame,
    PointsAnnotation, Pose, PoseInFrame, PosesInFrame, Quaternion, RawAudio, RawImage,
    SceneEntity, SceneEntityDeletion, SceneUpdate, SpherePrimitive, TextAnnotation,
    TextPrimitive, TriangleListPrimitive, Vector2, Vector3, VoxelGrid)
from .image import Image as Image
from .point_cloud import PointCloud as PointCloud
from .tensor import Tensor as Tensor

_T = TypeVar("_T")

_Given: TypeAlias = _T | Mapping[str, Any] | None
_Timestamp: TypeAlias = _Given[Timestamp | datetime]
_Duration: TypeAlias = _Given[Duration | timedelta]

class _Part(Generic[_T]):
    def __get__(self, message: object, cls: object = None, /) -> _T: ...
    def __set__(self, message: object, value: Never, /) -> None: ...

# Pyright takes both methods from one class, to see that what is read is not what was written.
class _Time(_Part[Timestamp]):
    def __get__(self, message: object, cls: object = None, /) -> Timestamp: ...
    def __set__(self, message: object, value: datetime, /) -> None: ...

class _Span(_Part[Duration]):
    def __get__(self, message: object, cls: object = None, /) -> Duration: ...
    def __set__(self, message: object, value: timedelta, /) -> None: ...

__all__ = ["ArrowPrimitive", "BatteryState", "CallControl", "CallStatus",
    "CameraCalibration", "CircleAnnotation", "Clock", "Color", "CommandEvent",
    "CommandReply", "CommandRequest", "CommandStatus", "CompressedAudio", "CompressedImage",
    "CompressedPointCloud", "CompressedVideo", "CubePrimitive", "CylinderPrimitive",
    "Diagnostic", "EmergencyStop", "Event", "FrameTransform", "FrameTransforms", "GeoJSON",
    "Grid", "Illuminance", "Image", "ImageAnnotations", "Imu", "JointCommand", "JointState",
    "JointStates", "JointTrajectory", "Joy", "KeyValuePair", "LaserScan", "LinePrimitive",
    "LinkStatus", "LocationFix", "LocationFixes", "Log", "MagneticField", "ModelPrimitive",
    "Odometry", "PackedElementField", "Point2", "Point3", "Point3InFrame", "PointCloud",
    "PointsAnnotation", "Pose", "PoseEstimate", "PoseInFrame", "PoseTrajectory",
    "PosesInFrame", "Pressure", "Quaternion", "Range", "RawAudio", "RawImage",
    "RelativeHumidity", "RobotMode", "SceneEntity", "SceneEntityDeletion", "SceneUpdate",
    "SpherePrimitive", "StateAsk", "StateChange", "StateEntry", "StateReply", "Temperature",
    "Tensor", "TextAnnotation", "TextPrimitive", "TriangleListPrimitive", "Twist",
    "TwistInFrame", "Vector2", "Vector3", "VoxelGrid", "Wrench", "WrenchInFrame"]

class BatteryState(Message):
    """A battery."""
    Status: ClassVar[EnumTypeWrapper]
    STATUS_UNSPECIFIED: ClassVar[int]; STATUS_CHARGING: ClassVar[int]
    STATUS_DISCHARGING: ClassVar[int]; STATUS_NOT_CHARGING: ClassVar[int]
    STATUS_FULL: ClassVar[int]
    Health: ClassVar[EnumTypeWrapper]
    HEALTH_UNSPECIFIED: ClassVar[int]; HEALTH_GOOD: ClassVar[int]
    HEALTH_OVERHEAT: ClassVar[int]; HEALTH_COLD: ClassVar[int]; HEALTH_DEAD: ClassVar[int]
    HEALTH_OVERVOLTAGE: ClassVar[int]; HEALTH_UNDERVOLTAGE: ClassVar[int]
    HEALTH_OVERCURRENT: ClassVar[int]; HEALTH_UNBALANCED: ClassVar[int]
    HEALTH_NO_ANSWER: ClassVar[int]; HEALTH_OTHER: ClassVar[int]
    Technology: ClassVar[EnumTypeWrapper]
    TECHNOLOGY_UNSPECIFIED: ClassVar[int]; TECHNOLOGY_LI_ION: ClassVar[int]
    TECHNOLOGY_LI_PO: ClassVar[int]; TECHNOLOGY_LI_FE_PO4: ClassVar[int]
    TECHNOLOGY_NI_MH: ClassVar[int]; TECHNOLOGY_NI_CD: ClassVar[int]
    TECHNOLOGY_LEAD_ACID: ClassVar[int]; TECHNOLOGY_LI_TITANATE: ClassVar[int]
    TECHNOLOGY_NA_ION: ClassVar[int]
    timestamp: _Time
    location: str
    serial_number: str
    present: bool
    voltage: float
    current: float
    charge: float
    capacity: float
    design_capacity: float
    state_of_charge: float
    temperature: float
    status: int
    health: int
    technology: int
    cell_voltages: _Values[float]
    cell_temperatures: _Values[float]
    def __init__(self, *, timestamp: _Timestamp = ..., location: str = ...,
        serial_number: str = ..., present: bool = ..., voltage: float = ...,
        current: float = ..., charge: float = ..., capacity: float = ...,
        design_capacity: float = ..., state_of_charge: float = ..., temperature: float = ...,
        status: int = ..., health: int = ..., technology: int = ...,
        cell_voltages: Iterable[float] = ...,
        cell_temperatures: Iterable[float] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "present", "voltage", "current",
        "charge", "capacity", "design_capacity", "state_of_charge", "temperature"]) -> bool: ...

class CallControl(Message):
    """A caller's request to the server of a running call; the correlation of the message
    identifies the call."""
    Action: ClassVar[EnumTypeWrapper]
    ACTION_UNSPECIFIED: ClassVar[int]; ACTION_CANCEL: ClassVar[int]
    ACTION_TIMED_OUT: ClassVar[int]; ACTION_STOP: ClassVar[int]; ACTION_STOP_ALL: ClassVar[int]
    action: int
    def __init__(self, *, action: int = ...) -> None: ...

class CallStatus(Message):
    """How a call ended, if not with a single reply; the correlation of the message identifies
    the call."""
    State: ClassVar[EnumTypeWrapper]
    STATE_UNSPECIFIED: ClassVar[int]; STATE_DONE: ClassVar[int]; STATE_FAILED: ClassVar[int]
    STATE_CANCELLED: ClassVar[int]; STATE_REFUSED: ClassVar[int]
    Reason: ClassVar[EnumTypeWrapper]
    REASON_UNSPECIFIED: ClassVar[int]; REASON_CALLER: ClassVar[int]
    REASON_CALLER_GONE: ClassVar[int]; REASON_TIMED_OUT: ClassVar[int]
    REASON_PREEMPTED: ClassVar[int]; REASON_SERVER_CLOSING: ClassVar[int]
    REASON_OPERATOR: ClassVar[int]
    state: int
    replies: int
    code: str
    text: str
    backlog: int
    reason: int
    feedback: int
    feedback_dropped: int
    running: str
    def __init__(self, *, state: int = ..., replies: int = ..., code: str = ...,
        text: str = ..., backlog: int = ..., reason: int = ..., feedback: int = ...,
        feedback_dropped: int = ..., running: str = ...) -> None: ...

class Clock(Message):
    """Time of a simulation or of a recording in playback, on the topic `/clock`."""
    time_ns: int
    def __init__(self, *, time_ns: int = ...) -> None: ...

class CommandEvent(Message):
    """An event of a command: a line of its audit trail."""
    Kind: ClassVar[EnumTypeWrapper]
    KIND_UNSPECIFIED: ClassVar[int]; KIND_GRANTED: ClassVar[int]; KIND_REFUSED: ClassVar[int]
    KIND_RELEASED: ClassVar[int]; KIND_PREEMPTED: ClassVar[int]; KIND_EXPIRED: ClassVar[int]
    KIND_DRIVER_LOST: ClassVar[int]; KIND_IN_FORCE: ClassVar[int]; KIND_FALLBACK: ClassVar[int]
    KIND_INTRUDER: ClassVar[int]; KIND_OPENED: ClassVar[int]; KIND_CLOSED: ClassVar[int]
    timestamp: _Time
    kind: int
    node: str
    priority: int
    number: int
    text: str
    def __init__(self, *, timestamp: _Timestamp = ..., kind: int = ..., node: str = ...,
        priority: int = ..., number: int = ..., text: str = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class CommandReply(Message):
    """Answer of the receiver of a command to a driver."""
    granted: bool
    number: int
    holder: str
    priority: int
    deadline: int
    def __init__(self, *, granted: bool = ..., number: int = ..., holder: str = ...,
        priority: int = ..., deadline: int = ...) -> None: ...

class CommandRequest(Message):
    """Request of a driver to the receiver of a command: to take, renew or release authority."""
    Action: ClassVar[EnumTypeWrapper]
    ACTION_UNSPECIFIED: ClassVar[int]; ACTION_TAKE: ClassVar[int]; ACTION_RENEW: ClassVar[int]
    ACTION_RELEASE: ClassVar[int]
    action: int
    priority: int
    lease: int
    number: int
    outlasts_driver: bool
    def __init__(self, *, action: int = ..., priority: int = ..., lease: int = ...,
        number: int = ..., outlasts_driver: bool = ...) -> None: ...

class CommandStatus(Message):
    """Current driver of a command."""
    State: ClassVar[EnumTypeWrapper]
    STATE_UNSPECIFIED: ClassVar[int]; STATE_FALLBACK: ClassVar[int]
    STATE_IN_FORCE: ClassVar[int]; STATE_CLOSED: ClassVar[int]
    Reason: ClassVar[EnumTypeWrapper]
    REASON_UNSPECIFIED: ClassVar[int]; REASON_OPENED: ClassVar[int]
    REASON_GRANTED: ClassVar[int]; REASON_DEADLINE: ClassVar[int]
    REASON_EXPIRED: ClassVar[int]; REASON_RELEASED: ClassVar[int]
    REASON_DRIVER_LOST: ClassVar[int]; REASON_PREEMPTED: ClassVar[int]
    REASON_OVERRUN: ClassVar[int]; REASON_PANICKED: ClassVar[int]; REASON_CLOSED: ClassVar[int]
    state: int
    reason: int
    holder: str
    priority: int
    number: int
    lease: int
    deadline: int
    applied: int
    ignored: int
    fallbacks: int
    granted: int
    fallback_failed: bool
    def __init__(self, *, state: int = ..., reason: int = ..., holder: str = ...,
        priority: int = ..., number: int = ..., lease: int = ..., deadline: int = ...,
        applied: int = ..., ignored: int = ..., fallbacks: int = ..., granted: int = ...,
        fallback_failed: bool = ...) -> None: ...

class Diagnostic(Message):
    """Health of the parts of a robot, sent about once a second: the latest status of each name
    applies."""
    Level: ClassVar[EnumTypeWrapper]
    LEVEL_UNSPECIFIED: ClassVar[int]; LEVEL_OK: ClassVar[int]; LEVEL_WARNING: ClassVar[int]
    LEVEL_ERROR: ClassVar[int]; LEVEL_STALE: ClassVar[int]
    class Status(Message):
        """How one part is."""
        level: int
        name: str
        text: str
        hardware_id: str
        values: _Messages[foxglove.KeyValuePair]
        def __init__(self, *, level: int = ..., name: str = ..., text: str = ...,
            hardware_id: str = ...,
            values: Iterable[_Given[foxglove.KeyValuePair]] = ...) -> None: ...
    timestamp: _Time
    status: _Messages[Diagnostic.Status]
    def __init__(self, *, timestamp: _Timestamp = ...,
        status: Iterable[_Given[Diagnostic.Status]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class EmergencyStop(Message):
    """Emergency stop as seen by one source."""
    State: ClassVar[EnumTypeWrapper]
    STATE_UNSPECIFIED: ClassVar[int]; STATE_STOP: ClassVar[int]
    STATE_WAITS_FOR_RESET: ClassVar[int]; STATE_RELEASED: ClassVar[int]
    timestamp: _Time
    state: int
    source: str
    reason: str
    def __init__(self, *, timestamp: _Timestamp = ..., state: int = ..., source: str = ...,
        reason: str = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class Event(Message):
    """A single occurrence that programs may act on."""
    Severity: ClassVar[EnumTypeWrapper]
    SEVERITY_UNSPECIFIED: ClassVar[int]; SEVERITY_DEBUG: ClassVar[int]
    SEVERITY_INFO: ClassVar[int]; SEVERITY_WARNING: ClassVar[int]
    SEVERITY_ERROR: ClassVar[int]; SEVERITY_FATAL: ClassVar[int]
    timestamp: _Time
    severity: int
    code: str
    text: str
    node: str
    values: _Messages[foxglove.KeyValuePair]
    def __init__(self, *, timestamp: _Timestamp = ..., severity: int = ..., code: str = ...,
        text: str = ..., node: str = ...,
        values: Iterable[_Given[foxglove.KeyValuePair]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class Illuminance(Message):
    """How much light that an eye would see falls on a sensor."""
    timestamp: _Time
    frame_id: str
    illuminance: float
    variance: float
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        illuminance: float = ..., variance: float = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "variance"]) -> bool: ...

class Imu(Message):
    """What an inertial sensor measures, in the axes of its own frame (REP-145: x forward, y
    left, z up)."""
    timestamp: _Time
    frame_id: str
    orientation: _Part[foxglove.Quaternion]
    orientation_covariance: _Values[float]
    angular_velocity: _Part[foxglove.Vector3]
    angular_velocity_covariance: _Values[float]
    linear_acceleration: _Part[foxglove.Vector3]
    linear_acceleration_covariance: _Values[float]
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        orientation: _Given[foxglove.Quaternion] = ...,
        orientation_covariance: Iterable[float] = ...,
        angular_velocity: _Given[foxglove.Vector3] = ...,
        angular_velocity_covariance: Iterable[float] = ...,
        linear_acceleration: _Given[foxglove.Vector3] = ...,
        linear_acceleration_covariance: Iterable[float] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "orientation", "angular_velocity",
        "linear_acceleration"]) -> bool: ...

class JointCommand(Message):
    """What the joints of a robot shall do from now on."""
    Mode: ClassVar[EnumTypeWrapper]
    MODE_UNSPECIFIED: ClassVar[int]; MODE_OFF: ClassVar[int]; MODE_HOLD: ClassVar[int]
    MODE_POSITION: ClassVar[int]; MODE_VELOCITY: ClassVar[int]; MODE_EFFORT: ClassVar[int]
    MODE_IMPEDANCE: ClassVar[int]
    timestamp: _Time
    names: _Values[str]
    modes: _Values[int]
    position: _Values[float]
    velocity: _Values[float]
    effort: _Values[float]
    kp: _Values[float]
    kd: _Values[float]
    valid_for: _Span
    def __init__(self, *, timestamp: _Timestamp = ..., names: Iterable[str] = ...,
        modes: Iterable[int] = ..., position: Iterable[float] = ...,
        velocity: Iterable[float] = ..., effort: Iterable[float] = ...,
        kp: Iterable[float] = ..., kd: Iterable[float] = ...,
        valid_for: _Duration = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "valid_for"]) -> bool: ...

class JointState(Message):
    """The joints of a robot at one time, as a controller measures them."""
    timestamp: _Time
    names: _Values[str]
    position: _Values[float]
    velocity: _Values[float]
    effort: _Values[float]
    acceleration: _Values[float]
    def __init__(self, *, timestamp: _Timestamp = ..., names: Iterable[str] = ...,
        position: Iterable[float] = ..., velocity: Iterable[float] = ...,
        effort: Iterable[float] = ..., acceleration: Iterable[float] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class JointTrajectory(Message):
    """A motion of joints through points at given times."""
    class Point(Message):
        """Where the joints are at one time."""
        time_from_start: _Span
        position: _Values[float]
        velocity: _Values[float]
        acceleration: _Values[float]
        effort: _Values[float]
        def __init__(self, *, time_from_start: _Duration = ..., position: Iterable[float] = ...,
            velocity: Iterable[float] = ..., acceleration: Iterable[float] = ...,
            effort: Iterable[float] = ...) -> None: ...
        def HasField(self, field_name: Literal["time_from_start"]) -> bool: ...
    timestamp: _Time
    names: _Values[str]
    points: _Messages[JointTrajectory.Point]
    def __init__(self, *, timestamp: _Timestamp = ..., names: Iterable[str] = ...,
        points: Iterable[_Given[JointTrajectory.Point]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class Joy(Message):
    """What a person holds: a gamepad, a joystick, a pedal."""
    timestamp: _Time
    device: str
    axes: _Values[float]
    buttons: _Values[bool]
    connected: bool
    def __init__(self, *, timestamp: _Timestamp = ..., device: str = ...,
        axes: Iterable[float] = ..., buttons: Iterable[bool] = ...,
        connected: bool = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class LinkStatus(Message):
    """Status of a host's link to other hosts."""
    State: ClassVar[EnumTypeWrapper]
    STATE_UNSPECIFIED: ClassVar[int]; STATE_CONNECTING: ClassVar[int]
    STATE_CONNECTED: ClassVar[int]; STATE_LOST: ClassVar[int]; STATE_REFUSED: ClassVar[int]
    Direction: ClassVar[EnumTypeWrapper]
    DIRECTION_UNSPECIFIED: ClassVar[int]; DIRECTION_IN: ClassVar[int]
    DIRECTION_OUT: ClassVar[int]
    Cause: ClassVar[EnumTypeWrapper]
    CAUSE_UNSPECIFIED: ClassVar[int]; CAUSE_CREDIT: ClassVar[int]; CAUSE_WINDOW: ClassVar[int]
    CAUSE_RULE: ClassVar[int]; CAUSE_RATE_LIMIT: ClassVar[int]; CAUSE_LEFT_OUT: ClassVar[int]
    CAUSE_NO_SUBSCRIBER: ClassVar[int]; CAUSE_RIGHTS: ClassVar[int]
    class Certificate(Message):
        """The certificate of a host."""
        serial: str
        expires: _Time
        def __init__(self, *, serial: str = ..., expires: _Timestamp = ...) -> None: ...
        def HasField(self, field_name: Literal["expires"]) -> bool: ...
    class ClockStep(Message):
        """A step of a peer's clock against this host's."""
        timestamp: _Time
        step: _Span
        def __init__(self, *, timestamp: _Timestamp = ..., step: _Duration = ...) -> None: ...
        def HasField(self, field_name: Literal["timestamp", "step"]) -> bool: ...
    class Lost(Message):
        """What was lost on the way, in messages."""
        link: int
        overrun: int
        restart: int
        detached: int
        def __init__(self, *, link: int = ..., overrun: int = ..., restart: int = ...,
            detached: int = ...) -> None: ...
    class Topic(Message):
        """Traffic of a topic, of all publishers together."""
        name: str
        direction: int
        rate_hz: float
        bytes_per_s: float
        messages: int
        lost: _Part[LinkStatus.Lost]
        skipped: int
        held_back: int
        held_back_text: str
        waited: _Span
        def __init__(self, *, name: str = ..., direction: int = ..., rate_hz: float = ...,
            bytes_per_s: float = ..., messages: int = ..., lost: _Given[LinkStatus.Lost] = ...,
            skipped: int = ..., held_back: int = ..., held_back_text: str = ...,
            waited: _Duration = ...) -> None: ...
        def HasField(self, field_name: Literal["lost", "waited"]) -> bool: ...
    class Peer(Message):
        """Another host."""
        host: str
        id: str
        version: str
        address: str
        state: int
        since: _Time
        text: str
        round_trip: _Span
        clock_offset: _Span
        clock_offset_uncertainty: _Span
        clock_steps: _Messages[LinkStatus.ClockStep]
        topics: _Messages[LinkStatus.Topic]
        nodes: int
        clock_drift: float
        clock_drift_uncertainty: float
        certificate: _Part[LinkStatus.Certificate]
        refused_endpoints: int
        def __init__(self, *, host: str = ..., id: str = ..., version: str = ...,
            address: str = ..., state: int = ..., since: _Timestamp = ..., text: str = ...,
            round_trip: _Duration = ..., clock_offset: _Duration = ...,
            clock_offset_uncertainty: _Duration = ...,
            clock_steps: Iterable[_Given[LinkStatus.ClockStep]] = ...,
            topics: Iterable[_Given[LinkStatus.Topic]] = ..., nodes: int = ...,
            clock_drift: float = ..., clock_drift_uncertainty: float = ...,
            certificate: _Given[LinkStatus.Certificate] = ...,
            refused_endpoints: int = ...) -> None: ...
        def HasField(self, field_name: Literal["since", "round_trip", "clock_offset",
            "clock_offset_uncertainty", "certificate"]) -> bool: ...
    timestamp: _Time
    host: str
    id: str
    term: int
    pid: int
    version: str
    mode: str
    listen: _Values[str]
    peers: _Messages[LinkStatus.Peer]
    problems: _Values[str]
    connect: _Values[str]
    interfaces: _Values[str]
    insecure: bool
    certificate: _Part[LinkStatus.Certificate]
    authority: str
    def __init__(self, *, timestamp: _Timestamp = ..., host: str = ..., id: str = ...,
        term: int = ..., pid: int = ..., version: str = ..., mode: str = ...,
        listen: Iterable[str] = ..., peers: Iterable[_Given[LinkStatus.Peer]] = ...,
        problems: Iterable[str] = ..., connect: Iterable[str] = ...,
        interfaces: Iterable[str] = ..., insecure: bool = ...,
        certificate: _Given[LinkStatus.Certificate] = ..., authority: str = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "certificate"]) -> bool: ...

class MagneticField(Message):
    """What a magnetometer measures."""
    timestamp: _Time
    frame_id: str
    magnetic_field: _Part[foxglove.Vector3]
    covariance: _Values[float]
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        magnetic_field: _Given[foxglove.Vector3] = ...,
        covariance: Iterable[float] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "magnetic_field"]) -> bool: ...

class PoseEstimate(Message):
    """Where a body is believed to be, and how sure that is: what a localisation says, or is
    started with."""
    timestamp: _Time
    frame_id: str
    body_frame_id: str
    pose: _Part[foxglove.Pose]
    covariance: _Values[float]
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        body_frame_id: str = ..., pose: _Given[foxglove.Pose] = ...,
        covariance: Iterable[float] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "pose"]) -> bool: ...

class PoseTrajectory(Message):
    """A motion of a body through poses at given times."""
    class Point(Message):
        """Where the body is at one time."""
        time_from_start: _Span
        pose: _Part[foxglove.Pose]
        velocity: _Part[Twist]
        def __init__(self, *, time_from_start: _Duration = ..., pose: _Given[foxglove.Pose] = ...,
            velocity: _Given[Twist] = ...) -> None: ...
        def HasField(self, field_name: Literal["time_from_start", "pose", "velocity"]) -> bool: ...
    timestamp: _Time
    frame_id: str
    body_frame_id: str
    points: _Messages[PoseTrajectory.Point]
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        body_frame_id: str = ...,
        points: Iterable[_Given[PoseTrajectory.Point]] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp"]) -> bool: ...

class Pressure(Message):
    """One pressure of a gas or a liquid: a barometer's, a depth gauge's."""
    timestamp: _Time
    frame_id: str
    pressure: float
    variance: float
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        pressure: float = ..., variance: float = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "variance"]) -> bool: ...

class Range(Message):
    """One distance, measured by a sonar, an infrared or a laser sensor along x of its frame."""
    Radiation: ClassVar[EnumTypeWrapper]
    RADIATION_UNSPECIFIED: ClassVar[int]; RADIATION_ULTRASOUND: ClassVar[int]
    RADIATION_INFRARED: ClassVar[int]; RADIATION_LASER: ClassVar[int]
    RADIATION_RADAR: ClassVar[int]
    timestamp: _Time
    frame_id: str
    radiation: int
    field_of_view: float
    min_range: float
    max_range: float
    range: float
    variance: float
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        radiation: int = ..., field_of_view: float = ..., min_range: float = ...,
        max_range: float = ..., range: float = ..., variance: float = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "variance"]) -> bool: ...

class RelativeHumidity(Message):
    """How much water the air holds of what it could hold."""
    timestamp: _Time
    frame_id: str
    relative_humidity: float
    variance: float
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        relative_humidity: float = ..., variance: float = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "variance"]) -> bool: ...

class RobotMode(Message):
    """Operating mode of a robot."""
    Mode: ClassVar[EnumTypeWrapper]
    MODE_UNSPECIFIED: ClassVar[int]; MODE_STARTING: ClassVar[int]; MODE_READY: ClassVar[int]
    MODE_MANUAL: ClassVar[int]; MODE_AUTOMATIC: ClassVar[int]; MODE_CHARGING: ClassVar[int]
    MODE_MAINTENANCE: ClassVar[int]; MODE_FAULT: ClassVar[int]
    MODE_EMERGENCY_STOPPED: ClassVar[int]; MODE_STOPPING: ClassVar[int]
    timestamp: _Time
    mode: int
    drives_enabled: bool
    text: str
    since: _Time
    def __init__(self, *, timestamp: _Timestamp = ..., mode: int = ...,
        drives_enabled: bool = ..., text: str = ..., since: _Timestamp = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "since"]) -> bool: ...

class StateAsk(Message):
    """Request to a host to read or write its state."""
    Action: ClassVar[EnumTypeWrapper]
    ACTION_UNSPECIFIED: ClassVar[int]; ACTION_GET: ClassVar[int]; ACTION_LIST: ClassVar[int]
    ACTION_FOLLOW: ClassVar[int]; ACTION_SET: ClassVar[int]; ACTION_DELETE: ClassVar[int]
    ACTION_PARAMS: ClassVar[int]
    action: int
    key: str
    entry: _Part[StateEntry]
    if_revision: int
    durable: bool
    ttl_ns: int
    change_type: bool
    def __init__(self, *, action: int = ..., key: str = ..., entry: _Given[StateEntry] = ...,
        if_revision: int = ..., durable: bool = ..., ttl_ns: int = ...,
        change_type: bool = ...) -> None: ...
    def HasField(self, field_name: Literal["entry", "if_revision", "durable",
        "ttl_ns"]) -> bool: ...

class StateChange(Message):
    """A change of a key that another host follows, or a heartbeat without a change."""
    feed: int
    seq: int
    entry: _Part[StateEntry]
    skipped: int
    def __init__(self, *, feed: int = ..., seq: int = ..., entry: _Given[StateEntry] = ...,
        skipped: int = ...) -> None: ...
    def HasField(self, field_name: Literal["entry", "skipped"]) -> bool: ...

class StateEntry(Message):
    """A key of the state at its home."""
    key: str
    kind: int
    value: bytes
    type: int
    type_description: bytes
    revision: int
    version: int
    node: str
    written_unix_ns: int
    durable: bool
    ttl_left_ns: int
    deleted: bool
    expired: bool
    def __init__(self, *, key: str = ..., kind: int = ..., value: bytes = ..., type: int = ...,
        type_description: bytes = ..., revision: int = ..., version: int = ..., node: str = ...,
        written_unix_ns: int = ..., durable: bool = ..., ttl_left_ns: int = ...,
        deleted: bool = ..., expired: bool = ...) -> None: ...
    def HasField(self, field_name: Literal["ttl_left_ns", "expired"]) -> bool: ...

class StateReply(Message):
    """Answer of a host to a StateAsk."""
    class Refusal(Message):
        """Why it failed: the code of an error, and the parts of its text in order."""
        code: str
        words: _Values[str]
        numbers: _Values[int]
        def __init__(self, *, code: str = ..., words: Iterable[str] = ...,
            numbers: Iterable[int] = ...) -> None: ...
    refusal: _Part[StateReply.Refusal]
    revision: int
    entries: _Messages[StateEntry]
    topic: str
    feed: int
    seq: int
    def __init__(self, *, refusal: _Given[StateReply.Refusal] = ..., revision: int = ...,
        entries: Iterable[_Given[StateEntry]] = ..., topic: str = ..., feed: int = ...,
        seq: int = ...) -> None: ...
    def HasField(self, field_name: Literal["refusal"]) -> bool: ...

class Temperature(Message):
    """One temperature."""
    timestamp: _Time
    frame_id: str
    temperature: float
    variance: float
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        temperature: float = ..., variance: float = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "variance"]) -> bool: ...

class Twist(Message):
    """How a body moves at one instant."""
    linear: _Part[foxglove.Vector3]
    angular: _Part[foxglove.Vector3]
    def __init__(self, *, linear: _Given[foxglove.Vector3] = ...,
        angular: _Given[foxglove.Vector3] = ...) -> None: ...
    def HasField(self, field_name: Literal["linear", "angular"]) -> bool: ...

class TwistInFrame(Message):
    """How a body moves, or shall move, with time and frame."""
    timestamp: _Time
    frame_id: str
    twist: _Part[Twist]
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        twist: _Given[Twist] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "twist"]) -> bool: ...

class Wrench(Message):
    """Force and torque at a point."""
    force: _Part[foxglove.Vector3]
    torque: _Part[foxglove.Vector3]
    def __init__(self, *, force: _Given[foxglove.Vector3] = ...,
        torque: _Given[foxglove.Vector3] = ...) -> None: ...
    def HasField(self, field_name: Literal["force", "torque"]) -> bool: ...

class WrenchInFrame(Message):
    """Force and torque with time and frame, as a sensor in a wrist or a foot measures them:
    those that the surroundings exert on the robot."""
    timestamp: _Time
    frame_id: str
    wrench: _Part[Wrench]
    def __init__(self, *, timestamp: _Timestamp = ..., frame_id: str = ...,
        wrench: _Given[Wrench] = ...) -> None: ...
    def HasField(self, field_name: Literal["timestamp", "wrench"]) -> bool: ...
