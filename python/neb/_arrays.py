"""Anything with numbers to contiguous float32 tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _neb
from ._errors import NebValueError

Array = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]


def _labels_of(values: Any) -> list[Any] | None:
    """What a frame calls its columns."""
    # The `columns` of pyarrow are their values.
    labels = getattr(values, "column_names", None)
    labels = getattr(values, "columns", None) if labels is None else labels
    return None if labels is None else list(labels)


def names_of(values: Any) -> list[str] | None:
    """The names of a frame's columns."""
    labels = _labels_of(values)
    return None if labels is None else [str(label) for label in labels]


def _select(values: Any, names: Sequence[str]) -> Any:
    """These columns of a frame, in this order."""
    by_name = {str(label): label for label in _labels_of(values) or []}
    labels = [by_name[name] for name in names]
    return values.select(labels) if hasattr(values, "column_names") else values[labels]


def default_names(role: str, columns: int) -> list[str]:
    """The names that the program gives to the columns of an array; a single column has the name of one without columns."""
    return [role] if columns == 1 else [f"{role}{number}" for number in range(1, columns + 1)]


def untyped(role: str, values: Any) -> npt.NDArray[Any]:
    """`values` as an array of whatever they are, with its mask where it has one; one dimension is a single column."""
    try:
        given: npt.NDArray[Any] = np.asanyarray(values)
    except (TypeError, ValueError) as error:
        raise NebValueError(f"array `{role}` is no table of numbers: {error}", "give numbers") from None
    return given[:, np.newaxis] if given.ndim == 1 else given


def shaped(role: str, values: Any, names: Sequence[str] | None = None) -> npt.NDArray[Any]:
    """`values` as a table of numbers, one row per event; one dimension is a single column."""
    given = untyped(role, values)
    if given.ndim != 2 or given.shape[1] == 0:
        raise NebValueError(
            f"array `{role}` has shape {given.shape}", "give a table: one row per event, one column per quantity"
        )
    if given.shape[0] == 0:
        raise NebValueError(f"array `{role}` has no rows", "give at least one")
    if np.ma.is_masked(given):
        place = np.argwhere(np.ma.getmaskarray(given))[0]
        raise NebValueError(
            f"array `{role}` holds masked values; the first is at {_place(role, place, given, names)}",
            "remove or fill these rows; neb never drops data by itself",
        )
    given = np.asarray(given)
    if given.dtype.kind == "O":
        given = _numbers(role, given, names)
    if given.dtype.kind not in "fiub":
        raise NebValueError(f"array `{role}` holds values of type {given.dtype}", "give numbers")
    return given


def _numbers(role: str, objects: npt.NDArray[Any], names: Sequence[str] | None) -> Floats:
    """A table of objects as numbers; text is none, whatever it says."""
    numbers = np.empty(objects.shape)
    for place, value in np.ndenumerate(objects):
        try:
            if isinstance(value, (str, bytes)):
                raise TypeError
            numbers[place] = value
        except (TypeError, ValueError, OverflowError):
            where = _place(role, place, objects, names)
            raise NebValueError(f"array `{role}` holds {value!r} at {where}, which is no number", "give numbers") from None
    return numbers


def _words(role: str, given: npt.NDArray[Any], names: Sequence[str] | None) -> list[str]:
    """Names for the columns of a table: those known, if they fit."""
    columns = given.shape[1]
    return list(names) if names is not None and len(names) == columns else default_names(role, columns)


def _place(role: str, place: Any, given: npt.NDArray[Any], names: Sequence[str] | None) -> str:
    row, column = place
    return f"row {row}, column {column} (`{_words(role, given, names)[column]}`)"


def table(role: str, values: Any, names: Sequence[str] | None = None) -> Array:
    """`values` as a finite table of float32, one row per event; nothing is copied that is one already.

    float64 is rounded to the nearest float32. One dimension is a single column.
    """
    given = shaped(role, values, names)
    with np.errstate(over="ignore", invalid="ignore"):
        single: Array = np.ascontiguousarray(given, dtype=np.float32)
        # Finite only if every value is; that it may overflow by itself is looked into below.
        total = single.sum()
    if not np.isfinite(total):
        _neb.check_values(role, np.ascontiguousarray(given, dtype=np.float64), _words(role, given, names))
    return single


def column(role: str, values: Any, rows: int) -> Array:
    """One finite value per row."""
    single = table(role, values)
    if single.shape[1] != 1:
        raise NebValueError(f"array `{role}` has shape {single.shape} for {rows} rows", "give one value per row")
    if len(single) != rows:
        raise NebValueError(f"array `{role}` has {len(single)} values for {rows} rows", "give one value per row")
    return single.reshape(-1)


def checked(role: str, values: Any, expected: Sequence[str], whose: str = "the model was fitted with") -> Array:
    """A table with the `expected` columns, found by name in a frame; an error says `whose` they are."""
    names = names_of(values) or []
    listed = f"{len(expected)} (`{'`, `'.join(expected)}`)"
    missing = [name for name in expected if name not in names]
    if names != list(expected) and not missing:
        values = _select(values, expected)
    elif 0 < len(missing) < len(expected):
        raise NebValueError(
            f"{role} has no column `{missing[0]}`; {whose} {listed}", "give these columns, or an array without names"
        )
    single = table(role, values, expected)
    if single.shape[1] != len(expected):
        raise NebValueError(
            f"{role} has {single.shape[1]} columns; {whose} {listed}", "give these columns, in this order"
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
