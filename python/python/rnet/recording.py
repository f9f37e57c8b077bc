"""Recordings: :func:`record` writes an MCAP file, :func:`open_recording` reads one."""

from __future__ import annotations

from .recorder import Recording, RecordingReport, record
from .recording_file import RecordedMessage, RecordedTopic, RecordingFile, Series, open_recording

__all__ = [
    "RecordedMessage",
    "RecordedTopic",
    "Recording",
    "RecordingFile",
    "RecordingReport",
    "Series",
    "open_recording",
    "record",
]
