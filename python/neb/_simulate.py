"""Pairs from a simulator that is a Python function."""

from __future__ import annotations

import inspect
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arrays
from ._arrays import Array
from ._errors import NebValueError
from ._numbers import whole

#: Rows that share one generator: what is drawn does not depend on the number of workers.
_ROWS = 1024

_Job = tuple[Array, np.random.SeedSequence]

#: The simulator of a worker's process, which is too much to be sent with every job; None elsewhere.
_of_worker: Callable[..., Any] | None = None


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
        ``fn(x, rng)`` or ``fn(x)`` with a table of x: a table with one row of y for each. A second parameter that has a default is
        left alone unless it is called ``rng``.
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
    n = None if n is None else whole("n", n, 1)
    root = np.random.SeedSequence(whole("seed", seed))
    of_proposal = np.random.default_rng(root.spawn(1)[0])
    if callable(proposal):
        if n is None:
            raise NebValueError("how many pairs are wanted?", "say it: simulate(fn, proposal, 15000)")
        x = _arrays.table("x", proposal(n, of_proposal))
    else:
        x = _arrays.table("x", proposal)[:n]
    if n is not None and len(x) != n:
        raise NebValueError(f"the proposal gave {len(x)} rows; {n} were asked for", "give as many")
    chunks = [x[start : start + _ROWS] for start in range(0, len(x), _ROWS)]
    jobs: Iterator[_Job] = zip(chunks, root.spawn(len(chunks)))
    if workers <= 1:
        parts = [_simulated(fn, job) for job in jobs]
    else:
        context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
        with warnings.catch_warnings():
            # Python 3.12 and later fear for the threads of a forked process; ours are started anew.
            warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
            pool = context.Pool(workers, initializer=_start, initargs=(fn,))
        with pool:
            parts = pool.map(_work, list(jobs))
    for part in parts:
        if part.shape[1] != parts[0].shape[1]:
            raise NebValueError(
                f"the simulator gave {parts[0].shape[1]} columns of y, then {part.shape[1]}", "return as many every time"
            )
    # Here, where the number of a row is the caller's.
    return x, _arrays.table("y", np.concatenate(parts))


def _simulated(fn: Callable[..., Any], job: _Job) -> npt.NDArray[Any]:
    """y of some rows of x."""
    x, seed = job
    y = _arrays.shaped("y", _with_generator(fn, x, np.random.default_rng(seed)))
    if len(y) != len(x):
        raise NebValueError(
            f"the simulator gave {len(y)} rows of y for {len(x)} rows of x", "return one row for each row of x"
        )
    return y


def _with_generator(fn: Callable[..., Any], x: Array, rng: np.random.Generator) -> Any:
    """Calls `fn` with the generator if it asks for one."""
    try:
        parameters = inspect.signature(fn).parameters
    except ValueError:
        # Some that are written in C do not say.
        return fn(x)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [parameter for parameter in parameters.values() if parameter.kind in kinds]
    if len(positional) > 1 and (positional[1].name == "rng" or positional[1].default is inspect.Parameter.empty):
        return fn(x, rng)
    # After an argument that a `functools.partial` binds by name, all others go by name.
    by_name = parameters.get("rng")
    if by_name is None or by_name.kind is not inspect.Parameter.KEYWORD_ONLY:
        return fn(x)
    # A generator of the caller's own that is bound already stays.
    return fn(x, rng=rng) if by_name.default in (None, inspect.Parameter.empty) else fn(x)


def _start(fn: Callable[..., Any]) -> None:
    global _of_worker
    _of_worker = fn


def _work(job: _Job) -> npt.NDArray[Any]:
    assert _of_worker is not None
    return _simulated(_of_worker, job)
