"""Stage 1: the likelihood q(y|x)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from . import _arrays, _neb
from ._arrays import Array
from ._errors import warn
from ._model import Model, call, chosen, keys
from ._numbers import whole
from ._progress import Callback, Watch


class Surrogate(Model[_neb.Surrogate]):
    """The density q(y|x), learned from simulated pairs.

    Settings have the names and defaults of `neb surrogate`; those that are not given are the preset's.

    Parameters
    ----------
    kind : str
        ``auto`` (several, of which the best on held-out pairs is kept), ``coupling``, ``spline``, ``mixture``,
        ``noisy-mixture`` (what `neb fit` takes) or ``paper``.
    preset : str
        ``fast`` or ``paper``.
    seed : int
        Same seed, same data: same bits, whatever the number of threads.
    epochs, batch, rate, schedule, weight_decay, clip_norm, held_out, patience
        The training.
    layers, hidden, head, activation, bins, bound, components
        The networks; a setting that the kind does not have is refused.
    transform : mapping, optional
        Columns that the models are to see otherwise: ``{"mass": "log", "tracks": "dequantise"}``; ``log``, ``logit``, ``dequantise``,
        ``atom`` or ``none``. Whole numbers and atoms are found by themselves; everything is given and returned in your units.

    Examples
    --------
    >>> import neb
    >>> x, y = neb.simulators.TwoMoons().pairs(500)
    >>> surrogate = neb.Surrogate("mixture", epochs=1)
    >>> surrogate
    Surrogate('mixture', epochs=1), not fitted
    >>> surrogate.fit(x, y).log_prob(y, x).shape
    (500,)
    """

    _stage = "surrogate"

    def __init__(
        self,
        kind: str = "auto",
        *,
        preset: str = "fast",
        seed: int = 1,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        schedule: str | None = None,
        weight_decay: float | None = None,
        clip_norm: float | None = None,
        held_out: float | None = None,
        patience: int | None = None,
        layers: int | None = None,
        hidden: Sequence[int] | None = None,
        head: Sequence[int] | None = None,
        activation: str | None = None,
        bins: int | None = None,
        bound: float | None = None,
        components: int | None = None,
        transform: Mapping[str, str] | None = None,
    ) -> None:
        seed = whole("seed", seed)
        training = keys(
            {
                "epochs": epochs,
                "batch": batch,
                "rate": rate,
                "schedule": schedule,
                "weight_decay": weight_decay,
                "clip_norm": clip_norm,
                "held_out": held_out,
                "patience": patience,
                "layers": layers,
                "hidden": hidden,
                "head": head,
                "activation": activation,
                "bins": bins,
                "bound": bound,
                "components": components,
            }
        )
        self._kind, self._shown = kind, training | {"transform": transform} | chosen(preset, seed)
        # The preset has its own kind; naming it would be a choice.
        named = {} if kind == "auto" else {"kind": kind}
        columns = {column: {"transform": words} for column, words in (transform or {}).items()}
        self._settings = json.dumps({"seed": seed, "preset": preset, "surrogate": named | training, "column": columns})
        _neb.settings(self._given(), self._stage)
        self._inner: _neb.Surrogate | None = None
        self._x: Array | None = None

    def fit(
        self,
        x: Any,
        y: Any,
        *,
        x_names: Sequence[str] | None = None,
        y_names: Sequence[str] | None = None,
        output: str | PathLike[str] | None = None,
        force: bool = False,
        progress: bool = True,
        callback: Callback | None = None,
    ) -> Surrogate:
        """Learns from simulated pairs, row by row.

        Parameters
        ----------
        x, y : array_like
            Tables with one row per pair; float64 is rounded to float32. The names of a frame's columns are kept.
        x_names, y_names : sequence of str, optional
            Names of the columns.
        output : path, optional
            A file (``.safetensors``) to write. Checkpoints lie beside it: after Ctrl-C the same call goes on from there.
        force : bool
            Replace a file that is there, and start anew a training that was stopped.
        progress : bool
            Whether to show a bar.
        callback : callable, optional
            Called with a `Progress` about ten times a second; an exception stops the training.

        Returns
        -------
        Surrogate
            Itself.
        """
        settings = self._given()
        x, x_columns = _arrays.named("x", x, x_names)
        y, y_columns = _arrays.named("y", y, y_names)
        _arrays.same_rows(x, y)
        with Watch(progress, callback) as watch:
            self._inner, notes = _neb.Surrogate.fit(settings, x, y, x_columns, y_columns, output, force, watch)
        # A copy: what the caller does to the array later is no business of this model.
        self._x = x.copy()
        warn(notes)
        return self

    def log_prob(self, y: Any, x: Any, *, seed: int = 1) -> Array:
        """log q(y|x), row by row, in the units of y; `seed` matters to columns of whole numbers and atoms alone."""
        inner = self.fitted()
        y, x = _arrays.checked("y", y, inner.y_names), _arrays.checked("x", x, inner.x_names)
        _arrays.same_rows(x, y)
        return inner.log_prob(y, x, whole("seed", seed))

    def sample(self, x: Any, *, seed: int = 1) -> Array:
        """One draw of y for each row of x, the same as `neb sample --push --points` makes."""
        inner = self.fitted()
        return inner.sample(_arrays.checked("x", x, inner.x_names), whole("seed", seed))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the file that `neb` reads too (``.safetensors``)."""
        self.fitted().save(path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Surrogate:
        """Reads a file, or the surrogate in the folder of a run."""
        loaded = cls()
        loaded._inner = _neb.Surrogate.load(path)
        loaded._kind = loaded._inner.name
        loaded._was_read(Path(path))
        return loaded

    @property
    def y_names(self) -> list[str]:
        """Names of the columns of y."""
        return self.fitted().y_names

    @property
    def pairs_x(self) -> Array | None:
        """x of the pairs it was fitted to, where `Source.fit` begins; None where it was loaded from a file."""
        return self._x

    @property
    def report(self) -> dict[str, Any] | None:
        """What was tried, with every epoch, and which won; None where it was loaded from a file."""
        text = self.fitted().report
        return None if text is None else json.loads(text)

    def __repr__(self) -> str:
        start = f"Surrogate({call(self._kind, self._shown)})"
        if self._inner is None:
            return f"{start}, not fitted"
        dims = f"x of {len(self.x_names)}, y of {len(self.y_names)} columns"
        return f"{start}, fitted: {self._inner.name}, {self._inner.parameters} parameters, {dims}"

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_inner"] = None if self._inner is None else self._inner.state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if state["_inner"] is not None:
            self._inner = _neb.Surrogate.from_state(*state["_inner"])


def log_marginal(y: Any, x: Any, surrogate: Surrogate) -> tuple[float, Array]:
    """L_K, the mean over y of log (1/K) sum_k q(y|x_k), and its gradient with respect to x.

    This is all that a generator of one's own needs to be trained; `neb.torch.log_marginal` is the same for PyTorch.

    Parameters
    ----------
    y : array_like
        Observations.
    x : array_like
        K draws of the source.
    surrogate : Surrogate
        A fitted one.

    Returns
    -------
    value : float
    grad_x : ndarray
        One row for each row of x.

    Examples
    --------
    >>> import neb
    >>> problem = neb.simulators.TwoMoons()
    >>> surrogate = neb.Surrogate("mixture", epochs=1).fit(*problem.pairs(500))
    >>> x, y = problem.observations(64)
    >>> value, gradient = neb.log_marginal(y, x, surrogate)
    >>> uphill, _ = neb.log_marginal(y, x + 0.1 * gradient, surrogate)
    >>> uphill > value
    True
    """
    inner = surrogate.fitted()
    return inner.log_marginal(_arrays.checked("y", y, inner.y_names), _arrays.checked("x", x, inner.x_names))
