"""What goes wrong, in the words of the program."""

from __future__ import annotations

import warnings
from collections.abc import Iterable


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
    """Warns whoever called the function that calls this one."""
    for text in texts:
        warnings.warn(text, NebWarning, stacklevel=3)


def not_fitted(what: str) -> NebError:
    """The error for a model that is used before it is fitted."""
    return NebValueError(f"this {what} is not fitted", "call fit() first, or load() one")
