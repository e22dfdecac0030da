"""The targets, and the table that says how far the measured figures meet them."""

from dataclasses import dataclass

# (side, name, threads) -> seconds, with side "torch" or "neb".
Figures = dict[tuple[str, str, int], float]

PAIRS, SAMPLES, LAYERS, NETS = 128 * 1024, 1024, 4, 2
# Per network: y's share of the first layer, the 50 x 50 layer and the output for every pair, and
# x's share of the first layer once per x_k; a multiply-add counts as two operations.
FORWARD_FLOPS = 2 * LAYERS * NETS * (PAIRS * (50 + 50 * 50 + 50) + SAMPLES * 2 * 50)
PEAK_FLOPS = 2 * 2048**3

# neb's case, PyTorch's figure, how many times as fast neb must be (None: shown only).
RATIOS = [
    ("pairs", "pairs_eager", 15.0),
    ("pairs", "pairs_tuned", 9.0),
    ("pairs", "pairs_dense", None),
    ("pairs", "pairs_sparse", None),
    ("pairs_forward", "pairs_forward", None),
    ("train_epoch", "train_epoch", 9.0),
    ("umnn_step", "umnn_step", 8.0),
    ("elbo_step", "elbo_step", 8.0),
    ("iw_step", "iw_step", 8.0),
]
PEAK_SHARE = 0.80
TWO_THREADS = 1.8


@dataclass(frozen=True)
class Row:
    """One comparison; what was not measured is None."""

    work: str
    torch: float | None
    neb: float | None
    value: float | None
    unit: str
    target: float | None

    @property
    def missed(self) -> bool:
        return self.target is not None and (self.value is None or self.value < self.target)

    def cells(self) -> list[str]:
        value = "-" if self.value is None else f"{self.value:.2f}{self.unit}"
        target = "" if self.target is None else f">= {self.target:g}{self.unit}"
        if self.target is not None:
            verdict = "missed" if self.missed else "met"
            target += " not measured" if self.value is None else f" {verdict}"
        return [self.work, milliseconds(self.torch), milliseconds(self.neb), value, target]


def milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.2f}"


def quotient(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a / b


def rows(figures: Figures, cases: set[str]) -> list[Row]:
    """The comparisons of these neb cases."""
    tuned = [figures.get(("torch", form, 1)) for form in ("pairs_dense", "pairs_sparse")]
    if None not in tuned:
        figures = {**figures, ("torch", "pairs_tuned", 1): min(tuned)}
    table = []
    for neb, torch, target in RATIOS:
        theirs, ours = figures.get(("torch", torch, 1)), figures.get(("neb", neb, 1))
        name = neb if neb == torch else f"{neb} (against {torch})"
        table.append((neb, Row(name, theirs, ours, quotient(theirs, ours), "x", target)))
    peak = quotient(PEAK_FLOPS, figures.get(("torch", "peak", 1)))
    shares = []
    for side in ("torch", "neb"):
        seconds = figures.get((side, "pairs_forward", 1))
        shares.append((seconds, quotient(quotient(FORWARD_FLOPS, seconds), peak)))
    (theirs, their_share), (ours, our_share) = shares
    work = "pairs_forward, share of peak"
    table.append(("pairs_forward", Row(f"{work}, PyTorch", theirs, None, their_share, "", None)))
    table.append(("pairs_forward", Row(f"{work}, neb", None, ours, our_share, "", PEAK_SHARE)))
    one, two = figures.get(("neb", "pairs", 1)), figures.get(("neb", "pairs", 2))
    work = "pairs, neb on two threads against one"
    table.append(("pairs", Row(work, None, two, quotient(one, two), "x", TWO_THREADS)))
    return [row for case, row in table if case in cases]


def show(table: list[Row], figures: Figures) -> str:
    lines = []
    for threads in (1, 2):
        if seconds := figures.get(("torch", "peak", threads)):
            gflops = PEAK_FLOPS / seconds / 1e9
            lines.append(f"peak on {threads} thread(s): {gflops:.0f} GFLOPS")
    cells = [["work", "PyTorch ms", "neb ms", "ratio", "target"]] + [row.cells() for row in table]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)
