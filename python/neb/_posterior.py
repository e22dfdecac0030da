"""What each single observation says about its own x."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arrays, _neb
from ._arrays import Array, Floats
from ._errors import warn
from ._numbers import whole
from ._progress import Callback, Watch
from ._source import Source
from ._surrogate import Surrogate


@dataclass(frozen=True, repr=False)
class Draws:
    """Posterior draws of many observations; ``np.asarray(draws)`` is `x`.

    What a method does not know is None; everything else but `x` has one entry per observation.
    """

    method: str
    """How they were drawn."""
    x: Array
    """Observations x draws x dimensions; NaN beyond the draws that were found."""
    x_names: list[str]
    """Names of the dimensions."""
    found: npt.NDArray[np.int64]
    """Draws found."""
    ess: Floats
    """Effective number of independent draws."""
    samples: int
    """Samples of the source behind all of them."""
    complete: bool
    """Whether every observation has all draws."""
    acceptance: Floats | None = None
    """Share that was accepted (rejection, annealed)."""
    pareto_k: Floats | None = None
    """Shape of the weights' tail (importance); above 0.7 they cannot be trusted."""
    r_hat: Floats | None = None
    """Greatest split R-hat (nuts); above 1.01 the chains disagree."""
    divergences: npt.NDArray[np.int64] | None = None
    """Diverging transitions (nuts)."""
    max_log_likelihood: Array | None = None
    """Greatest log q(y|x) over the source's region (rejection)."""
    warnings: list[str] = field(default_factory=list)
    """What there is to worry about."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self.x if dtype is None else self.x.astype(dtype, copy=False)
        return values.copy() if copy else values

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, observation: int) -> Array:
        """The draws of one observation that were found."""
        return self.x[observation, : self.found[observation]]

    def to_inference_data(self, observation: int = 0) -> Any:
        """The draws of one observation for ArviZ, which must be installed."""
        import arviz

        draws = self[observation]
        chains = {name: draws[np.newaxis, :, i] for i, name in enumerate(self.x_names)}
        # From version 1 the groups are one dictionary.
        return arviz.from_dict(posterior=chains) if hasattr(arviz, "InferenceData") else arviz.from_dict({"posterior": chains})

    def __repr__(self) -> str:
        rows, n, dim = self.x.shape
        state = "complete" if self.complete else "not complete"
        return f"Draws({self.method!r}: {n} draws of {dim} dimensions for each of {rows} observations, {state})"


class Posterior:
    """p(x|y), proportional to q(y|x) q(x), for any y.

    Parameters
    ----------
    source : Source
        The prior.
    surrogate : Surrogate
        The likelihood.

    `sample` has an example.
    """

    def __init__(self, source: Source, surrogate: Surrogate) -> None:
        source.fitted()
        surrogate.fitted()
        self.source = source
        self.surrogate = surrogate

    def sample(
        self,
        y: Any,
        n: int = 1000,
        *,
        method: str = "auto",
        seed: int = 1,
        max_seconds: float = 600.0,
        max_samples: int = 10_000_000,
        progress: bool = True,
        callback: Callback | None = None,
    ) -> Draws:
        """Draws from the posterior of every row of y, the same as `neb posterior` makes.

        Parameters
        ----------
        y : array_like
            Observations.
        n : int
            Draws for each of them.
        method : str
            ``auto`` (rejection where the budget is likely to be enough for it, else annealed), ``rejection`` (exact),
            ``importance``, ``annealed``, ``nuts`` or ``direct`` (the recognition network of elbo and iw).
        seed : int
            Same seed, same draws, whatever the number of threads.
        max_seconds, max_samples
            The budget; where it is hit, what was found is returned, with a warning.
        progress, callback
            As in `Surrogate.fit`; the steps are observations.

        Examples
        --------
        >>> import neb
        >>> problem = neb.simulators.TwoMoons()
        >>> surrogate = neb.Surrogate("noisy-mixture", epochs=2).fit(*problem.pairs(1000))
        >>> truth, y = problem.observations(200)
        >>> source = neb.Source("affine", k=256, least_steps=50).fit(y, surrogate)
        >>> neb.Posterior(source, surrogate).sample(y[:5], 100).x.shape
        (5, 100, 2)
        """
        sampler = sampler_of(n, method, seed, max_seconds, max_samples)
        y = _arrays.checked("y", y, self.surrogate.y_names)
        with Watch(progress, callback) as watch:
            known = _neb.draw(self.source.fitted(), self.surrogate.fitted(), y, sampler, watch)
        if not known["complete"]:
            missing = int((known["found"] < n).sum())
            known["warnings"].append(
                f"{missing} of {len(y)} observations do not have all draws: "
                "raise max_samples or max_seconds, or try another method"
            )
        draws = Draws(x_names=self.source.x_names, **known)
        warn(draws.warnings)
        return draws

    def log_prob(self, y: Any, x: Any, *, seed: int = 1) -> Array:
        """log q(y|x) + log q(x), row by row: the log-density up to a constant that depends on y alone."""
        y, x = _arrays.checked("y", y, self.surrogate.y_names), _arrays.checked("x", x, self.surrogate.x_names)
        _arrays.same_rows(x, y)
        return _neb.log_prob(self.source.fitted(), self.surrogate.fitted(), y, x, whole("seed", seed))

    def maximum(self, y: Any, *, seed: int = 1) -> tuple[Array, Array]:
        """The x of greatest posterior density for each row of y, and log q(y|x) + log q(x) there."""
        y = _arrays.checked("y", y, self.surrogate.y_names)
        return _neb.maximum(self.source.fitted(), self.surrogate.fitted(), y, whole("seed", seed))

    def __repr__(self) -> str:
        return f"Posterior({self.source!r}, {self.surrogate!r})"


def sampler_of(n: int, method: str, seed: int, max_seconds: float, max_samples: int) -> dict[str, Any]:
    """The extension's settings of a sampler."""
    return {
        "n": whole("n", n, 1),
        "method": method,
        "seed": whole("seed", seed),
        "max_seconds": max_seconds,
        "max_samples": whole("max_samples", max_samples, 1),
    }


@dataclass(frozen=True, repr=False)
class Calibration:
    """Whether posteriors hold the truth as often as they say."""

    calibrated: bool
    """The verdict; wrong for exact posteriors in 5 of 100 cases."""
    ks: float
    """Greatest Kolmogorov-Smirnov distance of all dimensions."""
    ks_limit: float
    """What exact posteriors stay below in 95 of 100 cases."""
    x_names: list[str]
    """Names of the dimensions."""
    left_out: int
    """Pairs whose posterior is empty."""
    details: dict[str, Any]
    """Everything that `calibration.json` holds of it."""

    @property
    def ranks(self) -> Floats:
        """Rank in (0, 1) of each truth among its draws: events x dimensions."""
        ranks: Floats = np.column_stack([marginal["ranks"] for marginal in self.details["marginals"]])
        return ranks

    def __repr__(self) -> str:
        verdict = "calibrated" if self.calibrated else "not calibrated"
        return (
            f"Calibration({verdict}: greatest KS {self.ks:.4f} over {self.details['events']} events, "
            f"limit {self.ks_limit:.4f})"
        )


def calibrate(
    posterior: Posterior,
    x: Any,
    y: Any,
    *,
    n: int = 200,
    method: str = "auto",
    seed: int = 1,
    max_seconds: float = 600.0,
    max_samples: int = 10_000_000,
    progress: bool = True,
    callback: Callback | None = None,
) -> Calibration:
    """Whether posteriors hold the truth as often as they say, from pairs whose x is drawn from the true source.

    Parameters
    ----------
    posterior : Posterior
    x, y : array_like
        Pairs, row by row.
    n : int
        Posterior draws for each.
    method, seed, max_seconds, max_samples, progress, callback
        As in `Posterior.sample`.

    Examples
    --------
    >>> import neb
    >>> problem = neb.simulators.TwoMoons()
    >>> surrogate = neb.Surrogate("noisy-mixture", epochs=2).fit(*problem.pairs(1000))
    >>> truth, y = problem.observations(300)
    >>> source = neb.Source("affine", k=256, least_steps=50).fit(y, surrogate)
    >>> neb.calibrate(neb.Posterior(source, surrogate), truth[:50], y[:50], n=20).ranks.shape
    (50, 2)
    """
    y = _arrays.checked("y", y, posterior.surrogate.y_names)
    x = _arrays.checked("x", x, posterior.surrogate.x_names)
    _arrays.same_rows(x, y)
    sampler = sampler_of(n, method, seed, max_seconds, max_samples)
    with Watch(progress, callback) as watch:
        text, left_out, warnings = _neb.calibrate(
            posterior.source.fitted(), posterior.surrogate.fitted(), x, y, sampler, watch
        )
    warn(warnings)
    details = json.loads(text)
    return Calibration(
        calibrated=details["calibrated"],
        ks=details["ks"],
        ks_limit=details["ks_limit"],
        x_names=posterior.source.x_names,
        left_out=left_out,
        details=details,
    )


@dataclass(frozen=True, repr=False)
class Comparison:
    """How two samples differ."""

    differs: bool
    """Whether the AUC lies above what chance allows."""
    auc: float
    """Greatest ROC AUC of the classifiers that tell them apart; 0.5 if nothing differs."""
    auc_band: tuple[float, float]
    """Where it would be if nothing differed."""
    accuracy: float
    """Their greatest balanced accuracy (C2ST)."""
    details: dict[str, Any]
    """Everything: what `neb compare --json` prints."""

    def __repr__(self) -> str:
        verdict = "the samples differ" if self.differs else "no difference was found"
        return f"Comparison({verdict}: AUC {self.auc:.4f}, {self.auc_band[0]:.4f} to {self.auc_band[1]:.4f} by chance)"


def compare(a: Any, b: Any, *, a_weights: Any = None, b_weights: Any = None, seed: int = 1) -> Comparison:
    """Whether two samples follow the same law, as `neb compare` judges it.

    Parameters
    ----------
    a, b : array_like
        Tables with the same columns; those of two frames are matched by name.
    a_weights, b_weights : array_like, optional
        One weight per row.
    seed : int
        Same seed, same result, whatever the number of threads.

    Examples
    --------
    >>> import neb, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> neb.compare(rng.normal(size=(400, 2)), 3 + rng.normal(size=(400, 2))).differs
    True
    """
    names = _arrays.names_of(a)
    a, b = _arrays.table("a", a, names), _arrays.table("b", b) if names is None else _arrays.checked("b", b, names, "a has")
    a_weights = None if a_weights is None else _arrays.column("a_weights", a_weights, len(a))
    b_weights = None if b_weights is None else _arrays.column("b_weights", b_weights, len(b))
    details = json.loads(_neb.compare(a, b, a_weights, b_weights, whole("seed", seed)))
    return Comparison(
        differs=details["differs"],
        auc=details["auc"]["value"],
        auc_band=(details["auc"]["null"]["low"], details["auc"]["null"]["high"]),
        accuracy=details["accuracy"]["value"],
        details=details,
    )
