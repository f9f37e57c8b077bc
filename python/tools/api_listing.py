"""Writes the public Python API, name by name with signatures: docs/api/rnet.pyi.txt.

    python python/tools/api_listing.py

It reads the stubs of what is compiled, which ``test_typing.py`` compares with the module, and the sources of
the rest. ``python/tests/test_api.py`` fails when the listing is out of date.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LISTING = ROOT / "docs" / "api" / "rnet.pyi.txt"
MODULES = [
    "rnet",
    "rnet.errors",
    "rnet.events",
    "rnet.launching",
    "rnet.log",
    "rnet.msgs",
    "rnet.msgs.foxglove",
    "rnet.recording",
    "rnet.state",
    "rnet.types",
]
HEAD = "# The public Python API of robot-net. Written by python/tools/api_listing.py; do not edit.\n"


@cache
def source(module: str) -> tuple[ast.Module, bool]:
    """The stub or the source of a module, and whether it is a package."""
    path = ROOT / "python" / "python" / Path(*module.split("."))
    tried = [path / "__init__.pyi", path / "__init__.py", path.with_suffix(".pyi"), path.with_suffix(".py")]
    found = next(file for file in tried if file.exists())
    return ast.parse(found.read_text()), found.stem == "__init__"


def exported(module: str) -> list[str]:
    """``__all__``, or all classes and functions without an underscore."""
    for node in source(module)[0].body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return sorted(ast.literal_eval(node.value))
    return sorted({n.name for n in source(module)[0].body if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name[0] != "_"})


def statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements, with those below ``if``."""
    return [inner for node in body for inner in (statements(node.body) if isinstance(node, ast.If) else [node])]


def definitions(module: str, name: str) -> list[ast.stmt]:
    """What defines a name: several functions if it is overloaded, nothing if it is a module."""
    tree, is_package = source(module)
    found: list[ast.stmt] = []
    for node in statements(tree.body):
        if isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    home = module.split(".")[: len(module.split(".")) - node.level + is_package]
                    if node.module is None:  # `from . import x`: a module, or a name of the package
                        return []
                    return definitions(".".join([*home, node.module]), alias.name)
        elif name in names_of(node):
            found.append(node)
    return found


def names_of(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def lines_of(node: ast.stmt, indent: str = "") -> list[str]:
    """A definition without its body and its private members."""
    if isinstance(node, ast.ClassDef):
        head = ast.unparse(ast.ClassDef(**{**vars(node), "body": [ast.Pass()]})).removesuffix("\n    pass")
        lines = [indent + line for line in head.splitlines()]
        for member in statements(node.body):
            if any(name[0] != "_" or name[:2] == name[-2:] == "__" for name in names_of(member)):
                lines += lines_of(member, indent + "    ")
        return lines
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        head = ast.unparse(type(node)(**{**vars(node), "body": [ast.Pass()]}))
        return [indent + line for line in head.removesuffix(":\n    pass").splitlines()]
    return [indent + line for line in ast.unparse(node).splitlines()]


def listing() -> str:
    """The text of the listing."""
    parts = [HEAD]
    for module in MODULES:
        parts.append(f"\n# {module}\n")
        for name in exported(module):
            found = definitions(module, name)
            lines = [line for node in found for line in lines_of(node)] or [f"module {name}"]
            parts += [line + "\n" for line in lines]
    return "".join(parts)


if __name__ == "__main__":
    LISTING.write_text(listing())
