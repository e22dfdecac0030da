"""How a figure is taken, and how it is printed: one JSON object per line."""

import json
import sys
import time
from collections.abc import Callable
from statistics import median

import torch


def measure(work: Callable[[], object], repeats: int = 7, warm_up: int = 2) -> float:
    """Median seconds of `work` over `repeats` calls, after `warm_up` calls that don't count."""
    for _ in range(warm_up):
        work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def fastest(candidates: dict[str, Callable[[], object]], **how) -> tuple[str, float]:
    """The name and the seconds of the fastest candidate; each one's figure goes out as a note."""
    seconds = {variant: measure(work, **how) for variant, work in candidates.items()}
    for variant, value in seconds.items():
        note(f"{variant}: {value * 1e3:.2f} ms")
    best = min(seconds, key=seconds.__getitem__)
    return best, seconds[best]


def emit(name: str, seconds: float, **more) -> None:
    """Prints one result line; `more` holds whatever else the reader may want (variant, gflops)."""
    line = {"name": name, "seconds": seconds, "threads": torch.get_num_threads(), **more}
    print(json.dumps(line), flush=True)


def note(text: str) -> None:
    """Words for the person watching; results go to standard output only."""
    print(f"  {text}", file=sys.stderr, flush=True)
