"""Neural Empirical Bayes: the distribution behind noisy observations.

From simulated pairs (x, y) learn the likelihood q(y|x) (`Surrogate`), find the source q(x) that explains the observations
(`Source`), draw what each observation says about its own x (`Posterior`), and check it (`compare`, `calibrate`). `unfold` does a
physicist's whole analysis: weights, efficiency, fakes, background, spectra with covariance.

Examples
--------
>>> import neb
>>> problem = neb.simulators.TwoMoons()
>>> x, y = problem.pairs(2000)
>>> surrogate = neb.Surrogate("noisy-mixture", epochs=2).fit(x, y)
>>> truth, observed = problem.observations(500, seed=2)
>>> source = neb.Source("affine", k=256, least_steps=50).fit(observed, surrogate)
>>> source.sample(3).shape
(3, 2)
"""

import os

from . import simulators
from ._errors import NebError, NebValueError, NebWarning
from ._neb import __version__, forked
from ._numbers import set_threads
from ._posterior import Calibration, Comparison, Draws, Posterior, calibrate, compare
from ._progress import Progress
from ._run import Run, fit, load, report
from ._simulate import simulate
from ._source import Source
from ._surrogate import Surrogate, log_marginal
from ._unfold import Spectrum, Unfolding, unfold

__all__ = [
    "Calibration",
    "Comparison",
    "Draws",
    "NebError",
    "NebValueError",
    "NebWarning",
    "Posterior",
    "Progress",
    "Run",
    "Source",
    "Spectrum",
    "Surrogate",
    "Unfolding",
    "__version__",
    "calibrate",
    "compare",
    "fit",
    "load",
    "log_marginal",
    "plot",
    "report",
    "set_threads",
    "simulate",
    "simulators",
    "unfold",
]

# A forked process has none of the threads that its parent may have started.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forked)


#: Modules that are imported only when used, as matplotlib and torch are.
_LATER = ("plot", "torch")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATER, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> object:
    if name in _LATER:
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
