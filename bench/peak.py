"""What the machine can do: the speed of one large f32 matrix product."""

import torch

from timing import emit, measure

SIZE = 2048


def run() -> None:
    a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    out = torch.empty(SIZE, SIZE)
    seconds = measure(lambda: torch.mm(a, b, out=out), 7, 2)
    emit("peak", seconds, gflops=2 * SIZE**3 / seconds / 1e9)
