"""What goes wrong, in the words of the program."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class NebError(Exception):
    """A call that failed: what was found, and in `hint` what to do next."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class NebValueError(NebError, ValueError):
    """Data or settings that cannot be used."""


class NebWarning(UserWarning):
    """A result to be looked at before it is used."""


def warn(texts: Iterable[str]) -> None:
    """Warns at the line outside the package that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, NebWarning, stacklevel=level)


@contextmanager
def without_files_in(work: str) -> Iterator[None]:
    """Errors inside name an argument where the program names the file of it in the folder `work`, which is gone after the call."""
    try:
        yield
    except NebError as error:
        folder = re.escape(work)
        said = re.sub(folder + r"[/\\](\w+)\.npz", r"\1", error.message)
        said, kept = re.subn(f"; what was learned is kept in {folder}.*", "", said)
        hint = error.hint.replace("; --force starts anew", "") if kept and error.hint else error.hint
        raise type(error)(said, hint) from None


def not_fitted(what: str) -> NebError:
    """The error for a model that is used before it is fitted."""
    return NebValueError(f"this {what} is not fitted", "call fit() first, or load() one")
