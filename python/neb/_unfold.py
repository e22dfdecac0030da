"""Data corrected for a detector."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arrays, _neb
from ._arrays import Array
from ._errors import NebValueError, warn
from ._progress import Callback, Watch


@dataclass(frozen=True, repr=False)
class Unfolding:
    """What `neb unfold` leaves."""

    folder: Path
    """Where it is, with replicas and HEPData files."""
    summary: dict[str, Any]
    """What was found, and how far to trust it: `summary.json`."""
    score: dict[str, Any] | None
    """How it compares with the truth, where one was given."""
    weight: Array
    """Weight of every simulated event, in events produced: the rows of the pairs, then of `missed`."""
    ratio: Array
    """The same over the simulation's own weight."""
    samples: Array
    """Draws of the smooth source."""
    spectra: dict[str, dict[str, npt.NDArray[Any]]]
    """For each column of x the arrays of its spectrum: edges, values, errors, covariances."""

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Unfolding:
        """Reads the folder of an unfolding, whoever wrote it."""
        run = Path(folder)
        weights, score = _arrays_of(run / "weights.npz"), run / "score.json"
        return cls(
            folder=run,
            summary=json.loads((run / "summary.json").read_text()),
            score=json.loads(score.read_text()) if score.exists() else None,
            weight=weights["weight"],
            ratio=weights["ratio"],
            samples=_arrays_of(run / "samples.npz")["x"],
            spectra={path.stem: _arrays_of(path) for path in sorted((run / "spectra").glob("*.npz"))},
        )

    def __repr__(self) -> str:
        known = self.summary
        return (
            f"Unfolding({str(self.folder)!r}: {known['data']} events of data, {known['produced']:.0f} produced, "
            f"{len(self.weight)} simulated, {known['iterations']} iterations)"
        )


def _arrays_of(path: Path) -> dict[str, npt.NDArray[Any]]:
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def unfold(
    x: Any,
    y: Any,
    observations: Any,
    output: str | PathLike[str],
    *,
    weight: Any = None,
    reconstructed: Any = None,
    observed_weight: Any = None,
    missed: Any = None,
    missed_weight: Any = None,
    fakes: Any = None,
    fakes_weight: Any = None,
    background: Any = None,
    background_weight: Any = None,
    truth: Any = None,
    truth_weight: Any = None,
    bins: Mapping[str, tuple[int, float, float]] | None = None,
    iterations: int | None = None,
    replicas: int = 20,
    simulation_replicas: int = 0,
    training_replicas: int = 0,
    draws: int = 40_000,
    components: int = 8,
    epochs: int = 40,
    smooth_epochs: int = 25,
    memory: int = 1500,
    transform: Mapping[str, str] | None = None,
    seed: int = 1,
    force: bool = False,
    progress: bool = True,
    callback: Callback | None = None,
) -> Unfolding:
    """The spectrum of x behind data, with uncertainties, beside the binned method, as `neb unfold` finds it.

    Parameters
    ----------
    x, y : array_like
        Simulated events, row by row: as produced, and as reconstructed.
    observations : array_like
        The data: y.
    output : path
        The folder to write. After Ctrl-C the same call goes on where it was.
    weight, observed_weight, missed_weight, fakes_weight, background_weight, truth_weight : array_like, optional
        One weight per row; those of the simulation may be negative, those of the background add up to the events expected.
    reconstructed : array_like, optional
        1 where a simulated event was reconstructed, else 0: then its y is not looked at.
    missed : array_like, optional
        x of further events that were not reconstructed.
    fakes, background : array_like, optional
        y of events that were reconstructed but never produced, and of background.
    truth : array_like, optional
        x of the data, for scoring alone.
    bins : mapping, optional
        Bins of columns of x: ``{"x1": (count, low, high)}``.
    iterations, replicas, simulation_replicas, training_replicas, draws, components, epochs, smooth_epochs, memory
        The program's settings of these names.
    transform : mapping, optional
        As in `Surrogate`.
    seed : int
        Same seed, same data: same bits.
    force : bool
        Start anew where an earlier call was stopped. A finished unfolding is never replaced.
    progress, callback
        As in `Surrogate.fit`.
    """
    x, x_names = _arrays.named("x", x, None)
    if reconstructed is not None:
        seen = _arrays.column("flag", reconstructed, len(x)) != 0
        y = np.where(seen[:, np.newaxis], _matrix(y, len(x)), 0)
        reconstructed = seen.astype(np.float32)
    y, y_names = _arrays.named("y", y, _arrays.names_of(observations))
    _arrays.same_rows(x, y)
    files: dict[str, dict[str, Any]] = {
        "pairs": {"x": x, "y": y, "reconstructed": reconstructed} | _weighted(x, weight),
        "observations": _table("y", observations, y_names, observed_weight),
        "missed": _table("x", missed, x_names, missed_weight),
        "fakes": _table("y", fakes, y_names, fakes_weight),
        "background": _table("y", background, y_names, background_weight),
        "truth": _table("x", truth, x_names, truth_weight),
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
    options += [f"--bins={name}={count}:{low}:{high}" for name, (count, low, high) in (bins or {}).items()]
    if transform:
        options.append("--transform=" + ",".join(f"{name}={kind}" for name, kind in transform.items()))
    identity = hashlib.sha256(json.dumps([options, seed, x_names, y_names]).encode())
    with tempfile.TemporaryDirectory() as work, Watch(progress, callback) as watch:
        for name, arrays in files.items():
            present = {role: values for role, values in arrays.items() if values is not None}
            if not present:
                continue
            for role, values in present.items():
                identity.update(role.encode() + values.tobytes())
            path = Path(work, f"{name}.npz")
            columns: dict[str, Any] = {"x_columns": np.array(x_names), "y_columns": np.array(y_names)}
            np.savez(path, **present, **{key: names for key, names in columns.items() if key[0] in present})
            options.append(f"--{name}={path}")
        options.append(f"--output={Path(output).absolute()}")
        _neb.unfold(options, identity.hexdigest(), seed, force, watch)
    unfolding = Unfolding.load(output)
    warn([outside] if (outside := unfolding.summary.get("outside")) else [])
    return unfolding


def _matrix(values: Any, rows: int) -> npt.NDArray[Any]:
    given = np.asarray(values)
    given = given[:, np.newaxis] if given.ndim == 1 else given
    if given.ndim != 2 or len(given) != rows:
        raise NebValueError(f"array `y` has shape {given.shape} for {rows} rows of x", "give one row of y for each row of x")
    return given


def _weighted(rows: Array, weight: Any) -> dict[str, Any]:
    return {} if weight is None else {"weight": _arrays.column("weight", weight, len(rows))}


def _table(role: str, values: Any, names: list[str], weight: Any) -> dict[str, Any]:
    if values is None:
        return {}
    rows = _arrays.checked(role, values, names)
    return {role: rows} | _weighted(rows, weight)
