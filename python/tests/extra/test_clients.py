"""Other libraries on our results."""

from __future__ import annotations

import numpy as np
import pytest

import neb
from conftest import AFFINE, Array

# What other libraries warn of, from the first import on, is theirs.
pytestmark = pytest.mark.filterwarnings("default")


def test_arviz(run: neb.Run, observed: tuple[Array, Array]) -> None:
    import arviz

    draws = run.posterior.sample(observed[1][:2], 500)
    data = draws.to_inference_data(1)
    assert np.array_equal(np.asarray(data["posterior"]["x2"])[0], draws.x[1, :, 1])
    table = arviz.summary(data)
    assert list(table.index) == ["x1", "x2"]


def test_sbi_judges_our_source() -> None:
    """The C2ST of `sbi` between a fitted two-moons source and the truth."""
    import torch
    from sbi.utils.metrics import c2st

    problem = neb.simulators.TwoMoons()
    surrogate = neb.Surrogate("noisy-mixture", components=8, epochs=30).fit(*problem.pairs(5000))
    truth, y = problem.observations(2000, seed=2)
    source = neb.Source("affine", **AFFINE | {"epochs": 40}).fit(y, surrogate)
    found = float(c2st(torch.from_numpy(source.sample(2000)), torch.from_numpy(truth)))
    assert found == pytest.approx(0.5, abs=0.07)
    assert float(c2st(torch.from_numpy(problem.pairs(2000)[0]), torch.from_numpy(truth))) > 0.6
