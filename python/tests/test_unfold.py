"""Unfolding from Python: the numbers, files and words of the program."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import neb
import neb.plot
from conftest import Program

#: A small training; the program's words for it follow from the names.
SMALL: dict[str, Any] = {"replicas": 4, "draws": 500, "components": 1, "epochs": 25, "smooth_epochs": 2, "iterations": 3}
QUICK: dict[str, Any] = {"replicas": 0, "draws": 10, "components": 1, "epochs": 1, "smooth_epochs": 1, "iterations": 1}

Tables = dict[str, Any]


@pytest.fixture(scope="module")
def tables() -> Tables:
    """Normal x smeared into y, a fifth of it not reconstructed, in data half a deviation to the right."""
    rng = np.random.default_rng(1)

    def smear(x: Any) -> Any:
        return (x + 0.3 * rng.normal(size=x.shape)).astype(np.float32)

    x = rng.normal(size=(1500, 1)).astype(np.float32)
    truth = (0.5 + rng.normal(size=(700, 1))).astype(np.float32)
    weights = np.where(rng.random(1500) < 0.1, -0.5, 1.0).astype(np.float32)
    background = rng.normal(size=(200, 1)).astype(np.float32)
    return {
        "x": x,
        "y": smear(x),
        "observations": np.concatenate([smear(truth), rng.normal(size=(50, 1)).astype(np.float32)]),
        "weights": weights,
        "reconstructed": (rng.random(1500) < 0.8).astype(np.float32),
        "observed_weights": rng.uniform(0.9, 1.1, 750).astype(np.float32),
        "missed": rng.normal(size=(100, 1)).astype(np.float32),
        "missed_weights": np.ones(100, np.float32),
        "fakes": rng.normal(size=(60, 1)).astype(np.float32),
        "background": background,
        "background_weights": np.full(200, 0.25, np.float32),
        "truth": truth,
    }


@pytest.fixture(scope="module")
def theirs(tables: Tables, program: Program, tmp_path_factory: pytest.TempPathFactory) -> neb.Unfolding:
    """The program's result."""
    work = tmp_path_factory.mktemp("unfold")
    files = {
        "pairs": {"x": tables["x"], "y": tables["y"], "weight": tables["weights"], "reconstructed": tables["reconstructed"]},
        "observations": {"y": tables["observations"], "weight": tables["observed_weights"]},
        "missed": {"x": tables["missed"], "weight": tables["missed_weights"]},
        "fakes": {"y": tables["fakes"]},
        "background": {"y": tables["background"], "weight": tables["background_weights"]},
        "truth": {"x": tables["truth"]},
    }
    words: list[object] = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    for name, arrays in files.items():
        np.savez(work / f"{name}.npz", **{role: values.reshape(-1) for role, values in arrays.items()})
        words += [f"--{name}", work / f"{name}.npz"]
    program("unfold", *words, "--bins=x=8:-3:3", "-o", work / "run")
    return neb.Unfolding.load(work / "run")


@pytest.fixture(scope="module")
def ours(tables: Tables) -> neb.Unfolding:
    """The same from Python, in memory; y of what was not reconstructed is not looked at."""
    y = np.where(tables["reconstructed"][:, None] == 0, np.nan, tables["y"])
    return neb.unfold(**tables | {"y": y}, bins={"x": (8, -3, 3)}, **SMALL)


def test_the_same_bits_as_the_program(ours: neb.Unfolding, theirs: neb.Unfolding) -> None:
    assert ours.folder is None and theirs.folder is not None
    for name in ("weights", "ratio", "samples"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    assert ours.replicas.keys() == {"data"} and np.array_equal(ours.replicas["data"], theirs.replicas["data"])
    assert ours.score is not None and ours.score == theirs.score
    known = (ours.summary, theirs.summary)
    assert known[0] | {"nominal_seconds": 0} == known[1] | {"nominal_seconds": 0}
    spectrum, other = ours.spectra["x"], theirs.spectra["x"]
    assert list(spectrum.values) == ["unfolded", "smooth", "simulation", "ibu", "data"]
    for key, values in spectrum.values.items():
        assert np.array_equal(values, other.values[key]), key
    assert np.array_equal(spectrum.covariance(), other.covariance())
    assert np.array_equal(ours.source.sample(50), theirs.source.sample(50))
    assert np.array_equal(ours.surrogate.sample([[0.0]]), theirs.surrogate.sample([[0.0]]))


def test_what_is_found(ours: neb.Unfolding, tables: Tables) -> None:
    x = np.concatenate([tables["x"], tables["missed"]])[:, 0]
    # Simulated about 0; 700 events about 0.5, of which one in eighteen is taken for a fake about 0: 0.53, with an error of 0.05
    # from the data and one of the surrogate's slope.
    assert np.average(x, weights=ours.weights) == pytest.approx(0.53, abs=0.2)
    # 661 of them signal, seen with the efficiency of the weighted simulation.
    seen = np.concatenate([tables["reconstructed"], np.zeros(100)])
    efficiency = np.average(seen, weights=np.concatenate([tables["weights"], np.ones(100)]))
    assert ours.summary["produced"] == pytest.approx(661 / efficiency, rel=0.05)
    assert ours.weights.sum() == pytest.approx(ours.summary["produced"], rel=1e-5)
    spectrum = ours.spectra["x"]
    assert spectrum.edges.tolist() == np.linspace(-3, 3, 9).tolist()
    counts, _ = np.histogram(x, spectrum.edges, weights=ours.weights.astype(np.float64))
    assert spectrum.values["unfolded"] == pytest.approx(counts, rel=1e-5)
    replicas = [np.histogram(x, spectrum.edges, weights=row.astype(np.float64))[0] for row in ours.replicas["data"]]
    assert spectrum.covariance() == pytest.approx(np.cov(np.transpose(replicas)), rel=1e-5, abs=1e-9)
    assert spectrum.error() == pytest.approx(spectrum.errors["unfolded"]["data"])
    assert spectrum.covariance("ibu").shape == (8, 8) and spectrum.error("smooth").tolist() == [0.0] * 8
    assert "700" not in repr(ours) and "750 events of data" in repr(ours) and "8 bins from -3 to 3" in repr(spectrum)
    twin = pickle.loads(pickle.dumps(ours))
    assert np.array_equal(twin.weights, ours.weights) and np.array_equal(twin.source.sample(5), ours.source.sample(5))


def test_figures_of_a_spectrum(ours: neb.Unfolding, tables: Tables) -> None:
    spectrum = ours.spectra["x"]
    for truth, base in ((None, "simulation"), (tables["truth"], "truth")):
        figure = neb.plot.spectrum(spectrum, truth=truth)
        figure.canvas.draw()
        assert [ax.get_ylabel() for ax in figure.axes] == ["events", f"ratio to {base}"]
        labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert {"unfolded", "IBU", "data", base} <= set(labels)
        assert np.array_equal(figure.axes[0].containers[0][0].get_ydata(), spectrum.values["unfolded"])


def test_a_stopped_unfolding_goes_on_to_the_same_bits(tables: Tables, ours: neb.Unfolding, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stop(progress: neb.Progress) -> None:
        if progress.label == "smooth source":
            raise Enough

    settings: dict[str, Any] = tables | SMALL | {"bins": {"x": (8, -3, 3)}, "output": tmp_path / "run"}
    with pytest.raises(Enough):
        neb.unfold(**settings, callback=stop)
    assert not (tmp_path / "run").exists() and (tmp_path / "run.partial").exists()
    with pytest.raises(neb.NebValueError, match="begun by another command"):
        neb.unfold(**settings | {"seed": 2})
    told: list[str] = []
    found = neb.unfold(**settings, callback=lambda progress: told.append(progress.label))
    assert np.array_equal(found.weights, ours.weights) and np.array_equal(found.samples, ours.samples)
    assert found.folder == tmp_path / "run" and (tmp_path / "run/hepdata").is_dir() and "weights" in told
    with pytest.raises(neb.NebValueError, match="never replaced"):
        neb.unfold(**settings, force=True)


def test_bins_may_be_edges_and_spectra_joint(tables: Tables) -> None:
    x = np.hstack([tables["x"], tables["x"][::-1]])
    bins: dict[str, Any] = {"x1": [-3, -1, 0.5, 3], "x2": np.array([-3, 0, 3], np.float32)}
    found = neb.unfold(x, x, x[:300], bins=bins, joint=[("x1", "x2")], **QUICK)
    assert found.spectra["x1"].edges.tolist() == [-3, -1, 0.5, 3] and found.spectra["x2"].edges.tolist() == [-3, 0, 3]
    assert list(found.joint) == [("x1", "x2")] and found.joint["x1", "x2"]["unfolded"].shape == (8, 8)


def test_posteriors_of_an_unfolding_count_the_efficiency(ours: neb.Unfolding) -> None:
    for source in (ours.source, pickle.loads(pickle.dumps(ours.source))):
        with pytest.raises(neb.NebValueError, match="has to count the efficiency"):
            neb.Posterior(source, ours.surrogate).sample([[0.0]], 10)


def test_what_was_not_reconstructed_may_be_masked_or_missing(tables: Tables) -> None:
    seen = tables["reconstructed"][:, np.newaxis] != 0
    plain = neb.unfold(**tables | QUICK)
    missing = tables["y"].astype(object)
    missing[~seen] = pd.NA
    for y in (np.ma.array(tables["y"], mask=~seen), missing):
        assert np.array_equal(neb.unfold(**tables | QUICK | {"y": y}).weights, plain.weights)


def test_a_spectrum_that_is_not_there(ours: neb.Unfolding) -> None:
    for call in (ours.spectra["x"].covariance, ours.spectra["x"].error):
        with pytest.raises(neb.NebValueError, match="no spectrum `unfold` of `x`\nhint: choose one of unfolded, smooth"):
            call("unfold")


def test_columns_of_frames_are_found_by_name(tables: Tables) -> None:
    rng = np.random.default_rng(2)
    x = pd.DataFrame({"mass": tables["x"][:, 0], "p T": rng.normal(size=1500)})
    y = x + 0.3 * rng.normal(size=x.shape)
    found = neb.unfold(x, y, y[["p T", "mass"]][:300], missed=x[["p T", "mass"]][:50], **QUICK)
    assert found.x_names == ["mass", "p T"] == list(found.spectra)
    plain = neb.unfold(x.to_numpy(), y.to_numpy(), y.to_numpy()[:300], missed=x.to_numpy()[:50], **QUICK)
    assert plain.x_names == ["x1", "x2"] and np.array_equal(plain.weights, found.weights)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"bins": {"pt": (8, -3, 3)}}, "`pt` is no column of x"),
        ({"bins": {"x": (8,)}}, "bins of `x` are (8,)"),
        ({"bins": {"x": 8}}, "bins of `x` are 8"),
        ({"bins": {"x": (0, 1, 2, 1)}}, "--bins `x=0.0/1.0/2.0/1.0`"),
        ({"bins": {"p=T": (8, -3, 3)}}, "the name `p=T` has a comma or an equals sign"),
        ({"joint": [("x", "x")]}, "these are not two columns"),
        ({"iterations": 0}, "invalid value '0' for '--iterations"),
        ({"reconstructed": np.full(1500, 2.0)}, "pairs: mask `reconstructed`: row 0 is 2"),
        ({"reconstructed": np.full(1500, np.nan)}, "array `reconstructed` holds 1500 values that are not finite"),
        ({"y": np.full((1500, 1), "a")}, "array `y` holds values of type <U1"),
        ({"y": np.full((1500, 1), "a", object)}, "array `y` holds 'a' at row "),
        ({"fakes_weights": np.ones((30, 2))}, "array `fakes_weights` has shape (30, 2) for 60 rows"),
        ({"reconstructed": np.ones(3)}, "array `reconstructed` has 3 values for 1500 rows"),
        ({"observed_weights": -np.ones(750)}, "observations: "),
        ({"background": np.full((3, 1), np.nan)}, "array `background` holds 3 values that are not finite"),
        ({"missed": np.zeros((3, 2))}, "missed has 2 columns; x of the pairs has 1 (`x`)"),
        ({"fakes": None, "fakes_weights": np.ones(3)}, "there are fakes_weights but no fakes"),
        ({"observations": np.full((750, 1), 100.0)}, "observations outside the range of the pairs: `y` 750 of 750"),
        ({"y": np.zeros((3, 1))}, "array `y` has shape (3, 1) for 1500 rows of x"),
    ],
)
def test_what_cannot_be_used_is_refused(wrong: dict[str, Any], words: str, tables: Tables) -> None:
    with pytest.raises(neb.NebValueError) as refused:
        neb.unfold(**tables | QUICK | wrong)
    assert words in refused.value.message and refused.value.hint and "/tmp" not in str(refused.value)
    with pytest.raises(neb.NebValueError, match="is no unfolding"):
        neb.Unfolding.load("nowhere")
