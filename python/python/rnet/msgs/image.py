"""``rnet.msgs.Image``: a picture, sent and read without encoding it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import hints
from . import _plain

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

    from .. import Publisher
    from ._plain import Array

__all__ = ["Image"]

#: By encoding: numpy type of the elements, their size in bytes, and the number of elements per pixel.
ENCODINGS: dict[str, tuple[str, int, int]] = {
    **dict.fromkeys(("mono8", "8UC1"), ("u1", 1, 1)),
    **dict.fromkeys(("bayer_rggb8", "bayer_bggr8", "bayer_gbrg8", "bayer_grbg8"), ("u1", 1, 1)),
    **dict.fromkeys(("mono16", "16UC1"), ("<u2", 2, 1)),
    "32FC1": ("<f4", 4, 1),
    **dict.fromkeys(("rgb8", "bgr8", "8UC3"), ("u1", 1, 3)),
    **dict.fromkeys(("rgba8", "bgra8"), ("u1", 1, 4)),
    **dict.fromkeys(("yuv422", "uyvy", "yuv422_yuy2", "yuyv"), ("u1", 1, 2)),
}

#: The padded rows of an image must also fit into a message.
DATA_LEN_MAX = 1 << 30


class Image(_plain.PlainMessage):
    """A picture: rows of pixels.

    ``node.subscriber("/camera", Image)`` returns images whose `array` reads the message in place;
    ``publisher.send(Image.from_array(array, "rgb8"))`` copies the array once, to where it is read.
    """

    _layout = _plain.Layout(
        "rnet.msgs.Image",
        *_plain.COMMON,
        ("width", "u32", 1),
        ("height", "u32", 1),
        ("row_stride", "u32", 1),
        ("_reserved1", "reserved", 4),
        ("encoding", "text", 32),
        ("_reserved2", "reserved", 48),
    )

    #: Pixels in a row.
    width: int
    #: Rows.
    height: int
    #: Bytes from the start of a row to that of the next.
    row_stride: int
    #: As in foxglove.RawImage: `rgb8`, `mono16`, ...
    encoding: str

    def __init__(
        self,
        *,
        width: int,
        height: int,
        encoding: str,
        data: Buffer,
        row_stride: int | None = None,
        frame_id: str = "",
        timestamp_ns: int = 0,
    ) -> None:
        """An image of the bytes of its rows, as cameras give them; they are copied when it is sent.

        Args:
            width, height: in pixels.
            encoding: as in foxglove.RawImage: "rgb8", "bgr8", "mono8", "mono16", "32FC1", ...
            data: the rows, one after the other.
            row_stride: bytes from the start of a row to that of the next; without it, as many as
                the pixels of a row take. To be given for an encoding that is not known here.
            frame_id: optical frame of the camera: x right, y down, z into the picture.
            timestamp_ns: middle of the exposure, in ns since 1970 UTC; 0: not known.

        Raises BadValueError if that does not fit together.
        """
        if row_stride is None:
            if encoding not in ENCODINGS:
                raise self._layout.bad(f"{_unknown(encoding)} A custom encoding needs a row_stride")
            row_stride = width * pixel_bytes(encoding)
        self._set(width, height, row_stride, encoding, frame_id, timestamp_ns)
        self._data = _plain.bytes_of(self._layout, data)
        self._check(len(self._data))

    def _set(
        self, width: int, height: int, row: int, encoding: str, frame_id: str, timestamp_ns: int
    ) -> None:
        self.width, self.height, self.row_stride = width, height, row
        self.encoding, self.frame_id, self.timestamp_ns = encoding, frame_id, timestamp_ns
        self._data = self._array = None

    @classmethod
    def from_array(
        cls,
        array: Any,
        encoding: str,
        *,
        width: int | None = None,
        frame_id: str = "",
        timestamp_ns: int = 0,
    ) -> Self:
        """Creates an image from an array, which is copied when it is sent; do not change it until then.

        Args:
            array: of shape (height, width, channels), or (height, width) for one channel, with the
                element type of the encoding. From numpy, or from any library whose arrays numpy
                can access (torch on the CPU, PIL images, the buffer protocol). It may be a slice
                of another array, or flipped.
            encoding: as in foxglove.RawImage. For an unknown encoding the array is u8 of
                shape (height, bytes per row), and `width` is the number of pixels per row.
            frame_id, timestamp_ns: as in `Image`.

        Raises BadValueError if array and encoding do not match; MissingNumpyError.
        """
        pixels = _plain.as_array(cls._layout, array)
        known = ENCODINGS.get(encoding)
        dtype, _, channels = known or ("u1", 1, 0)
        if known is None and (pixels.dtype != dtype or pixels.ndim != 2):
            raise cls._layout.bad(
                f"{_unknown(encoding)} A custom encoding needs an array of u8 with shape (height, bytes per "
                f"row), not {pixels.dtype} with shape {pixels.shape}"
            )
        if pixels.dtype != dtype:
            raise cls._layout.bad(
                f"the array has dtype {pixels.dtype}, but {encoding} has elements of "
                f"{_plain.numpy('Image').dtype(dtype)}: convert it with astype"
            )
        shape = pixels.shape
        wanted = (3,) if channels > 1 else (2, 3)
        if known and (pixels.ndim not in wanted or (pixels.ndim == 3 and shape[2] != channels)):
            raise cls._layout.bad(f"the array has shape {shape}, but {encoding} is {_shape_words(channels)}")
        if known is not None and width not in (None, shape[1]):
            raise cls._layout.bad(f"width is {width}, but the array has {shape[1]} columns")
        if pixels.ndim == 3 and channels == 1:
            pixels = pixels[:, :, 0]
        row = shape[1] * pixel_bytes(encoding) if known else shape[1]
        made = cls.__new__(cls)
        made._set(
            shape[1] if width is None else width, shape[0], row, encoding, frame_id, timestamp_ns
        )
        _plain.set_array(made, pixels)
        made._check(made._data_len())
        return made

    @classmethod
    def loan(
        cls,
        publisher: Publisher[Image],
        height: int,
        width: int,
        encoding: str,
        *,
        row_stride: int | None = None,
        frame_id: str = "",
        timestamp_ns: int = 0,
    ) -> _plain.MessageLoan[Image]:
        """An image to be filled in the memory that subscribers read, without copying.

        ``with Image.loan(pub, 480, 640, "rgb8") as image: camera.read_into(image.array)`` sends it
        at the end of the block. Its initial bytes are those of an earlier message; fields, such
        as `timestamp_ns`, may be set until the block ends.

        Raises BadValueError; errors of `Publisher.loan` when the block begins, and of
        `Publisher.send` when it ends.
        """
        if row_stride is None:
            if encoding not in ENCODINGS:
                raise cls._layout.bad(f"{_unknown(encoding)} A custom encoding needs a row_stride")
            row_stride = width * pixel_bytes(encoding)

        def make() -> Image:
            made = Image.__new__(cls)
            made._set(width, height, row_stride, encoding, frame_id, timestamp_ns)
            return made

        return _plain.MessageLoan(publisher, make, height * row_stride)

    @property
    def array(self) -> Array:
        """The pixels as an array: (height, width, channels), or (height, width) for one channel.

        For a received image it is a read-only view of the message, for a lent one a view to be filled;
        the memory stays valid as long as the array exists. For an unknown encoding it contains the
        rows as they are: u8 of shape (height, row_stride). Raises MissingNumpyError.
        """
        if self._array is not None:
            return self._array
        known = ENCODINGS.get(self.encoding)
        dtype, item, channels = known or ("u1", 1, 1)
        columns = self.width if known else self.row_stride
        shape, strides = [self.height, columns], [self.row_stride, item * channels]
        if channels > 1:
            shape.append(channels)
            strides.append(item)
        return _plain.view(self._layout, self._memory(), shape, dtype, strides)

    def to_foxglove(self) -> Any:
        """The image as a `foxglove.RawImage`, a copy."""
        from .foxglove import RawImage

        self._check(self._data_len())
        length = self.height * self.row_stride
        message = RawImage(
            frame_id=self.frame_id,
            width=self.width,
            height=self.height,
            encoding=self.encoding,
            step=self.row_stride,
            # The last row may be shorter than its stride.
            data=bytes(self.data[:length]).ljust(length, b"\0"),
        )
        _plain.stamp_to(self.timestamp_ns, message)
        return message

    @classmethod
    def from_foxglove(cls, message: Any) -> Self:
        """Creates an image from a `foxglove.RawImage`; raises BadValueError if its fields are inconsistent."""
        return cls(
            width=message.width,
            height=message.height,
            encoding=message.encoding,
            data=message.data,
            row_stride=message.step,
            frame_id=message.frame_id,
            timestamp_ns=_plain.stamp_of(cls._layout, message),
        )

    def _take(self, values: dict[str, Any]) -> None:
        self.width, self.height = values["width"], values["height"]
        self.row_stride = values["row_stride"]
        self.encoding = self._layout.text("encoding", values["encoding"])

    def _put(self) -> dict[str, Any]:
        return {
            "width": self.width,
            "height": self.height,
            "row_stride": self.row_stride,
            "encoding": self.encoding,
        }

    def _check(self, data_len: int) -> None:
        layout, width, height, stride = self._layout, self.width, self.height, self.row_stride
        _plain.check_u32(layout, width=width, height=height, row_stride=stride)
        known = self.encoding in ENCODINGS
        row = width * pixel_bytes(self.encoding) if known else stride
        if height * stride > DATA_LEN_MAX:
            raise layout.bad(
                f"height {height} times row_stride {stride} exceeds the {DATA_LEN_MAX} bytes that a message "
                "may have"
            )
        why = f"{width} pixels of {self.encoding or 'no encoding'}"
        _plain.check_rows(layout, height, row, stride, data_len, why)
        # Otherwise a header without data could require a row of a gigabyte elsewhere.
        if height and stride > data_len:
            raise layout.bad(
                f"row_stride is {stride}, and data_len is {data_len}: less than one row"
            )

    def __repr__(self) -> str:
        return (
            f"<rnet.msgs.Image: {self.width} x {self.height} {self.encoding}, "
            f"frame_id {self.frame_id!r}, timestamp_ns {self.timestamp_ns}>"
        )


def pixel_bytes(encoding: str) -> int:
    """Bytes of a pixel in an encoding that is known."""
    _, item, channels = ENCODINGS[encoding]
    return item * channels


def _unknown(encoding: str) -> str:
    close = hints.did_you_mean(encoding, ENCODINGS) or f"; known are {', '.join(ENCODINGS)}."
    return f"the encoding {encoding!r} is not known{close}"


def _shape_words(channels: int) -> str:
    return f"(height, width, {channels})" if channels > 1 else "(height, width)"
