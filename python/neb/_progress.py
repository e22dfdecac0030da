"""How far a training is: tqdm in a notebook, one line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol


class Progress(NamedTuple):
    """What a callback is told, about ten times a second and when a training begins or ends."""

    label: str
    """What is under way: the training of a candidate or rung, or ``posteriors``."""
    step: int
    """Steps made, or observations done."""
    steps: int
    """Steps there will be at most, or observations."""
    epoch: int
    """Epochs finished."""
    train: float | None
    """Mean training loss of the last of them."""
    held_out: float | None
    """Mean held-out loss after it."""


Callback = Callable[[Progress], object]


class _Bar(Protocol):
    def show(self, progress: Progress) -> None: ...

    def close(self) -> None: ...


class _Line:
    def __init__(self) -> None:
        self._width = 0

    def show(self, progress: Progress) -> None:
        done = int(24 * progress.step / max(progress.steps, 1))
        text = f"{progress.label} [{'#' * done}{' ' * (24 - done)}] {progress.step} of {progress.steps}"
        if progress.held_out is not None:
            text += f", held-out loss {progress.held_out:.3f}"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


class _Tqdm:
    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None
        self._label = ""

    def show(self, progress: Progress) -> None:
        if self._bar is None or progress.label != self._label:
            self.close()
            self._bar = self._tqdm(total=progress.steps, desc=progress.label, leave=False)
            self._label = progress.label
        self._bar.n = progress.step
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return False
    shell = ipython.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _bar() -> _Bar | None:
    if _in_notebook():
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return _Line()
        return _Tqdm(tqdm)
    return _Line() if sys.stderr.isatty() else None


class Watch:
    """Feeds bar and callback; to be used with `with`, which clears the bar."""

    def __init__(self, progress: bool, callback: Callback | None) -> None:
        self._shown = _bar() if progress else None
        self._callback = callback

    def __enter__(self) -> Callable[..., None] | None:
        return None if self._shown is None and self._callback is None else self._tell

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown.close()

    def _tell(self, label: str, step: int, steps: int, last: tuple[int, float, float] | None) -> None:
        epoch, train, held_out = last or (0, None, None)
        told = Progress(label, step, steps, epoch, train, held_out)
        if self._shown is not None:
            self._shown.show(told)
        if self._callback is not None:
            self._callback(told)
