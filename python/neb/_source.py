"""Stage 2: the source q(x)."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from . import _arrays, _neb
from ._arrays import Array
from ._errors import NebValueError, warn, without_files_in
from ._model import Model, call, chosen, keys
from ._numbers import whole
from ._progress import Callback, Watch
from ._surrogate import Surrogate

Edges = tuple[float, float]

#: Files of a run that hold no model.
_FILES = ("config.toml", "history.csv", "summary.json", "particles.npz", "calibration.json", "efficiency.safetensors")


def _domain(given: str | Mapping[str, Edges] | Sequence[Edges] | None) -> str | None:
    """Where x can be, as the program is told."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        edges = list(given.items())
    else:
        edges = list(zip(_arrays.default_names("x", len(given)), given))
    return ",".join(f"{name}={float(low)}:{float(high)}" for name, (low, high) in edges)


class Source(Model[_neb.Source]):
    """The distribution q(x) behind the observations.

    Settings have the names and defaults of `neb source`; those that are not given are the preset's, and one that the kind does
    not have is refused.

    Parameters
    ----------
    kind : str
        ``auto`` (a ladder of sources, of which the simplest that explains the observations is kept), ``affine``,
        ``affine-full``, ``coupling``, ``spline``, ``umnn``, ``mlp`` or ``particles``.
    estimator : str
        What a source maximises: ``mc``, ``roulette``, ``elbo`` or ``iw``; ``auto`` knows ``mc`` alone.
    k : int, optional
        Samples K of the estimator; with ``auto`` those of all its rungs (`affine_k` and `refine_k`).
    domain : str, mapping or sequence, optional
        Where x can be: ``"x1=-1:1,x2=0:inf"``, ``{"x1": (-1, 1)}``, or one (low, high) per column of default name.
    symmetric : str or sequence of str, optional
        Columns whose law is even about zero, or ``all``.
    preset : str
        ``fast`` or ``paper``.
    seed : int
        Same seed, same data: same bits, whatever the number of threads.

    Examples
    --------
    >>> import neb
    >>> neb.Source("spline", k=256, domain={"x1": (0, 1)})
    Source('spline', k=256, domain='x1=0.0:1.0'), not fitted
    """

    _stage = "source"

    def __init__(
        self,
        kind: str = "auto",
        *,
        estimator: str = "mc",
        k: int | None = None,
        domain: str | Mapping[str, Edges] | Sequence[Edges] | None = None,
        symmetric: str | Sequence[str] | None = None,
        preset: str = "fast",
        seed: int = 1,
        samples: str | None = None,
        levels: str | None = None,
        base: str | None = None,
        recognition: str | None = None,
        judge_k: int | None = None,
        effective_samples: float | None = None,
        entropy: float | None = None,
        pull: float | None = None,
        last_share: float | None = None,
        rounds: int | None = None,
        training_nodes: int | None = None,
        least_steps: int | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        schedule: str | None = None,
        clip_norm: float | None = None,
        held_out: float | None = None,
        patience: int | None = None,
        layers: int | None = None,
        hidden: Sequence[int] | None = None,
        bins: int | None = None,
        bound: float | None = None,
        embedding: int | None = None,
        integrand_hidden: Sequence[int] | None = None,
        steps: int | None = None,
        affine_k: int | None = None,
        refine_k: int | None = None,
        particles: int | None = None,
        refine_effective_samples: float | None = None,
        refine_epochs: int | None = None,
        flow_layers: int | None = None,
        flow_hidden: Sequence[int] | None = None,
        flow_bins: int | None = None,
        flow_bound: float | None = None,
        flow_epochs: int | None = None,
        flow_batch: int | None = None,
        flow_rate: float | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "kind", "preset", "seed")}
        given["domain"] = _domain(domain)
        seed = whole("seed", seed)
        if estimator == "mc":
            del given["estimator"]
        if kind == "auto" and preset == "fast" and k is not None:
            del given["k"]
            given["affine_k"], given["refine_k"] = affine_k or k, refine_k or k
        if symmetric is not None and not isinstance(symmetric, str):
            given["symmetric"] = ",".join(symmetric)
        named = keys(given)
        self._kind, self._shown = kind, named | chosen(preset, seed)
        # The preset has its own kind; naming it would be a choice.
        of_kind = {} if kind == "auto" else {"source": kind}
        self._settings = json.dumps({"seed": seed, "preset": preset, "source": of_kind | named})
        _neb.settings(self._given(), self._stage)
        self._inner: _neb.Source | None = None
        self._files: dict[str, bytes] = {}
        self._y_names: list[str] = []
        self._y: Array | None = None

    def fit(
        self,
        y: Any,
        surrogate: Surrogate,
        *,
        x: Any = None,
        weights: Any = None,
        output: str | PathLike[str] | None = None,
        force: bool = False,
        progress: bool = True,
        callback: Callback | None = None,
    ) -> Source:
        """Finds the source under which the observations are most likely.

        Parameters
        ----------
        y : array_like
            Observations, one per row.
        surrogate : Surrogate
            A fitted one.
        x : array_like, optional
            x of the pairs, where every source begins and on which particles sit. A surrogate that was fitted in this session
            knows it.
        weights : array_like, optional
            One weight per observation.
        output : path, optional
            The folder of a run to write. While it is under way its state is in ``output.partial``: after Ctrl-C the same call
            goes on from there.
        force : bool
            Replace a run that is there, and start anew one that was stopped.
        progress : bool
            Whether to show a bar.
        callback : callable, optional
            Called with a `Progress` about ten times a second; an exception stops the fit.

        Returns
        -------
        Source
            Itself.
        """
        settings, learned = self._given(), surrogate.fitted()
        y = _arrays.checked("y", y, learned.y_names)
        x = surrogate.pairs_x if x is None else _arrays.checked("x", x, learned.x_names)
        if x is None:
            raise NebValueError(
                "this surrogate was read from a file and does not know the pairs it was fitted to",
                "give x of the pairs: fit(y, surrogate, x=x)",
            )
        weights = None if weights is None else _arrays.column("weights", weights, len(y))
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Watch(progress, callback) as watch:
            run = Path(folder, "run") if output is None else Path(output)
            with without_files_in(folder):
                _neb.fit_source(settings, learned, y, weights, x, run, force, watch)
            self._read(run, learned.y_names)
        self._y = y.copy()
        warn(self.summary.get("warnings", []))
        return self

    def _read(self, run: Path, y_names: list[str]) -> None:
        self._inner = _neb.Source.load(run)
        self._y_names = y_names
        names = _FILES if run.is_dir() else ()
        self._files = {name: (run / name).read_bytes() for name in names if (run / name).exists()}
        self._y = None

    def sample(self, n: int, *, seed: int = 1) -> Array:
        """n draws of x, the same as `neb sample` makes."""
        return self.fitted().sample(whole("n", n), whole("seed", seed))

    def log_prob(self, x: Any, *, seed: int = 1) -> Array:
        """log q(x), row by row; -inf outside the support. A source of kind ``mlp`` has none.

        `seed` matters to columns of whole numbers and atoms alone.
        """
        inner = self.fitted()
        return inner.log_prob(_arrays.checked("x", x, inner.x_names), whole("seed", seed))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the file of the source alone (``.safetensors``); `Run.save` writes the folder of a run."""
        self.fitted().save(path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Source:
        """Reads a file, or the source in the folder of a run."""
        source = cls()
        path = Path(path)
        y_names = _neb.Surrogate.load(path).y_names if path.is_dir() else []
        source._read(path, y_names)
        source._was_read(path)
        winner = source.summary.get("source", {}).get("winner")
        source._kind = winner if winner else "file"
        return source

    @property
    def has_density(self) -> bool:
        """Whether `log_prob` works."""
        return self.fitted().has_density

    @property
    def summary(self) -> dict[str, Any]:
        """`summary.json` of the run: what was tried and what was kept; empty where it was loaded from a file."""
        self.fitted()
        text = self._files.get("summary.json")
        return {} if text is None else json.loads(text)

    @property
    def reason(self) -> str:
        """Why this source was kept."""
        return str(self.summary.get("source", {}).get("reason", ""))

    @property
    def history(self) -> list[dict[str, Any]]:
        """Every epoch of every training of the run: the rows of `history.csv`; losses are means of -log q."""
        self.fitted()
        rows = csv.DictReader(io.StringIO(self._files.get("history.csv", b"").decode()))
        words = ("stage", "rung")
        return [
            {name: cell if name in words else _number(name, cell) for name, cell in row.items()} for row in rows
        ]

    @property
    def particles(self) -> tuple[Array, Any] | None:
        """x of the pairs and their weights, where these were fitted."""
        content = self._files.get("particles.npz")
        if content is None:
            return None
        with np.load(io.BytesIO(content)) as arrays:
            return arrays["x"], arrays["weight"]

    @property
    def observations(self) -> Array | None:
        """What it was fitted to; None where it was loaded."""
        return self._y

    def run_files(self, folder: Path) -> list[tuple[str, bytes]]:
        """Names and contents of the files of the run that hold no model, as they are to be in `folder`."""
        files = dict(self._files)
        if "summary.json" in files:
            summary = json.loads(files["summary.json"]) | {"output": str(folder)}
            files["summary.json"] = (json.dumps(summary, indent=2) + "\n").encode()
        return list(files.items())

    def __repr__(self) -> str:
        start = f"Source({call(self._kind, self._shown)})"
        if self._inner is None:
            return f"{start}, not fitted"
        winner = self.summary.get("source", {}).get("winner", "from a file")
        return f"{start}, fitted: {winner}, x of {len(self.x_names)} columns"

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_inner"] = None if self._inner is None else self._inner.state(self._y_names)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if state["_inner"] is not None:
            self._inner = _neb.Source.from_state(*state["_inner"])


def _number(name: str, cell: str) -> int | float | None:
    if cell == "":
        return None
    return int(cell) if name == "epoch" else float(cell)

