"""Trains a PyTorch generator of your own on observations: L_K and its gradient through a surrogate are all it needs.

    pip install .[torch] && python python/examples/torch_generator.py
"""

from __future__ import annotations

import torch

import neb
import neb.torch


def main(steps: int = 400) -> tuple[neb.Comparison, neb.Comparison]:
    """Two-moons; how well y of the generator is told from the observations before and after."""
    problem = neb.simulators.TwoMoons()
    surrogate = neb.Surrogate("mixture", epochs=30).fit(*problem.pairs(6000))
    _, observed = problem.observations(3000, seed=2)
    y = torch.from_numpy(observed)

    torch.manual_seed(1)
    generator = torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.SiLU(), torch.nn.Linear(64, 64), torch.nn.SiLU(), torch.nn.Linear(64, 2)
    )

    def judge() -> neb.Comparison:
        with torch.no_grad():
            x = generator(torch.randn(len(observed), 2)).numpy()
        return neb.compare(surrogate.sample(x), observed)

    before = judge()
    optimiser = torch.optim.Adam(generator.parameters(), lr=3e-3)
    for _ in range(steps):
        batch = y[torch.randint(len(y), (256,))]
        x = generator(torch.randn(2048, 2))
        loss = -neb.torch.log_marginal(batch, x, surrogate)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return before, judge()


if __name__ == "__main__":
    before, after = main()
    print("before:", before)
    print("after: ", after)
