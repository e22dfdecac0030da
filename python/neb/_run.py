"""Both stages, and the folder they leave."""

from __future__ import annotations

import html
import json
import tempfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from . import _arrays, _neb
from ._errors import NebValueError, without_files_in
from ._posterior import Posterior
from ._progress import Callback
from ._source import Source
from ._surrogate import Surrogate


#: Observations that the verdict in a notebook is made from.
_JUDGED = 2000


class Run:
    """A fitted surrogate and the source found through it: the folder of `neb fit`, both ways.

    A notebook shows the verdict of its report.

    Parameters
    ----------
    surrogate : Surrogate
    source : Source

    Examples
    --------
    >>> import neb, tempfile
    >>> problem = neb.simulators.TwoMoons()
    >>> surrogate = neb.Surrogate("mixture", epochs=1).fit(*problem.pairs(500))
    >>> source = neb.Source("affine", k=64, least_steps=10, epochs=1).fit(problem.observations(100)[1], surrogate)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     neb.Run(surrogate, source).save(folder + "/run")
    ...     again = neb.load(folder + "/run")
    >>> bool((again.source.sample(5) == source.sample(5)).all())
    True
    """

    def __init__(self, surrogate: Surrogate, source: Source) -> None:
        surrogate.fitted()
        source.fitted()
        self.surrogate = surrogate
        self.source = source
        self._html: str | None = None

    @property
    def posterior(self) -> Posterior:
        """What single observations say about their own x."""
        return Posterior(self.source, self.surrogate)

    @property
    def summary(self) -> dict[str, Any]:
        """What was tried and what was kept."""
        return self.source.summary

    @property
    def history(self) -> list[dict[str, Any]]:
        """Every epoch of every training."""
        return self.source.history

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """Writes the folder of the run, whole or not at all; `neb` reads it as its own.

        Parameters
        ----------
        folder : path
        force : bool
            Replace a run that is there.
        """
        target = Path(folder)
        files = self.source.run_files(target)
        _neb.save_run(target, force, self.surrogate.fitted(), self.source.fitted(), files)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Run:
        """Reads the folder of a run."""
        source = Source.load(folder)
        surrogate = Surrogate.load(folder)
        if (particles := source.particles) is not None:
            surrogate._x = particles[0]
        return cls(surrogate, source)

    def __repr__(self) -> str:
        return f"Run({self.surrogate!r}, {self.source!r})"

    def _repr_html_(self) -> str:
        """The top of the report: the verdict, from a part of the observations where there are many."""
        if self._html is None:
            if not self.source.summary:
                return f"<pre>{html.escape(repr(self))}</pre>"
            with tempfile.TemporaryDirectory() as work:
                folder = Path(work, "run")
                self.save(folder)
                tables = _Tables(work, self.surrogate)
                self._html = _neb.report_top(folder, tables.file("observations", y=self.source.observations), _JUDGED)
        return self._html


class _Tables:
    """Files of arguments, with the columns of a surrogate."""

    def __init__(self, folder: str, surrogate: Surrogate) -> None:
        self._folder = folder
        self._names = {"x": surrogate.x_names, "y": surrogate.y_names}

    def file(self, argument: str, **given: Any) -> Path | None:
        """The file of an argument; none where it was not given."""
        absent = [role for role, values in given.items() if values is None]
        if len(absent) == len(given):
            return None
        if absent:
            raise NebValueError(f"{argument} have no {absent[0]}", f"give both: {argument}=(x, y)")
        arrays: dict[str, Any] = {}
        for role, values in given.items():
            called = argument if len(given) == 1 else f"{role} of the {argument}"
            arrays[role] = _arrays.checked(called, values, self._names[role])
            arrays[f"{role}_columns"] = np.array(self._names[role])
        if len(given) == 2:
            _arrays.same_rows(arrays["x"], arrays["y"])
        path = Path(self._folder, f"{argument}.npz")
        np.savez(path, **arrays)
        return path


def fit(
    x: Any,
    y: Any,
    observations: Any,
    *,
    surrogate: Surrogate | None = None,
    source: Source | None = None,
    weights: Any = None,
    seed: int = 1,
    output: str | PathLike[str] | None = None,
    force: bool = False,
    progress: bool = True,
    callback: Callback | None = None,
) -> Run:
    """Both stages, as `neb fit` does them: from simulated pairs and observations to a run.

    Parameters
    ----------
    x, y : array_like
        Simulated pairs, row by row.
    observations : array_like
        Observed y.
    surrogate, source : Surrogate, Source, optional
        Not yet fitted, with settings of your own; by default those of `neb fit`.
    weights : array_like, optional
        One weight per observation.
    seed : int
        Of the defaults; models of your own have theirs.
    output : path, optional
        The folder of the run to write. After Ctrl-C the same call goes on with the source; the surrogate is learned anew.
    force : bool
        Replace a run that is there.
    progress, callback
        As in `Surrogate.fit`.

    Examples
    --------
    >>> import neb
    >>> problem = neb.simulators.TwoMoons()
    >>> truth, y = problem.observations(100, seed=2)
    >>> run = neb.fit(
    ...     *problem.pairs(500),
    ...     y,
    ...     surrogate=neb.Surrogate("mixture", epochs=1),
    ...     source=neb.Source("affine", k=64, least_steps=10, epochs=1),
    ... )
    >>> run.posterior.sample(y[:2], 10).x.shape
    (2, 10, 2)
    """
    x, x_names = _arrays.named("x", x, None)
    y, y_names = _arrays.named("y", y, None)
    _arrays.same_rows(x, y)
    observations = _arrays.checked("observations", observations, y_names, "y has")
    weights = None if weights is None else _arrays.column("weights", weights, len(observations))
    surrogate = surrogate or Surrogate("noisy-mixture", seed=seed)
    source = source or Source(seed=seed)
    if output is not None:
        _neb.check_run_target(Path(output), force)
    surrogate.fit(x, y, x_names=x_names, y_names=y_names, progress=progress, callback=callback)
    source.fit(
        observations,
        surrogate,
        weights=weights,
        output=output,
        force=force,
        progress=progress,
        callback=callback,
    )
    return Run(surrogate, source)


def load(folder: str | PathLike[str]) -> Run:
    """Reads the folder of a run, whoever wrote it: Python or the program. `Run` has an example."""
    return Run.load(folder)


def report(
    run: Run | str | PathLike[str],
    output: str | PathLike[str] | None = None,
    *,
    observations: Any = None,
    pairs: tuple[Any, Any] | None = None,
    truth: Any = None,
    force: bool = False,
) -> dict[str, Any]:
    """The page of a run, with verdict and figures, as `neb report` writes it.

    Parameters
    ----------
    run : Run or path
    output : path
        The page to write (``.html``); in the folder of a run by default, needed for a `Run`.
    observations : array_like, optional
        y, for the figures that compare with them; those of the fit where they are known. Columns of frames, here and below, are
        found by name.
    pairs : (x, y), optional
        Simulated pairs.
    truth : array_like, optional
        Draws of the true source, where it is known.
    force : bool
        Replace a page that is there.

    Returns
    -------
    dict
        Where the page is (``report``), its ``verdict``, and the AUCs behind it.

    Examples
    --------
    >>> import neb, tempfile
    >>> problem = neb.simulators.TwoMoons()
    >>> surrogate = neb.Surrogate("mixture", epochs=1).fit(*problem.pairs(500))
    >>> source = neb.Source("affine", k=64, least_steps=10, epochs=1).fit(problem.observations(100)[1], surrogate)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = neb.report(neb.Run(surrogate, source), folder + "/report.html")
    >>> sorted(written["verdict"])  # doctest: +ELLIPSIS
    [...'headline'...]
    """
    with tempfile.TemporaryDirectory() as work, without_files_in(work):
        folder = Path(work, "run")
        if isinstance(run, Run):
            if output is None:
                raise NebValueError("report() of a Run needs the page to write", "give output, such as report.html")
            run.save(folder)
            surrogate = run.surrogate
            observations = run.source.observations if observations is None else observations
        else:
            folder = Path(run)
            surrogate = Surrogate.load(folder)
        if pairs is not None and len(pairs) != 2:
            raise NebValueError(f"pairs are {len(pairs)} tables", "give two: pairs=(x, y)")
        x, y = pairs if pairs is not None else (None, None)
        tables = _Tables(work, surrogate)
        written = _neb.write_report(
            folder,
            tables.file("truth", x=truth),
            tables.file("observations", y=observations),
            tables.file("pairs", x=x, y=y),
            output,
            force,
        )
    result: dict[str, Any] = json.loads(written)
    return result
