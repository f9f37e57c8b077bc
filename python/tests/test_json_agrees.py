"""Python's protobuf runtime writes the JSON forms of the table that rnet-schema is tested with."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from google.protobuf import json_format, symbol_database

TABLE = Path(__file__).parents[2] / "crates/rnet-schema/tests/data/well_known.json"

for _name in ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"):
    importlib.import_module(f"google.protobuf.{_name}_pb2")

ROWS = json.loads(TABLE.read_text())


def test_the_table_has_rows() -> None:
    assert len(ROWS) > 150


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['type']}-{row['bytes'][:40]}")
def test_the_runtime_writes_what_the_table_says(row) -> None:
    pool = symbol_database.Default().pool
    from google.protobuf import message_factory

    descriptor = pool.FindMessageTypeByName(f"google.protobuf.{row['type']}")
    message = message_factory.GetMessageClass(descriptor).FromString(bytes.fromhex(row["bytes"]))
    if "error" in row:
        with pytest.raises(Exception):  # noqa: B017, of many kinds
            json_format.MessageToDict(message)
    else:
        made = json_format.MessageToDict(message)
        # Compared as text, which distinguishes -0.0 from 0.0.
        assert json.dumps(made, sort_keys=True) == json.dumps(row["json"], sort_keys=True)
