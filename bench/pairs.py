"""log q(y_i|x_k) for every pair of a minibatch and K shared samples, L_K, and dL_K/dx_k.

L_K(y_i) = logsumexp_k log q(y_i|x_k) - log K. `eager` is what one writes first: every pair becomes
a row. `Tuned` is the best we found: x's share of each first layer is computed once per x_k and
broadcast, blocks of pairs fit the cache, no weight has a gradient; and, in its sparse form, only
pairs with a softmax share above 1e-7 are differentiated.
"""

import math

import torch
from torch import Tensor

from coupling import CLAMP, Coupling, golden, two_moons_surrogate
from timing import emit, measure

OBSERVATIONS, SAMPLES = 128, 1024
SHARE_THRESHOLD = 1e-7


def minibatch() -> tuple[Tensor, Tensor]:
    """y: the first rows of the golden file; x: a low-discrepancy sequence on the source's box.

    x_k = 2 frac(k (0.7548776662466927, 0.5698402909980532)) - 1, k = 1, 2, ..: neb's side of the
    comparison makes the same numbers.
    """
    y = golden("coupling_two_moons")["y"][:OBSERVATIONS]
    k = torch.arange(1, SAMPLES + 1, dtype=torch.float64)[:, None]
    steps = torch.tensor([0.7548776662466927, 0.5698402909980532], dtype=torch.float64)
    return y, (2 * torch.frac(k * steps) - 1).float()


def eager(flow: Coupling, y: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """log q for every pair, and the gradient of the sum of L_K(y_i) with respect to x."""
    x = x.detach().requires_grad_()
    rows = flow.log_prob(y.repeat_interleave(len(x), 0), x.repeat(len(y), 1))
    log_q = rows.view(len(y), len(x))
    (log_q.logsumexp(1) - math.log(len(x))).sum().backward()
    return log_q.detach(), x.grad


class Tuned:
    """The same with the first layers split, for observations of two dimensions."""

    def __init__(self, flow: Coupling) -> None:
        nets = [net for layer in flow.layers for net in (layer.s, layer.t)]
        self.nets = [(net[0], net[2], net[4]) for net in nets]
        self.from_x = torch.cat([first.weight[:, 1:] for first, _, _ in self.nets]).t().contiguous()
        self.biases = torch.cat([first.bias for first, _, _ in self.nets])
        self.from_y = [first.weight[:, 0].contiguous() for first, _, _ in self.nets]

    def shares_of(self, x: Tensor) -> list[Tensor]:
        """What x contributes to the first layer of every network: one K x 50 table each."""
        shares = torch.addmm(self.biases, x, self.from_x)
        return [share.contiguous() for share in shares.chunk(len(self.nets), 1)]

    def log_prob(self, y: Tensor, shares: list[Tensor], in_place: bool) -> Tensor:
        """log q(y|x) where y is (.., 2) and broadcasts against the rows of `shares`."""
        relu = torch.relu_ if in_place else torch.relu
        first, last = y[..., 0], y[..., 1]
        log_jacobian = 0.0
        for layer in range(0, len(self.nets), 2):
            first, last = last, first
            outputs = []
            for net in (layer, layer + 1):
                _, middle, final = self.nets[net]
                hidden = relu(torch.addcmul(shares[net], first[..., None], self.from_y[net]))
                shape = hidden.shape[:-1]
                hidden = relu(torch.addmm(middle.bias, hidden.view(-1, 50), middle.weight.t()))
                output = torch.addmm(final.bias, hidden, final.weight.t())
                outputs.append(output.view(shape))
            s = torch.atan(outputs[0] * (1 / CLAMP)) * (2 * CLAMP / math.pi)
            last = torch.addcmul(outputs[1], last, torch.exp(s))
            log_jacobian = log_jacobian + s
        return log_jacobian - 0.5 * (first * first + last * last) - math.log(2 * math.pi)

    def forward(self, y: Tensor, x: Tensor, block: int) -> Tensor:
        """log q for every pair, `block` observations at a time."""
        with torch.inference_mode():
            shares = self.shares_of(x)
            blocks = y[:, None, :].split(block)
            return torch.cat([self.log_prob(rows, shares, in_place=True) for rows in blocks])

    def dense(self, y: Tensor, x: Tensor, block: int) -> tuple[Tensor, Tensor]:
        """Every pair differentiated, block by block."""
        x = x.detach().requires_grad_()
        shares = self.shares_of(x)
        leaves = [share.detach().requires_grad_() for share in shares]
        log_q = []
        for rows in y[:, None, :].split(block):
            values = self.log_prob(rows, leaves, in_place=False)
            values.logsumexp(1).sum().backward()
            log_q.append(values.detach())
        torch.autograd.backward(shares, [leaf.grad for leaf in leaves])
        return torch.cat(log_q), x.grad

    def sparse(self, y: Tensor, x: Tensor, block: int) -> tuple[Tensor, Tensor]:
        """Only the pairs that matter differentiated, with their softmax shares as weights."""
        log_q = self.forward(y, x, block)
        weights = torch.softmax(log_q, 1)
        i, k = torch.nonzero(weights > SHARE_THRESHOLD, as_tuple=True)
        x = x.detach().requires_grad_()
        rows = self.log_prob(y[i], [share[k] for share in self.shares_of(x)], in_place=False)
        rows.backward(weights[i, k].clone())
        return log_q, x.grad


def relative(a: Tensor, b: Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def check(flow: Coupling) -> None:
    """The tuned programs give the eager one's values and gradients."""
    y, x = minibatch()
    tuned = Tuned(flow)
    log_q, gradient = eager(flow, y, x)
    for name, (values, dx) in {
        "dense": tuned.dense(y, x, 8),
        "sparse": tuned.sparse(y, x, 8),
    }.items():
        assert relative(values, log_q) < 1e-5, f"{name}: values off by {relative(values, log_q)}"
        assert relative(dx, gradient) < 3e-3, f"{name}: gradient off by {relative(dx, gradient)}"


def best_block(work, y: Tensor, x: Tensor) -> int:
    """The number of observations per block that runs fastest here (best of three, in turns)."""
    seconds = {block: [] for block in (2, 4, 8, 16)}
    for _ in range(4):
        for block, figures in seconds.items():
            figures.append(measure(lambda block=block: work(y, x, block), repeats=1, warm_up=0))
    return min(seconds, key=lambda block: min(seconds[block][1:]))


def run_eager() -> None:
    flow = two_moons_surrogate()
    y, x = minibatch()
    emit("pairs_eager", measure(lambda: eager(flow, y, x), 5, 1))


def run_tuned() -> None:
    flow = two_moons_surrogate()
    check(flow)
    tuned = Tuned(flow)
    y, x = minibatch()
    for variant, work in {"dense": tuned.dense, "sparse": tuned.sparse}.items():
        block = best_block(work, y, x)
        emit(f"pairs_{variant}", measure(lambda: work(y, x, block)), block=block)


def run_forward() -> None:
    tuned = Tuned(two_moons_surrogate())
    y, x = minibatch()
    block = best_block(tuned.forward, y, x)
    emit("pairs_forward", measure(lambda: tuned.forward(y, x, block)), block=block)
