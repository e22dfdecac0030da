"""Figures, the report, and what a notebook shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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


def test_the_column_of_a_spectrum_is_found_by_name() -> None:
    frame = pd.DataFrame({"other": [0.5, 0.5], "mass": [1.5, 0.5]})
    figure = neb.plot.spectrum(frame, [0, 1, 2], name="mass", truth=frame)
    assert np.array_equal(figure.axes[0].containers[0][0].get_ydata(), [1.0, 1.0])


def test_what_cannot_be_drawn_is_refused() -> None:
    edges = np.array([0.0, 1.0, 2.0])
    spectrum = neb.Spectrum("mass", edges, {"unfolded": edges[1:]}, {}, {})
    wrong: dict[str, Any] = {
        "array `x` has 2 columns; a spectrum is of one": lambda: neb.plot.spectrum(np.ones((3, 2)), edges),
        "array `truth` has 2 columns": lambda: neb.plot.spectrum(spectrum, truth=np.ones((3, 2))),
        "array `weights` has 2 values for 3 rows": lambda: neb.plot.spectrum(np.ones(3), edges, weights=[1, 2]),
        "has its own edges": lambda: neb.plot.spectrum(spectrum, edges),
        "has its own edges and weights": lambda: neb.plot.spectrum(spectrum, weights=[1, 2]),
        "truth_weights but no truth": lambda: neb.plot.spectrum(spectrum, truth_weights=[1, 2]),
        r"edges are \[2.0, 1.0\]": lambda: neb.plot.spectrum(np.ones(3), [2, 1]),
        r"x has 2 columns and the names \['a'\]": lambda: neb.plot.corner(np.ones((3, 2)), names=["a"]),
    }
    for words, call in wrong.items():
        with pytest.raises(neb.NebValueError, match=words):
            call()


def test_report_finds_columns_by_name(pairs: tuple[Array, Array], observed: tuple[Array, Array], tmp_path: Path) -> None:
    x, y = (pd.DataFrame(part, columns=names) for part, names in zip(pairs, (["u", "v"], ["px", "py"])))
    truth, seen = (pd.DataFrame(part, columns=list(like)) for part, like in zip(observed, (x, y)))
    run = neb.fit(
        x,
        y,
        seen,
        surrogate=neb.Surrogate("mixture", epochs=1),
        source=neb.Source("affine", k=64, epochs=1, least_steps=1),
        output=tmp_path / "run",
    )
    aucs = []
    for of, order in ((run, 1), (run, -1), (tmp_path / "run", -1)):
        tables = [frame[list(frame)[::order]] for frame in (truth, seen, x, y)]
        given: dict[str, Any] = {"truth": tables[0], "observations": tables[1], "pairs": (tables[2], tables[3])}
        written = neb.report(of, tmp_path / "page.html", **given, force=True)
        aucs.append((written["x_auc"]["value"], written["y_auc"]["value"]))
    assert aucs[0] == aucs[1] == aucs[2]
    wrong: dict[str, dict[str, Any]] = {
        "pairs have no y": {"pairs": (x, None)},
        "pairs are 1 tables": {"pairs": (x,)},
        "x has 10 rows, y has 2000": {"pairs": (x[:10], y)},
        "truth has no column `v`": {"truth": truth[["u"]]},
        "array `observations` holds 1200 values": {"observations": seen * np.nan},
    }
    for words, given in wrong.items():
        with pytest.raises(neb.NebValueError, match=words) as refused:
            neb.report(run, tmp_path / "other.html", **given)
        assert "/tmp" not in refused.value.message


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
