"""One epoch of stage 1: the paper's surrogate trained on pairs (x, y) of two-moons.

15 000 pairs, batches of 128 in a new random order, Adam 1e-4, weight decay 5e-5.
"""

import math

import torch
from torch import Tensor

from coupling import Coupling
from timing import emit, fastest

PAIRS, BATCH = 15_000, 128


def two_moons(n: int) -> tuple[Tensor, Tensor]:
    """x ~ N(0, I) and y from the simulator."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(n, 2, generator=random)
    angle = math.pi * (torch.rand(n, generator=random) - 0.5)
    radius = 0.1 + 0.01 * torch.randn(n, generator=random)
    crescent = torch.stack([radius * angle.cos() + 0.25, radius * angle.sin()], 1)
    shift = torch.stack([-(x[:, 0] + x[:, 1]).abs(), x[:, 1] - x[:, 0]], 1) / math.sqrt(2)
    return x, crescent + shift


def epoch(flow: Coupling, optimiser: torch.optim.Optimizer, x: Tensor, y: Tensor) -> None:
    for rows in torch.randperm(len(x)).split(BATCH):
        optimiser.zero_grad(set_to_none=True)
        (-flow.log_prob(y[rows], x[rows]).mean()).backward()
        optimiser.step()


def run() -> None:
    torch.manual_seed(0)
    x, y = two_moons(PAIRS)
    candidates = {}
    for variant, options in {
        "default": {},
        "foreach": {"foreach": True},
        "fused": {"fused": True},
    }.items():
        flow = Coupling()
        adam = torch.optim.Adam(flow.parameters(), lr=1e-4, weight_decay=5e-5, **options)
        candidates[variant] = lambda flow=flow, adam=adam: epoch(flow, adam, x, y)
    variant, seconds = fastest(candidates, repeats=5, warm_up=1)
    steps = math.ceil(PAIRS / BATCH)
    emit("train_epoch", seconds, variant=variant, seconds_per_step=seconds / steps)
