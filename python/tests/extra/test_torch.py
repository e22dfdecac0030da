"""L_K as a function of PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import neb
import neb.torch

sys.path.append(str(Path(__file__).parents[2] / "examples"))
import torch_generator  # noqa: E402


def test_value_and_gradient_are_those_of_numpy(surrogate: neb.Surrogate) -> None:
    problem = neb.simulators.TwoMoons()
    y, x = problem.observations(20)[1], problem.observations(30, seed=3)[0]
    value, gradient = neb.log_marginal(y, x, surrogate)
    for dtype in (torch.float32, torch.float64):
        leaf = torch.tensor(x, dtype=dtype, requires_grad=True)
        result = neb.torch.log_marginal(torch.from_numpy(y), leaf, surrogate)
        (3 * result).backward()
        assert leaf.grad is not None and leaf.grad.dtype == dtype
        assert np.allclose(result.item(), value) and np.allclose(leaf.grad.numpy(), 3 * gradient, rtol=1e-6)


def test_there_is_no_second_derivative(surrogate: neb.Surrogate) -> None:
    leaf = torch.zeros((5, 2), requires_grad=True)
    squared = neb.torch.log_marginal(np.zeros((3, 2)), leaf, surrogate) ** 2
    (gradient,) = torch.autograd.grad(squared, leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_a_generator_learns() -> None:
    before, after = torch_generator.main()
    assert before.auc > 0.8 and after.auc < 0.6, (before, after)
