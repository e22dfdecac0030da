"""The PyTorch side of the speed ratios: one JSON line per figure on standard output.

    {"name": "pairs_forward", "seconds": 0.13, "threads": 1, ...}

`seconds` is the median over repeats after a warm-up. Usage: reference.py CASE.. [--threads N]
"""

import argparse

import torch

import pairs
import peak
import source_steps
import train

CASES = {
    "peak": peak.run,
    "pairs_eager": pairs.run_eager,
    "pairs": pairs.run_tuned,
    "pairs_forward": pairs.run_forward,
    "train_epoch": train.run,
    "umnn_step": source_steps.run_mc,
    "elbo_step": source_steps.run_elbo,
    "iw_step": source_steps.run_iw,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", choices=list(CASES), metavar="CASE")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)
    for case in arguments.cases:
        CASES[case]()


if __name__ == "__main__":
    main()
