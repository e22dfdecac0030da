"""The paper's surrogate: log q(y|x) by affine coupling layers, in plain PyTorch.

Before every layer the two halves of y swap. The half that then stands first passes untouched and
feeds, with the context x behind it, two networks s and t (in-50-50-out, ReLU); the other half b
becomes b * exp(clamp(s)) + t with clamp(s) = (2a/pi) atan(s/a), a = 1.9. The base is N(0, I).
"""

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

CLAMP = 1.9
GOLDEN = Path(__file__).parents[1] / "crates" / "neb" / "tests" / "golden"


def soft_clamp(s: Tensor) -> Tensor:
    return (2 * CLAMP / math.pi) * torch.atan(s / CLAMP)


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, outputs),
    )


class Layer(nn.Module):
    def __init__(self, dim: int, context: int, hidden: int) -> None:
        super().__init__()
        half = dim // 2
        self.s = mlp(dim - half + context, hidden, half)
        self.t = mlp(dim - half + context, hidden, half)


class Coupling(nn.Module):
    """y -> z given x; parameters are named as in the golden files."""

    def __init__(self, dim: int = 2, context: int = 2, hidden: int = 50, layers: int = 4) -> None:
        super().__init__()
        self.half = dim // 2
        self.layers = nn.ModuleList(Layer(dim, context, hidden) for _ in range(layers))

    def forward(self, y: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """z and log |dz/dy|, row by row."""
        first, last = y[:, : self.half], y[:, self.half :]
        log_jacobian = torch.zeros(len(y), dtype=y.dtype)
        for layer in self.layers:
            first, last = last, first
            inputs = torch.cat([first, x], 1)
            s = soft_clamp(layer.s(inputs))
            last = last * torch.exp(s) + layer.t(inputs)
            log_jacobian = log_jacobian + s.sum(1)
        return torch.cat([first, last], 1), log_jacobian

    def log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """log q(y|x), row by row."""
        z, log_jacobian = self(y, x)
        return log_jacobian - 0.5 * (z * z).sum(1) - 0.5 * y.shape[1] * math.log(2 * math.pi)


def golden(name: str) -> dict[str, Tensor]:
    """The arrays of one golden file."""
    with np.load(GOLDEN / f"{name}.npz") as arrays:
        return {key: torch.from_numpy(arrays[key]) for key in arrays.files}


def weights_of(arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    """The network's parameters among the arrays, under the network's own names."""
    return {key.removeprefix("w/"): value for key, value in arrays.items() if key.startswith("w/")}


def two_moons_surrogate() -> Coupling:
    """The trained two-moons surrogate, frozen."""
    flow = Coupling()
    flow.load_state_dict(weights_of(golden("coupling_two_moons")))
    return flow.requires_grad_(False)
