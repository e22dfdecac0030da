"""UMNN-MAF: x_i = beta_i(h_i) + integral from 0 to z_i of f(t, h_i) dt, h_i a function of z_<i.

The embedding h comes from a MADE (ReLU), the integrand f > 0 from an MLP (LeakyReLU, ELU + 1 at
the end); the integral is a Clenshaw-Curtis sum. As in the authors' code the gradient of the sum is
taken with respect to h and the weights, while d/dz_i is f(z_i, h_i) itself (Leibniz' rule), and the
log-Jacobian is the sum of log f(z_i, h_i). Faster than theirs: h's share of the integrand's first
layer is computed once and broadcast over the nodes, and nothing is computed twice.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

HIDDEN, EMBEDDING, STEPS, FLOWS = 75, 10, 20, 6


def clenshaw_curtis(steps: int) -> tuple[Tensor, Tensor]:
    """Nodes on [-1, 1], the first of them 1, and weights; exact for polynomials of this degree."""
    angles = torch.arange(steps + 1, dtype=torch.float64) * math.pi / steps
    even = torch.arange(0, steps + 1, 2, dtype=torch.float64)
    moments = 2 / (1 - even**2)
    ends = torch.ones_like(even)
    ends[0] = ends[-1] = 0.5
    weights = (torch.cos(angles[:, None] * even) * moments * ends).sum(1) * 2 / steps
    weights[0] /= 2
    weights[-1] /= 2
    return torch.cos(angles), weights


class MaskedLinear(nn.Linear):
    """A linear layer whose masked weights are held at zero."""

    def __init__(self, mask: Tensor) -> None:
        super().__init__(mask.shape[1], mask.shape[0])
        self.register_buffer("mask", mask)

    def forward(self, inputs: Tensor) -> Tensor:
        return functional.linear(inputs, self.weight * self.mask, self.bias)


def made(context: int, dim: int) -> nn.Sequential:
    """Output e * (context + dim) + i depends on the context and on the dimensions before i only."""
    inputs = torch.arange(context + dim)
    hidden = context + torch.arange(HIDDEN) % dim
    reads_inputs = (hidden[:, None] >= inputs).to(torch.uint8)
    reads_hidden = (hidden[:, None] >= hidden).to(torch.uint8)
    writes = (inputs.repeat(EMBEDDING)[:, None] > hidden).to(torch.uint8)
    return nn.Sequential(
        MaskedLinear(reads_inputs),
        nn.ReLU(inplace=True),
        MaskedLinear(reads_hidden),
        nn.ReLU(inplace=True),
        MaskedLinear(reads_hidden),
        nn.ReLU(inplace=True),
        MaskedLinear(writes),
    )


def integrand() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(1 + EMBEDDING, HIDDEN),
        nn.LeakyReLU(inplace=True),
        nn.Linear(HIDDEN, HIDDEN),
        nn.LeakyReLU(inplace=True),
        nn.Linear(HIDDEN, HIDDEN),
        nn.LeakyReLU(inplace=True),
        nn.Linear(HIDDEN, 1),
        nn.ELU(inplace=True),
    )


class Flow(nn.Module):
    def __init__(self, dim: int, context: int) -> None:
        super().__init__()
        self.context = context
        self.made = made(context, dim)
        self.integrand = integrand()
        nodes, weights = clenshaw_curtis(STEPS)
        self.register_buffer("nodes", (0.5 * (nodes + 1)).float(), persistent=False)
        self.register_buffer("weights", (0.5 * weights).float(), persistent=False)

    def evaluate(self, t: Tensor, share: Tensor) -> Tensor:
        """f at the points t (.., points), given what h contributes to the first layer."""
        from_t = self.integrand[0].weight[:, 0]
        first = torch.addcmul(share[..., None, :], t[..., None], from_t)
        return self.integrand[1:](first.view(-1, HIDDEN)).view(t.shape) + 1

    def forward(self, z: Tensor, y: Tensor | None, density: bool) -> tuple[Tensor, Tensor | None]:
        rows, dim = z.shape
        embedding = self.made(z if y is None else torch.cat([y, z], 1))
        h = embedding.view(rows, EMBEDDING, self.context + dim)[:, :, self.context :]
        first = self.integrand[0]
        share = functional.linear(h.transpose(1, 2), first.weight[:, 1:], first.bias)
        limit = z.detach()
        values = self.evaluate(limit[..., None] * self.nodes, share)
        at_limit = values[..., 0].detach()
        x = h[:, 0] + (values @ self.weights) * limit + (z - limit) * at_limit
        if not density:
            return x, None
        return x, torch.log(self.evaluate(z[..., None], share) + 1e-10).view(rows, dim).sum(1)


class Umnn(nn.Module):
    """Six flows, the order of the dimensions reversed between them."""

    def __init__(self, dim: int, context: int = 0) -> None:
        super().__init__()
        self.flows = nn.ModuleList(Flow(dim, context) for _ in range(FLOWS))

    def forward(self, z: Tensor, y: Tensor | None = None, density: bool = True):
        """x and, if `density`, log |dx/dz| (else None), row by row."""
        log_jacobian = 0.0 if density else None
        for number, flow in enumerate(self.flows):
            z, term = flow(z if number == 0 else z.flip(1), y, density)
            if density:
                log_jacobian = log_jacobian + term
        return z, log_jacobian

    def load_golden(self, arrays: dict[str, Tensor]) -> None:
        """Takes the weights of a golden file, which uses the authors' names."""
        renamed = {}
        for key, value in arrays.items():
            if not key.startswith("w/Flow") or ".net." not in key:
                continue
            number, layer = key.removeprefix("w/Flow").split(".net.", 1)
            layer = layer.replace("parallel_nets.net.", "integrand.").replace("made.net.", "made.")
            renamed[f"flows.{number}.{layer}"] = value
        self.load_state_dict(renamed)


def log_normal(z: Tensor) -> Tensor:
    """log N(z; 0, I), row by row."""
    return -0.5 * (z * z).sum(1) - 0.5 * z.shape[1] * math.log(2 * math.pi)
