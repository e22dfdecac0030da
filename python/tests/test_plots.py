"""Figures, the report, and what a notebook shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import neb
import neb.plot
from conftest import Array


def test_figures(run: neb.Run, observed: tuple[Array, Array]) -> None:
    truth, y = observed
    checked = neb.calibrate(run.posterior, truth[:100], y[:100], n=50)
    figures = {
        "corner": neb.plot.corner(run.source.sample(500), truth=truth, names=["a", "b"]),
        "calibration": neb.plot.calibration(checked),
        "history": neb.plot.history(run),
        "spectrum": neb.plot.spectrum(run.source.sample(500)[:, 0], np.linspace(-1, 1, 11), truth=truth[:, 0]),
    }
    for name, figure in figures.items():
        assert isinstance(figure, Figure), name
        figure.canvas.draw()
    assert [ax.get_xlabel() for ax in figures["corner"].axes if ax.get_xlabel()] == ["a", "b"]
    assert len(figures["history"].axes) == 2


def test_a_spectrum_counts_weights() -> None:
    figure = neb.plot.spectrum([0.5, 0.5, 1.5], [0, 1, 2], weights=[1.0, 2.0, 4.0])
    bars = figure.axes[0].containers[0]
    assert np.array_equal(bars[0].get_ydata(), [3.0, 4.0])
    # Errors are the root of the sum of squared weights.
    low, high = bars[2][1].get_segments()[0][:, 1]
    assert (high - low) / 2 == pytest.approx(np.sqrt(5.0))


def test_report(run: neb.Run, observed: tuple[Array, Array], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    written = neb.report(run, page, truth=observed[0])
    assert Path(written["report"]) == page and written["verdict"]["headline"] in page.read_text()
    assert 0.4 < written["x_auc"]["value"] < 1 and written["y_auc"] is not None
    with pytest.raises(neb.NebValueError, match="exists"):
        neb.report(run, page)
    run.save(tmp_path / "run")
    assert Path(neb.report(tmp_path / "run")["report"]) == tmp_path / "run/report.html"


def test_a_notebook_shows_the_verdict(run: neb.Run, tmp_path: Path) -> None:
    shown = run._repr_html_()
    assert 'class="verdict' in shown and "600 observations" in shown and "AUC" in shown
    assert "<script" not in shown and shown.count("<div") == shown.count("</div")
    run.save(tmp_path / "run")
    assert "Not judged" in neb.load(tmp_path / "run")._repr_html_()
