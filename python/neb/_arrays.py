"""Anything with numbers to contiguous float32 tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _neb
from ._errors import NebValueError

Array = npt.NDArray[np.float32]


def names_of(values: Any) -> list[str] | None:
    """The names of a frame's columns."""
    columns = getattr(values, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def default_names(role: str, columns: int) -> list[str]:
    """The names that the program gives to the columns of an array; a single column has the name of one without columns."""
    return [role] if columns == 1 else [f"{role}{number}" for number in range(1, columns + 1)]


def table(role: str, values: Any, names: Sequence[str] | None = None) -> Array:
    """`values` as a finite table of float32, one row per event; nothing is copied that is one already.

    float64 is rounded to the nearest float32. One dimension is a single column.
    """
    given = _numbers(role, values)
    if given.ndim == 1:
        given = given[:, np.newaxis]
    if given.ndim != 2 or given.shape[1] == 0:
        raise NebValueError(
            f"array `{role}` has shape {given.shape}", "give a table: one row per event, one column per quantity"
        )
    if given.shape[0] == 0:
        raise NebValueError(f"array `{role}` has no rows", "give at least one")
    with np.errstate(over="ignore", invalid="ignore"):
        single: Array = np.ascontiguousarray(given, dtype=np.float32)
        # Finite only if every value is; that it may overflow by itself is looked into below.
        total = single.sum()
    if not np.isfinite(total):
        columns = single.shape[1]
        known = names is not None and len(names) == columns
        words = list(names) if names is not None and known else default_names(role, columns)
        _neb.check_values(role, np.ascontiguousarray(given, dtype=np.float64), words)
    return single


def _numbers(role: str, values: Any) -> npt.NDArray[Any]:
    try:
        given = np.asarray(values)
        if given.dtype.kind == "O":
            given = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise NebValueError(f"array `{role}` is no table of numbers: {error}", "give numbers") from None
    if given.dtype.kind not in "fiub":
        raise NebValueError(f"array `{role}` holds values of type {given.dtype}", "give numbers")
    return given


def column(role: str, values: Any, rows: int) -> Array:
    """One finite value per row."""
    single = table(role, values)
    if single.size != rows:
        raise NebValueError(f"there are {single.size} {role}s for {rows} rows", f"give one {role} per row")
    return single.reshape(-1)


def checked(role: str, values: Any, expected: Sequence[str]) -> Array:
    """A table with the columns a model was fitted with; the columns of a frame are found by name."""
    names = names_of(values)
    if names is not None and names != list(expected) and set(expected) <= set(names):
        values = values[list(expected)]
    single = table(role, values, expected)
    if single.shape[1] != len(expected):
        listed = "`, `".join(expected)
        raise NebValueError(
            f"{role} has {single.shape[1]} columns; the model was fitted with {len(expected)} (`{listed}`)",
            "give these columns, in this order",
        )
    return single


def named(role: str, values: Any, names: Sequence[str] | None) -> tuple[Array, list[str]]:
    """A table and the names of its columns: those given, else a frame's, else `x1`, `x2`, ..."""
    found = list(names) if names is not None else names_of(values)
    single = table(role, values, found)
    columns = single.shape[1]
    if found is None:
        found = default_names(role, columns)
    if len(found) != columns or len(set(found)) != columns:
        raise NebValueError(
            f"{role} has {columns} columns and the names {found}", "give as many names, all of them different"
        )
    return single, found


def same_rows(x: Array, y: Array) -> None:
    """Refuses tables of different lengths."""
    if len(x) != len(y):
        raise NebValueError(f"x has {len(x)} rows, y has {len(y)}", "give one row of y for each row of x")
