"""std_msgs/UInt8MultiArray, as ROS 2 names it in DDS, for Cyclone DDS in Python."""

from dataclasses import dataclass, field

from cyclonedds.idl import IdlStruct, types


@dataclass
class MultiArrayDimension(IdlStruct, typename="std_msgs::msg::dds_::MultiArrayDimension_"):
    """A dimension."""

    label: str = ""
    size: types.uint32 = 0
    stride: types.uint32 = 0


@dataclass
class MultiArrayLayout(IdlStruct, typename="std_msgs::msg::dds_::MultiArrayLayout_"):
    """The dimensions."""

    dim: types.sequence[MultiArrayDimension] = field(default_factory=list)
    data_offset: types.uint32 = 0


@dataclass
class UInt8MultiArray(IdlStruct, typename="std_msgs::msg::dds_::UInt8MultiArray_"):
    """The message, with `data` as idlc generates it for Python.

    A received `data` is a list of numbers. The binding has a faster `bytes` field, but in no type
    that is registered with DDS: version 11 cannot make a type object of it.
    """

    layout: MultiArrayLayout = field(default_factory=MultiArrayLayout)
    data: types.sequence[types.uint8] = field(default_factory=list)
