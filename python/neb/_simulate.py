"""Pairs from a simulator that is a Python function."""

from __future__ import annotations

import inspect
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _arrays
from ._arrays import Array
from ._errors import NebValueError

#: Rows that share one generator: what is drawn does not depend on the number of workers.
_ROWS = 1024

_Job = tuple[Array, np.random.SeedSequence]
_simulator: Callable[..., Any] | None = None


def _work(job: _Job) -> Array:
    assert _simulator is not None
    x, seed = job
    rng = np.random.default_rng(seed)
    takes_rng = len(inspect.signature(_simulator).parameters) > 1
    y = _arrays.table("y", _simulator(x, rng) if takes_rng else _simulator(x))
    if len(y) != len(x):
        raise NebValueError(
            f"the simulator gave {len(y)} rows of y for {len(x)} rows of x", "return one row for each row of x"
        )
    return y


def simulate(
    fn: Callable[..., Any],
    proposal: Any,
    n: int | None = None,
    *,
    workers: int = 1,
    seed: int = 1,
) -> tuple[Array, Array]:
    """Pairs (x, y) from your own simulator.

    Parameters
    ----------
    fn : callable
        ``fn(x, rng)`` or ``fn(x)`` with a table of x: a table with one row of y for each.
    proposal : array_like or callable
        x itself, or ``proposal(n, rng)`` that draws it. It must cover every plausible x.
    n : int, optional
        Pairs; needed where the proposal is a function.
    workers : int
        Processes. On Linux they are forked, so that any function will do; elsewhere it must be importable.
    seed : int
        Same seed, same pairs, whatever the number of workers.

    Examples
    --------
    >>> import neb
    >>> def smear(x, rng):
    ...     return x + rng.normal(size=x.shape)
    >>> x, y = neb.simulate(smear, lambda n, rng: rng.uniform(-1, 1, (n, 2)), 100)
    >>> y.shape
    (100, 2)
    """
    global _simulator
    root = np.random.SeedSequence(seed)
    if callable(proposal):
        if n is None:
            raise NebValueError("how many pairs are wanted?", "say it: simulate(fn, proposal, 15000)")
        drawn = proposal(n, np.random.default_rng(root.spawn(1)[0]))
    else:
        root.spawn(1)
        drawn = np.asarray(proposal)[:n]
    x = _arrays.table("x", drawn)
    if n is not None and len(x) != n:
        raise NebValueError(f"the proposal gave {len(x)} rows; {n} were asked for", "give as many")
    chunks = [x[start : start + _ROWS] for start in range(0, len(x), _ROWS)]
    jobs: Iterator[_Job] = zip(chunks, root.spawn(len(chunks)))
    _simulator = fn
    try:
        if workers <= 1:
            parts = [_work(job) for job in jobs]
        else:
            context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
            with warnings.catch_warnings():
                # Python 3.12 and later fear for the threads of a forked process; ours are started anew.
                warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
                pool = context.Pool(workers, initializer=_start, initargs=(fn,))
            with pool:
                parts = pool.map(_work, list(jobs))
    finally:
        _simulator = None
    return x, np.concatenate(parts)


def _start(fn: Callable[..., Any]) -> None:
    global _simulator
    _simulator = fn
