"""PyTorch and neb on the same work, the same cores, in turns; then the table of ratios.

    bench/.venv/bin/python bench/compare.py [--rounds 3] [--only pairs,train_epoch] [--json FILE]

Both sides print JSON lines {"name", "seconds", "threads"} with medians over repeats. A round runs
every case on both sides, one next to the other; the table shows the best round of each side, the
one least disturbed by whatever else the machine does. Both sides are pinned to the same cores
(`taskset`, where there is one).

Exit status 0 if every target is met, 1 if one is missed or could not be measured.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from table import Figures, rows, show

ROOT = Path(__file__).resolve().parents[1]
CARGO = ["--release", "--quiet", "--package", "neb", "--example", "bench"]
PROGRAMS = {
    "torch": [sys.executable, str(ROOT / "bench" / "reference.py")],
    "neb": ["cargo", "run", *CARGO, "--"],
}


class Run(NamedTuple):
    side: str
    case: str
    threads: int = 1


SCHEDULE = [
    Run("torch", "peak"),
    Run("torch", "peak", 2),
    Run("neb", "pairs_forward"),
    Run("torch", "pairs_forward"),
    Run("torch", "pairs_eager"),
    Run("neb", "pairs"),
    Run("torch", "pairs"),
    Run("neb", "pairs", 2),
    Run("torch", "train_epoch"),
    Run("neb", "train_epoch"),
    Run("torch", "umnn_step"),
    Run("neb", "umnn_step"),
    Run("torch", "elbo_step"),
    Run("neb", "elbo_step"),
    Run("torch", "iw_step"),
    Run("neb", "iw_step"),
]
# PyTorch's cases that serve another case's comparison.
SERVES = {"peak": "pairs_forward", "pairs_eager": "pairs"}


def pinned(threads: int) -> list[str]:
    """Keeps a program on the first `threads` of the cores we may use."""
    if shutil.which("taskset") is None:
        return []
    cores = sorted(os.sched_getaffinity(0))[:threads]
    return ["taskset", "-c", ",".join(map(str, cores))]


def execute(run: Run) -> dict[str, float]:
    """Seconds by name; empty, with a word to standard error, if the case cannot be run."""
    command = [*pinned(run.threads), *PROGRAMS[run.side], run.case, "--threads", str(run.threads)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(f"{run.side} {run.case}: exit status {done.returncode}", file=sys.stderr)
        return {}
    seconds = {}
    for line in map(json.loads, done.stdout.splitlines()):
        if line["threads"] != run.threads:
            raise SystemExit(f"error: {run} reports {line['threads']} threads")
        seconds[line["name"]] = line["seconds"]
    return seconds


def measure(schedule: list[Run], rounds: int) -> Figures:
    """The best of the rounds for every figure."""
    figures: Figures = {}
    for number in range(1, rounds + 1):
        for run in schedule:
            print(f"round {number}: {run.side} {run.case}", file=sys.stderr)
            for name, seconds in execute(run).items():
                key = (run.side, name, run.threads)
                figures[key] = min(seconds, figures.get(key, seconds))
    return figures


def main() -> int:
    every_case = {run.case for run in SCHEDULE if run.side == "neb"}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help=f"comma-separated, of {', '.join(sorted(every_case))}")
    parser.add_argument("--json", type=Path, help="also write every figure to this file")
    arguments = parser.parse_args()
    cases = set(arguments.only.split(",")) if arguments.only else every_case
    if unknown := cases - every_case:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")

    subprocess.run([sys.executable, str(ROOT / "bench" / "check.py")], check=True)
    subprocess.run(["cargo", "build", *CARGO], cwd=ROOT, check=True)
    schedule = [run for run in SCHEDULE if SERVES.get(run.case, run.case) in cases]
    figures = measure(schedule, arguments.rounds)

    if arguments.json:
        lines = [dict(zip(("side", "name", "threads", "seconds"), (*key, value), strict=True))
                 for key, value in figures.items()]
        arguments.json.write_text(json.dumps(lines, indent=1) + "\n")
    table = rows(figures, cases)
    print(show(table, figures))
    return 1 if any(row.missed for row in table) else 0


if __name__ == "__main__":
    sys.exit(main())
