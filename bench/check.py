"""The reference programs compute what the authors' code computes: checked before any is timed.

The golden values are float64 outputs of the authors' PyTorch code (crates/neb/tests/golden).
"""

import torch
from torch import Tensor

import pairs
from coupling import Coupling, golden, two_moons_surrogate, weights_of
from umnn import Umnn, log_normal


# The golden files' weight gradients agree with a float64 computation to 3e-4 only (their README).
WEIGHT_GRADIENTS = 5e-4


def close(what: str, found: Tensor, wanted: Tensor, tolerance: float) -> None:
    error = ((found - wanted).norm() / wanted.norm()).item()
    assert error < tolerance, f"{what}: relative error {error:.1e}, above {tolerance:.0e}"


def check_coupling(name: str) -> None:
    arrays = golden(name)
    y, x = arrays["y"].double(), arrays["x"].double().requires_grad_()
    flow = Coupling(y.shape[1], x.shape[1]).double()
    flow.load_state_dict(weights_of(arrays))
    z, log_jacobian = flow(y, x)
    log_q = flow.log_prob(y, x)
    close(f"{name} z", z, arrays["z"], 1e-10)
    close(f"{name} logjac", log_jacobian, arrays["logjac"], 1e-10)
    close(f"{name} ll", log_q, arrays["ll"], 1e-10)
    (gradient,) = torch.autograd.grad(log_q.sum(), x, retain_graph=True)
    close(f"{name} gradx", gradient, arrays["gradx"], 1e-10)
    (-log_q.mean()).backward()
    for key, weight in flow.named_parameters():
        close(f"{name} g_meanNLL/{key}", weight.grad, arrays[f"g_meanNLL/{key}"].double(), 1e-5)


def check_umnn(name: str) -> None:
    arrays = golden(name)
    z, c = arrays["z"].double().requires_grad_(), arrays["c"].double()
    y = arrays["context"].double() if "context" in arrays else None
    flow = Umnn(z.shape[1], 0 if y is None else y.shape[1])
    flow.load_golden(arrays)
    flow.double()
    x, log_jacobian = flow(z, y)
    close(f"{name} x", x, arrays["x"], 1e-6)
    close(f"{name} logjac", log_jacobian, arrays["logjac"], 1e-6)
    close(f"{name} computell", log_normal(x) + log_jacobian, arrays["computell"], 1e-6)
    (gradient,) = torch.autograd.grad(log_jacobian.sum(), z, retain_graph=True)
    close(f"{name} gradz_logjac", gradient, arrays["gradz_logjac"], 1e-5)
    (c * x).sum().backward()
    close(f"{name} gradz", z.grad, arrays["gradz"], 1e-5)
    for number, flow_of in enumerate(flow.flows):
        for ours, theirs in {"made": "made.net", "integrand": "parallel_nets.net"}.items():
            for key, weight in getattr(flow_of, ours).named_parameters():
                wanted = arrays[f"g_sum_cx/Flow{number}.net.{theirs}.{key}"].double()
                close(f"{name} flow {number} {ours}.{key}", weight.grad, wanted, WEIGHT_GRADIENTS)


def main() -> None:
    for name in ("coupling_two_moons", "coupling_slcp", "coupling_ik"):
        check_coupling(name)
    for name in ("umnn_ik", "umnn_slcp_given_y"):
        check_umnn(name)
    pairs.check(two_moons_surrogate())


if __name__ == "__main__":
    main()
