"""The listing docs/api/rnet.pyi.txt matches the public API: each API change must update it."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from pathlib import Path

import pytest
import rnet

TOOL = Path(__file__).parents[1] / "tools" / "api_listing.py"
spec = importlib.util.spec_from_file_location("api_listing", TOOL)
assert spec is not None and spec.loader is not None
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def test_the_listing_is_up_to_date():
    before, now = tool.LISTING.read_text(), tool.listing()
    changes = difflib.unified_diff(before.splitlines(), now.splitlines(), "listed", "now", lineterm="", n=2)
    assert before == now, "\n".join([
        *changes, "", "If this change of the public API is intended, run python python/tools/api_listing.py"
    ])


def test_what_is_listed_can_be_imported():
    for name in tool.MODULES:
        module = importlib.import_module(name)
        listed = tool.exported(name)
        assert listed
        assert not [one for one in listed if not hasattr(module, one)], name
        if hasattr(module, "__all__"):
            assert sorted(module.__all__) == listed, name


def test_every_public_name_of_the_package_is_listed():
    package = sys.modules["rnet"]
    ours = {name for name in vars(package) if name[0] != "_" and getattr(vars(package)[name], "__module__", "").startswith("rnet")}
    assert ours <= set(tool.exported("rnet")), sorted(ours - set(tool.exported("rnet")))


def test_the_package_has_few_names_and_each_other_one_has_a_module():
    assert len(rnet.__all__) <= 60
    places = [f"{module}.{name}" for module in ("errors", "events", "state") for name in getattr(rnet, module).__all__]
    assert len(places) == len({place.split(".")[1] for place in places})


@pytest.mark.parametrize(
    "name, instead",
    [
        ("Tick", "rnet.events.Tick"),
        ("SchemaError", "rnet.errors.SchemaError"),
        ("DELETE", "rnet.state.DELETE"),
        ("Series", "rnet.recording.Series"),
        ("compare_types", "rnet.types.compare_types"),
        ("load", "rnet.load_proto"),
    ],
)
def test_a_name_of_a_module_is_not_a_name_of_the_package(name, instead):
    with pytest.raises(AttributeError, match=f"module 'rnet' has no attribute '{name}': use {instead}$"):
        getattr(rnet, name)
    with pytest.raises(ImportError, match=f"use {instead}$"):
        exec(f"from rnet import {name}")


def test_a_name_that_does_not_exist():
    with pytest.raises(AttributeError, match="module 'rnet' has no attribute 'Nothing'$"):
        rnet.Nothing
