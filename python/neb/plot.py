"""Figures, with matplotlib, which must be installed.

Every function returns a `matplotlib.figure.Figure` and shows nothing by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrays
from ._errors import NebValueError
from ._posterior import Calibration
from ._run import Run
from ._source import Source
from ._unfold import Spectrum

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

    Examples
    --------
    >>> import neb.plot, numpy as np
    >>> figure = neb.plot.corner(np.random.default_rng(1).normal(size=(500, 2)), names=["mass", "width"])
    >>> [ax.get_xlabel() for ax in figure.axes if ax.get_xlabel()]
    ['mass', 'width']
    """
    x, names = _arrays.named("x", x, names)
    dim = x.shape[1]
    other = None if truth is None else _arrays.checked("truth", truth, names, "x has")
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
    x: Any,
    edges: Any = None,
    *,
    truth: Any = None,
    truth_weights: Any = None,
    weights: Any = None,
    name: str | None = None,
    density: bool = False,
) -> Any:
    """One quantity in bins, with the error of each, and ratios.

    Parameters
    ----------
    x : array_like or Spectrum
        One column, or a frame that has the column `name`; or a spectrum that `unfold` found, which is drawn with its errors
        beside iterative Bayesian unfolding, the data and the simulation.
    edges : array_like
        Edges of the bins; a `Spectrum` has its own.
    truth : array_like, optional
        The same quantity of another sample, scaled to the same total: the ratios are to it. Those of a `Spectrum` without
        a truth are to the simulation.
    weights, truth_weights : array_like, optional
        One weight per row.
    name : str, optional
        What it is.
    density : bool
        Divide by the widths of the bins.

    Examples
    --------
    >>> import neb.plot
    >>> neb.plot.spectrum([0.1, 0.2, 0.7], [0, 0.5, 1]).axes[0].get_ylabel()
    'events'
    """
    lines: dict[str, Any] = {}
    column = name
    if isinstance(x, Spectrum):
        if edges is not None or weights is not None:
            raise NebValueError("a Spectrum has its own edges and weights", "leave `edges` and `weights` out")
        edges, column, name = x.edges, x.name, name or x.name
        labels = {"unfolded": "unfolded", "ibu": "IBU"}
        shown = {label: (x.values[key], x.error(key)) for key, label in labels.items() if key in x.values}
        lines.update((key, x.values[key]) for key in ("simulation", "data") if key in x.values)
    else:
        if edges is None:
            raise NebValueError("the edges of the bins are missing", "give spectrum(x, edges)")
        edges = _arrays.shaped("edges", edges).astype(np.float64).reshape(-1)
        if len(edges) < 2 or not (np.diff(edges) > 0).all():
            raise NebValueError(f"edges are {edges.tolist()}", "give two or more, each greater than the one before")
        shown = {"sample": _counted("x", x, column, edges, "weights", weights)}
    if truth is not None:
        lines = {"truth": _counted("truth", truth, column, edges, "truth_weights", truth_weights)[0]} | lines
    elif truth_weights is not None:
        raise NebValueError("there are truth_weights but no truth", "give truth too")
    total = sum(next(iter(shown.values()))[0])
    if truth is not None and lines["truth"].sum() > 0:
        lines["truth"] = lines["truth"] * (total / lines["truth"].sum())
    widths = np.diff(edges) if density else np.ones(len(edges) - 1)
    figure = _figure(figsize=(5.0, 4.2))
    ax, ratio = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1]) if lines else (figure.subplots(), None)
    for (label, line), colour in zip(lines.items(), ("black", "0.5", "tab:green")):
        ax.stairs(line / widths, edges, color=colour, label=label)
    centres, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    for (label, (values, errors)), colour in zip(shown.items(), ("tab:blue", "tab:orange")):
        ax.errorbar(centres, values / widths, errors / widths, half, fmt=".", color=colour, label=label)
        if ratio is not None:
            base = next(iter(lines.values()))
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio.errorbar(centres, values / base, errors / base, half, fmt=".", color=colour)
    if ratio is not None:
        ratio.axhline(1.0, color="black", linewidth=0.8)
        ratio.set_ylabel(f"ratio to {next(iter(lines))}")
    figure.axes[-1].set_xlabel(name or "x")
    ax.set_ylabel("events per unit" if density else "events")
    ax.legend(fontsize="small")
    return figure


def _counted(role: str, values: Any, name: str | None, edges: Any, weights_role: str, weights: Any) -> tuple[Any, Any]:
    """Sums of weights in bins, and the roots of the sums of their squares; a frame may have other columns than `name`."""
    by_name = name is not None and name in (_arrays.names_of(values) or [])
    rows = _arrays.checked(role, values, [name]) if name is not None and by_name else _arrays.table(role, values)
    if rows.shape[1] != 1:
        raise NebValueError(
            f"array `{role}` has {rows.shape[1]} columns; a spectrum is of one", "give one, or a frame and the `name` of its column"
        )
    w = np.ones(len(rows)) if weights is None else _arrays.column(weights_role, weights, len(rows)).astype(np.float64)
    return np.histogram(rows[:, 0], edges, weights=w)[0], np.sqrt(np.histogram(rows[:, 0], edges, weights=w**2)[0])
