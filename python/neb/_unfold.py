"""Data corrected for a detector."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arrays, _neb
from ._arrays import Array, Floats
from ._errors import NebValueError, warn, without_files_in
from ._numbers import whole
from ._progress import Callback, Watch
from ._source import Source
from ._surrogate import Surrogate

#: Bins of a column: their number and range, or all edges.
Bins = tuple[int, float, float] | Sequence[float] | npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Spectrum:
    """One column of x in bins: the unfolded spectrum, and what it is compared with, in events."""

    name: str
    """The column."""
    edges: Floats
    """Edges of the bins."""
    values: dict[str, Floats]
    """The spectra: ``unfolded`` (the weighted simulation), ``smooth`` (the smooth source), ``simulation`` (scaled to as many events),
    and where y has this column too ``ibu`` (iterative Bayesian unfolding) and ``data`` (as observed)."""
    errors: dict[str, dict[str, Floats]]
    """Errors of each bin by spectrum and origin (``data``, ``simulation``, ``training``, ``simulation-and-training``)."""
    covariances: dict[str, dict[str, Floats]]
    """Covariances, bins x bins, by spectrum and origin; replicas of the simulation have the training's randomness too."""

    def covariance(self, of: str = "unfolded") -> Floats:
        """The covariance of a spectrum from all origins; zero where nothing was repeated."""
        if of not in self.values:
            raise NebValueError(f"there is no spectrum `{of}` of `{self.name}`", f"choose one of {', '.join(self.values)}")
        parts = dict(self.covariances.get(of, {}))
        if "simulation-and-training" in parts:
            parts.pop("training", None)
        bins = len(self.edges) - 1
        total: Floats = np.zeros((bins, bins)) + sum(parts.values())
        return total

    def error(self, of: str = "unfolded") -> Floats:
        """The error of each bin from all origins."""
        error: Floats = np.sqrt(np.diag(self.covariance(of)))
        return error

    @classmethod
    def _read(cls, name: str, path: Path) -> Spectrum:
        arrays = _arrays_of(path)
        values: dict[str, Floats] = {}
        parts: dict[str, dict[str, dict[str, Floats]]] = {"error": {}, "covariance": {}}
        for key, array in arrays.items():
            of, _, rest = key.partition("_")
            what, _, origin = rest.partition("_")
            if what in parts:
                parts[what].setdefault(of, {})[origin] = array
            elif not rest and not key.startswith("edges"):
                values[key] = array
        return cls(name, arrays["edges1"], values, parts["error"], parts["covariance"])

    def __repr__(self) -> str:
        low, high = self.edges[0], self.edges[-1]
        known = ", ".join(self.values)
        return f"Spectrum({self.name!r}: {len(self.edges) - 1} bins from {low:g} to {high:g}; {known})"


@dataclass(frozen=True, repr=False)
class Unfolding:
    """What `neb unfold` finds."""

    folder: Path | None
    """Where it is, with a HEPData submission of the spectra; None where no `output` was named."""
    summary: dict[str, Any]
    """What was found, and how far to trust it: `summary.json` with the bottom-line, closure and stress tests."""
    score: dict[str, Any] | None
    """How it compares with the truth, where one was given."""
    x_names: list[str]
    """Names of the columns of x."""
    weights: Array
    """Weight of every simulated event, in events produced: the rows of the pairs, then of `missed`."""
    ratio: Array
    """The same over the simulation's own weight."""
    samples: Array
    """Draws of the smooth source."""
    spectra: dict[str, Spectrum]
    """The spectrum of each column of x."""
    joint: dict[tuple[str, str], dict[str, npt.NDArray[Any]]]
    """The arrays of the spectrum in each pair of columns that was asked for: ``edges1``, ``edges2``, ``unfolded`` and others."""
    replicas: dict[str, Array]
    """Weights of every replica by what was repeated (``data``, ``simulation``, ``training``), one row each: the covariance of any
    histogram follows from them."""
    source: Source
    """The smooth source."""
    surrogate: Surrogate
    """q(y|x) of reconstructed events."""

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Unfolding:
        """Reads the folder of an unfolding, whoever wrote it."""
        run = Path(folder)
        if not (run / "weights.npz").exists():
            raise NebValueError(f"{run}: is no unfolding", "give the folder that `neb unfold` or neb.unfold wrote")
        weights, score = _arrays_of(run / "weights.npz"), run / "score.json"
        source = Source.load(run)
        summary = _figures_of(run / "summary.json")
        files = {tuple(written["columns"]): written["name"] for written in summary["spectra"]}
        replicas: dict[str, list[Array]] = {}
        for path in sorted((run / "replicas").glob("*.npz")):
            replicas.setdefault(path.stem.rpartition("-")[0], []).append(_arrays_of(path)["weight"])
        return cls(
            folder=run,
            summary=summary,
            score=_figures_of(score) if score.exists() else None,
            x_names=source.x_names,
            weights=weights["weight"],
            ratio=weights["ratio"],
            samples=_arrays_of(run / "samples.npz")["x"],
            spectra={name: Spectrum._read(name, run / "spectra" / f"{files[name,]}.npz") for name in source.x_names},
            joint={columns: _arrays_of(run / "spectra" / f"{file}.npz") for columns, file in files.items() if len(columns) == 2},
            replicas={what: np.stack(rows) for what, rows in replicas.items()},
            source=source,
            surrogate=Surrogate.load(run),
        )

    def __repr__(self) -> str:
        known = self.summary
        return (
            f"Unfolding({known['data']} events of data, {known['produced']:.0f} produced, "
            f"{len(self.weights)} simulated, {known['iterations']} iterations; spectra of {', '.join(self.x_names)})"
        )


def _figures_of(file: Path) -> dict[str, Any]:
    """What was found, without the files it was found with: they may have been arrays."""
    return {name: value for name, value in json.loads(file.read_text()).items() if name not in ("files", "truth", "x")}


def _arrays_of(path: Path) -> dict[str, npt.NDArray[Any]]:
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def unfold(
    x: Any,
    y: Any,
    observations: Any,
    *,
    weights: Any = None,
    reconstructed: Any = None,
    observed_weights: Any = None,
    missed: Any = None,
    missed_weights: Any = None,
    fakes: Any = None,
    fakes_weights: Any = None,
    background: Any = None,
    background_weights: Any = None,
    truth: Any = None,
    truth_weights: Any = None,
    bins: Mapping[str, Bins] | None = None,
    joint: Sequence[tuple[str, str]] = (),
    iterations: int | None = None,
    replicas: int | None = None,
    simulation_replicas: int | None = None,
    training_replicas: int | None = None,
    draws: int | None = None,
    components: int | None = None,
    epochs: int | None = None,
    smooth_epochs: int | None = None,
    memory: int | None = None,
    transform: Mapping[str, str] | None = None,
    seed: int = 1,
    output: str | PathLike[str] | None = None,
    force: bool = False,
    progress: bool = True,
    callback: Callback | None = None,
) -> Unfolding:
    """The spectrum of x behind data, with uncertainties, beside the binned method: what `neb unfold` finds, in the same bits.

    Numbers that are not given are those of `neb unfold`.

    Parameters
    ----------
    x, y : array_like
        Simulated events, row by row: as produced, and as reconstructed.
    observations : array_like
        The data: y.
    weights, observed_weights, missed_weights, fakes_weights, background_weights, truth_weights : array_like, optional
        One weight per row of the pairs, of the observations and of the tables below. Those of the simulation may be negative,
        those of the background add up to the events expected in the data.
    reconstructed : array_like, optional
        1 where a simulated event was reconstructed, else 0: then its y is not looked at.
    missed : array_like, optional
        x of further simulated events that were not reconstructed.
    fakes, background : array_like, optional
        y of simulated events that were reconstructed but never produced, and of background.
    truth : array_like, optional
        x of the data, where it is known: for scoring after the fit, no part of which sees it.
    bins : mapping, optional
        Bins of columns of x: ``{"x1": (count, low, high)}``, or a list or array of edges; by default between the 0.5 % and 99.5 %
        points of the simulation.
    joint : sequence of (str, str)
        Pairs of columns of x whose spectrum in both at once is wanted too.
    iterations : int, optional
        Iterations of the weights; by default as many as explain held-out data best.
    replicas, simulation_replicas, training_replicas : int, optional
        Repetitions behind the covariances: of the data, of the simulation (each with a training that starts from the nominal
        one), and of the training with other seeds.
    draws : int, optional
        Draws of the smooth source to keep.
    components, epochs, smooth_epochs : int, optional
        Components of the surrogate, passes over the pairs, and passes of the smooth source over the weighted simulation.
    memory : int, optional
        Megabytes for the table of likelihoods; it is computed anew in each iteration where it does not fit.
    transform : mapping, optional
        As in `Surrogate`.
    seed : int
        Same seed, same data: same bits, whatever the number of threads.
    output : path, optional
        The folder to write. After Ctrl-C the same call goes on where it was; no finished replica is made again.
    force : bool
        Start anew where an earlier call was stopped. A finished unfolding is never replaced.
    progress, callback
        As in `Surrogate.fit`.

    Examples
    --------
    >>> import neb, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=1000)
    >>> y = x + 0.3 * rng.normal(size=1000)
    >>> truth = 0.5 + rng.normal(size=500)
    >>> data = truth + 0.3 * rng.normal(size=500)
    >>> found = neb.unfold(x, y, data, bins={"x": (10, -3, 3)}, replicas=5, components=1, epochs=3, smooth_epochs=1)
    >>> found.spectra["x"]
    Spectrum('x': 10 bins from -3 to 3; unfolded, smooth, simulation, ibu, data)
    >>> found.weights.shape, found.spectra["x"].covariance().shape
    ((1000,), (10, 10))
    >>> bool(np.average(x, weights=found.weights) > 0.3)
    True
    """
    x, x_names = _arrays.named("x", x, None)
    y_names = _arrays.names_of(y) or _arrays.names_of(observations)
    if reconstructed is not None:
        reconstructed = _arrays.column("reconstructed", reconstructed, len(x))
        y = _arrays.untyped("y", y).copy()
        if y.ndim != 2 or len(y) != len(x):
            raise NebValueError(f"array `y` has shape {y.shape} for {len(x)} rows of x", "give one row of y for each row of x")
        y[reconstructed == 0] = 0
    y, y_names = _arrays.named("y", y, y_names)
    _arrays.same_rows(x, y)
    files: dict[str, dict[str, Any]] = {
        "pairs": {"x": x, "y": y, "reconstructed": reconstructed} | _weighted("weights", x, weights),
        "observations": _table("y", y_names, observations=observations, observed_weights=observed_weights),
        "missed": _table("x", x_names, missed=missed, missed_weights=missed_weights),
        "fakes": _table("y", y_names, fakes=fakes, fakes_weights=fakes_weights),
        "background": _table("y", y_names, background=background, background_weights=background_weights),
        "truth": _table("x", x_names, truth=truth, truth_weights=truth_weights),
    }
    numbers = {
        "iterations": iterations,
        "replicas": replicas,
        "simulation-replicas": simulation_replicas,
        "training-replicas": training_replicas,
        "draws": draws,
        "components": components,
        "epochs": epochs,
        "smooth-epochs": smooth_epochs,
        "memory": memory,
    }
    options = [f"--{name}={value}" for name, value in numbers.items() if value is not None]
    options += [f"--bins={_word(name)}={_bins(name, chosen)}" for name, chosen in (bins or {}).items()]
    options += ["--joint=" + ",".join(map(_word, pair)) for pair in joint]
    if transform:
        options.append("--transform=" + ",".join(f"{_word(name)}={kind}" for name, kind in transform.items()))
    seed = whole("seed", seed)
    identity = hashlib.sha256(json.dumps([options, seed, x_names, y_names]).encode())
    # The files go with the call; what an interrupted call leaves behind of them is not worth an error.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work, Watch(progress, callback) as watch:
        for name, arrays in files.items():
            present = {role: values for role, values in arrays.items() if values is not None}
            if not present:
                continue
            for role, values in present.items():
                identity.update(f"{name} {role} {values.shape}".encode() + values.tobytes())
            path = Path(work, f"{name}.npz")
            columns: dict[str, Any] = {"x_columns": np.array(x_names), "y_columns": np.array(y_names)}
            np.savez(path, **present, **{key: names for key, names in columns.items() if key[0] in present})
            options.append(f"--{name}={path}")
        run = Path(work, "run") if output is None else Path(output).absolute()
        with without_files_in(work):
            _neb.unfold(options, run, identity.hexdigest(), seed, force, watch)
        unfolding = Unfolding.load(run)
    if output is None:
        object.__setattr__(unfolding, "folder", None)
    warn([outside] if (outside := unfolding.summary.get("outside")) else [])
    return unfolding


def _word(name: str) -> str:
    """The name of a column as part of an option."""
    if "," in name or "=" in name:
        raise NebValueError(f"the name `{name}` has a comma or an equals sign", "rename the column")
    return name


def _bins(name: str, chosen: Bins) -> str:
    """Bins of a column as the program is told."""
    if isinstance(chosen, tuple) and len(chosen) == 3:
        count, low, high = chosen
        return f"{count}:{low}:{high}"
    try:
        edges = [float(edge) for edge in chosen]
    except (TypeError, ValueError):
        edges = []
    if len(edges) < 2:
        raise NebValueError(f"bins of `{name}` are {chosen!r}", "give (count, low, high), or a list of two edges or more")
    return "/".join(map(repr, edges))


def _weighted(called: str, rows: Array, weights: Any) -> dict[str, Any]:
    return {} if weights is None else {"weight": _arrays.column(called, weights, len(rows))}


def _table(role: str, names: list[str], **arguments: Any) -> dict[str, Any]:
    """A table and its weights, which are given by the names that the caller knows them by."""
    (called, values), (weights_called, weights) = arguments.items()
    if values is None:
        if weights is not None:
            raise NebValueError(f"there are {weights_called} but no {called}", f"give {called} too")
        return {}
    rows = _arrays.checked(called, values, names, f"{role} of the pairs has")
    return {role: rows} | _weighted(weights_called, rows, weights)
