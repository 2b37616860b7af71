"""Values of Python as TOML, for experiments that are built in code."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Union

from trunkline._errors import ExperimentError

Value = Union[str, int, float, bool, "list[Any]", "tuple[Any, ...]", "Mapping[str, Any]"]
"""A value of an experiment file."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key(name: str) -> str:
    """A key, with quotation marks where TOML needs them."""
    return name if _BARE.fullmatch(name) else text(name)


def text(value: str) -> str:
    """A string. TOML has the escapes of JSON, if nothing else than ASCII control characters is escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def inline(value: Value) -> str:
    """A value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    # Not `repr`: numpy's numbers and enumerations are written with their types by it.
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key(name)} = {inline(of)}" for name, of in value.items()) + " }" if value else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(inline(of) for of in value) + "]"
    number = getattr(value, "item", None)
    if callable(number):
        # A number of numpy.
        return inline(number())
    raise TypeError(f"an experiment cannot have a value of the type {type(value).__name__}: {value!r}")


def setting(value: Value) -> str:
    """A value as ``--set`` takes it: strings without quotation marks."""
    return value if isinstance(value, str) else inline(value)


def document(tables: Mapping[str, Any]) -> str:
    """A whole file: plain keys first, then a table for each name of ``link``, ``flow`` and the like."""
    plain = [f"{key(name)} = {inline(value)}" for name, value in tables.items() if not isinstance(value, Mapping)]
    lines = plain
    for section, table in tables.items():
        if not isinstance(table, Mapping):
            continue
        nested = section in ("link", "flow", "bundle")
        for name, value in {section: table}.items() if not nested else table.items():
            if not isinstance(value, Mapping):
                where = key(section) + (f".{key(name)}" if nested else "")
                raise ExperimentError(f"`{where}` must be a table, not {value!r}")
            head = f"[{key(section)}.{key(name)}]" if nested else f"[{key(section)}]"
            lines += ["", head] + [f"{key(of)} = {inline(entry)}" for of, entry in value.items()]
    return "\n".join(lines) + "\n"
