"""Single numbers as the extension takes them: Python's and numpy's."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from . import _neb
from ._errors import NebValueError

#: The greatest that the extension can be given.
_MOST = 2**64 - 1


def whole(name: str, value: Any, least: int = 0) -> int:
    """A count or a seed."""
    try:
        number = operator.index(value)
    except TypeError:
        raise NebValueError(f"`{name}` is {value!r}", "give a whole number") from None
    if not least <= number <= _MOST:
        raise NebValueError(f"`{name}` is {number}", f"give a whole number from {least} to {_MOST}")
    return number


def plain(name: str, value: Any) -> Any:
    """A setting as JSON has it."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (list, tuple, range)):
        return [plain(name, part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise NebValueError(f"`{name}` is {value}", "give a finite number")
    return value


def set_threads(threads: int) -> None:
    """Sets the number of threads, 0 for one per core; only before the first computation."""
    _neb.set_threads(whole("threads", threads))
