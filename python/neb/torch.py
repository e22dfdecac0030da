"""L_K for PyTorch: any generator can be trained on observations through a surrogate.

>>> import neb.torch                                # doctest: +SKIP
>>> x = generator(torch.randn(1024, 2))             # doctest: +SKIP
>>> (-neb.torch.log_marginal(y, x, surrogate)).backward()   # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

import torch

from ._surrogate import Surrogate
from ._surrogate import log_marginal as _log_marginal

__all__ = ["log_marginal"]


class _LogMarginal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: Any, surrogate: Surrogate) -> torch.Tensor:
        value, gradient = _log_marginal(y, x.detach().cpu().numpy(), surrogate)
        ctx.save_for_backward(torch.from_numpy(gradient).to(x))
        return x.new_tensor(value)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> Any:
        (gradient,) = ctx.saved_tensors
        return grad_outputs[0] * gradient, None, None


def log_marginal(y: Any, x: torch.Tensor, surrogate: Surrogate) -> torch.Tensor:
    """L_K, the mean over y of log (1/K) sum_k q(y|x_k), differentiable with respect to x.

    Parameters
    ----------
    y : tensor or array_like
        Observations.
    x : tensor
        K draws of the generator.
    surrogate : Surrogate
        A fitted one.
    """
    observed = y.detach().cpu().numpy() if isinstance(y, torch.Tensor) else y
    value: torch.Tensor = _LogMarginal.apply(x, observed, surrogate)  # type: ignore[no-untyped-call]
    return value
