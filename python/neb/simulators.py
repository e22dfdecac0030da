"""The built-in problems: a known source, a simulator, and its exact likelihood.

Examples
--------
>>> import neb
>>> problem = neb.simulators.TwoMoons()
>>> x, y = problem.pairs(100, seed=1)
>>> x.shape, y.shape
((100, 2), (100, 2))
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arrays, _neb
from ._arrays import Array
from ._numbers import whole

__all__ = ["TwoMoons", "Slcp", "InverseKinematics", "Simulator"]


class Simulator:
    """A built-in problem; draws are those of `neb simulate` with the same seed."""

    name: str = ""

    def __init__(self) -> None:
        self._inner = _neb.Simulator(self.name)

    @property
    def dims(self) -> tuple[int, int]:
        """Dimensions of x and y."""
        return self._inner.dims

    def observations(self, n: int, *, seed: int = 1) -> tuple[Array, Array]:
        """x of the true source, which an experiment would not see, and y."""
        return self._inner.observations(whole("n", n), whole("seed", seed))

    def pairs(self, n: int, *, proposal: str = "covering", seed: int = 1) -> tuple[Array, Array]:
        """x of a proposal (`covering` or `standard-normal`), and y: what a surrogate is learned from."""
        return self._inner.pairs(proposal, whole("n", n), whole("seed", seed))

    def simulate(self, x: Any, *, seed: int = 1) -> Array:
        """One y for each row of x."""
        return self._inner.simulate(self._table("x", x, self.dims[0]), whole("seed", seed))

    def log_prob(self, y: Any, x: Any) -> npt.NDArray[np.float64]:
        """The exact log p(y|x), row by row."""
        y, x = self._table("y", y, self.dims[1]), self._table("x", x, self.dims[0])
        _arrays.same_rows(x, y)
        return self._inner.log_prob(y, x)

    @staticmethod
    def _table(role: str, values: Any, dim: int) -> Array:
        return _arrays.checked(role, values, _arrays.default_names(role, dim), "the simulator has")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(): x of {self.dims[0]} and y of {self.dims[1]} dimensions"

    def __reduce__(self) -> tuple[type[Simulator], tuple[()]]:
        return type(self), ()


class TwoMoons(Simulator):
    """Two crescents."""

    name = "two-moons"


class Slcp(Simulator):
    """A simple likelihood with a complex posterior."""

    name = "slcp"


class InverseKinematics(Simulator):
    """The end of an arm with three joints on a rail."""

    name = "ik"
