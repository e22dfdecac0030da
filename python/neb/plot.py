"""Figures, with matplotlib, which must be installed.

Every function returns a `matplotlib.figure.Figure` and shows nothing by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrays
from ._posterior import Calibration
from ._run import Run
from ._source import Source

__all__ = ["corner", "calibration", "history", "spectrum"]


def _figure(**options: Any) -> Any:
    # Not pyplot, whose windows would have to be closed.
    from matplotlib.figure import Figure

    return Figure(layout="constrained", **options)


def corner(x: Any, *, truth: Any = None, names: Sequence[str] | None = None, bins: int = 40) -> Any:
    """Every column and every pair of columns of a sample, with a second one (`truth`) as outlines.

    Parameters
    ----------
    x : array_like
        Draws.
    truth : array_like, optional
        Other draws to set beside them.
    names : sequence of str, optional
        Names of the columns.
    bins : int
    """
    names = list(names or _arrays.names_of(x) or [])
    x = _arrays.table("x", x)
    dim = x.shape[1]
    names = names or _arrays.default_names("x", dim)
    other = None if truth is None else _arrays.checked("truth", truth, names)
    shown = x if other is None else np.concatenate([x, other])
    low, high = np.quantile(shown, 0.001, axis=0), np.quantile(shown, 0.999, axis=0)
    figure = _figure(figsize=(2.2 * dim + 0.6, 2.2 * dim + 0.4))
    axes = figure.subplots(dim, dim, squeeze=False)
    for row in range(dim):
        for column in range(dim):
            ax = axes[row, column]
            span = (float(low[column]), float(high[column]))
            if column > row:
                ax.axis("off")
                continue
            if row == column:
                ax.hist(x[:, column], bins, range=span, density=True, color="tab:blue", alpha=0.6)
                if other is not None:
                    ax.hist(other[:, column], bins, range=span, density=True, histtype="step", color="black")
                ax.set_yticks([])
            else:
                edges = [span, (float(low[row]), float(high[row]))]
                ax.hist2d(x[:, column], x[:, row], bins, range=edges, cmap="Blues")
                if other is not None:
                    counts, a, b = np.histogram2d(other[:, column], other[:, row], bins // 2, range=edges)
                    centres = [(e[1:] + e[:-1]) / 2 for e in (a, b)]
                    if counts.max() > 0:
                        ax.contour(*centres, counts.T, levels=3, colors="black", linewidths=0.7)
            if row == dim - 1:
                ax.set_xlabel(names[column])
            if column == 0 and row > 0:
                ax.set_ylabel(names[row])
    return figure


def calibration(result: Calibration) -> Any:
    """Fraction of events whose rank lies below each level, with the band that exact posteriors stay in."""
    levels = np.array(result.details["levels"])
    figure = _figure(figsize=(4.2, 4.0))
    ax = figure.subplots()
    limit = result.ks_limit
    ax.fill_between(levels, levels - limit, levels + limit, color="0.9", label="95 % if exact")
    for name, marginal in zip(result.x_names, result.details["marginals"]):
        ax.plot(levels, marginal["curve"]["below"], label=name)
    ax.plot(levels, result.details["coverage"]["below"], "--", color="black", label="joint")
    ax.set(xlabel="level", ylabel="fraction of events below", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(fontsize="small")
    return figure


def history(fitted: Source | Run) -> Any:
    """The losses of every training, epoch by epoch."""
    rows = fitted.history
    stages = [stage for stage in ("surrogate", "source") if any(row["stage"] == stage for row in rows)]
    figure = _figure(figsize=(4.5 * max(len(stages), 1), 3.2))
    axes = figure.subplots(1, max(len(stages), 1), squeeze=False)[0]
    labels = {"surrogate": "mean of -log q(y|x)", "source": "mean of -log p(y)"}
    for ax, stage in zip(axes, stages):
        for rung in dict.fromkeys(row["rung"] for row in rows if row["stage"] == stage):
            own = [row for row in rows if row["stage"] == stage and row["rung"] == rung]
            losses = [row["held_out"] if row["held_out"] is not None else row["train"] for row in own]
            ax.plot([row["epoch"] for row in own], losses, label=rung)
        ax.set(title=stage, xlabel="epoch", ylabel=labels[stage])
        ax.legend(fontsize="x-small")
    return figure


def spectrum(
    x: Any, edges: Any, *, truth: Any = None, weights: Any = None, name: str = "x", density: bool = False
) -> Any:
    """One quantity in bins, with the statistical error of each, and the ratio to `truth` where it is given.

    Parameters
    ----------
    x : array_like
        One column.
    edges : array_like
        Edges of the bins.
    truth : array_like, optional
        The same quantity of another sample, scaled to the same total.
    weights : array_like, optional
        One weight per row of x.
    name : str
        What it is.
    density : bool
        Divide by the widths of the bins.
    """
    x = _arrays.table("x", x)[:, 0]
    edges = np.asarray(edges, dtype=np.float64)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    widths = np.diff(edges) if density else np.ones(len(edges) - 1)
    counts = np.histogram(x, edges, weights=w)[0] / widths
    errors = np.sqrt(np.histogram(x, edges, weights=w**2)[0]) / widths
    centres, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    figure = _figure(figsize=(5.0, 4.2))
    if truth is None:
        ax = figure.subplots()
        ax.set_xlabel(name)
    else:
        ax, ratio = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        other = np.histogram(_arrays.table("truth", truth)[:, 0], edges)[0] / widths
        total = (other * widths).sum()
        other = other * ((counts * widths).sum() / total if total > 0 else 1.0)
        ax.stairs(other, edges, color="black", label="truth")
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio.errorbar(centres, counts / other, errors / other, half, fmt=".", color="tab:blue")
        ratio.axhline(1.0, color="black", linewidth=0.8)
        ratio.set(xlabel=name, ylabel="ratio")
    ax.errorbar(centres, counts, errors, half, fmt=".", color="tab:blue", label="sample")
    ax.set_ylabel("events per unit" if density else "events")
    ax.legend(fontsize="small")
    return figure
