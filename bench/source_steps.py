"""One training step of stage 2 with the paper's UMNN source, two-moons, surrogate frozen.

`umnn_step`: L_K with K = 1024 samples shared by a batch of 128, source z -> x.
`elbo_step`, `iw_step` (K = 16): source x -> z, recognition z, y -> x, both trained.
Each step is forward, backward and Adam.
"""

import math

import torch
from torch import Tensor

from coupling import two_moons_surrogate
from pairs import OBSERVATIONS, SAMPLES, Tuned, best_block, minibatch
from timing import emit, fastest
from umnn import Umnn, log_normal

IMPORTANCE_SAMPLES = 16


def adam(*models: Umnn) -> torch.optim.Optimizer:
    parameters = [parameter for model in models for parameter in model.parameters()]
    return torch.optim.Adam(parameters, lr=1e-4, fused=True)


def run_mc() -> None:
    torch.manual_seed(0)
    y, x = minibatch()
    tuned = Tuned(two_moons_surrogate())
    block = best_block(tuned.sparse, y, x)
    source = Umnn(dim=2)
    optimiser = adam(source)

    def step(rows_per_graph: int) -> None:
        """One step; the source's graph is kept in parts of this many rows."""
        optimiser.zero_grad(set_to_none=True)
        parts = torch.randn(SAMPLES, 2).split(rows_per_graph)
        samples = [source(part, density=False)[0] for part in parts]
        _, gradient = tuned.sparse(y, torch.cat(samples).detach(), block)
        torch.autograd.backward(samples, list((-gradient / OBSERVATIONS).split(rows_per_graph)))
        optimiser.step()

    candidates = {f"{rows} rows": lambda rows=rows: step(rows) for rows in (128, 256, 512, 1024)}
    variant, seconds = fastest(candidates, repeats=5, warm_up=1)
    emit("umnn_step", seconds, variant=variant)


def run_variational(name: str, samples: int) -> None:
    """L = mean over y of log (1/K) sum_k q(y|x_k) q(x_k) / q(x_k|y), x_k ~ q(x|y)."""
    torch.manual_seed(0)
    observations, _ = minibatch()
    y = observations.repeat_interleave(samples, 0)
    surrogate = two_moons_surrogate()
    source, recognition = Umnn(dim=2), Umnn(dim=2, context=2)
    optimiser = adam(source, recognition)

    def log_ratio(y: Tensor) -> Tensor:
        noise = torch.randn(len(y), 2)
        x, log_jacobian = recognition(noise, y)
        log_posterior = log_normal(noise) - log_jacobian
        z, log_jacobian = source(x)
        log_source = log_normal(z) + log_jacobian
        return surrogate.log_prob(y, x) + log_source - log_posterior

    def step(rows_per_graph: int) -> None:
        """One step, in parts of this many rows (whole observations)."""
        optimiser.zero_grad(set_to_none=True)
        for part in y.split(rows_per_graph):
            log_mean = log_ratio(part).view(-1, samples).logsumexp(1) - math.log(samples)
            (-log_mean.sum() / OBSERVATIONS).backward()
        optimiser.step()

    sizes = [rows for rows in (64, 128, 256, 512, 2048) if rows <= len(y)]
    candidates = {f"{rows} rows": lambda rows=rows: step(rows) for rows in sizes}
    variant, seconds = fastest(candidates, repeats=3, warm_up=1)
    emit(name, seconds, variant=variant)


def run_elbo() -> None:
    run_variational("elbo_step", samples=1)


def run_iw() -> None:
    run_variational("iw_step", samples=IMPORTANCE_SAMPLES)
