"""Unfolding from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import neb
from conftest import Program

SETTINGS = ["--replicas=3", "--draws=500", "--components=2", "--epochs=3", "--smooth-epochs=2", "--iterations=3"]


def test_the_same_bits_as_the_program(program: Program, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1500, 1)).astype(np.float32)
    y = (x + 0.3 * rng.normal(size=x.shape)).astype(np.float32)
    seen = (rng.random(1500) < 0.8).astype(np.float32)
    truth = (0.5 + rng.normal(size=(700, 1))).astype(np.float32)
    data = (truth + 0.3 * rng.normal(size=truth.shape)).astype(np.float32)
    np.savez(tmp_path / "pairs.npz", x=x, y=y, reconstructed=seen)
    np.savez(tmp_path / "data.npz", y=data)
    np.savez(tmp_path / "truth.npz", x=truth)
    files = ["--pairs", tmp_path / "pairs.npz", "--observations", tmp_path / "data.npz", "--truth", tmp_path / "truth.npz"]
    program("unfold", *files, *SETTINGS, "--bins=x=8:-3:3", "-o", tmp_path / "theirs")
    settings = {"replicas": 3, "draws": 500, "components": 2, "epochs": 3, "smooth_epochs": 2, "iterations": 3}
    y[seen == 0] = np.nan  # Not looked at.
    told: list[neb.Progress] = []
    ours = neb.unfold(
        x,
        y,
        data,
        tmp_path / "ours",
        reconstructed=seen,
        truth=truth,
        bins={"x": (8, -3, 3)},
        callback=told.append,
        **settings,  # type: ignore[arg-type]
    )
    theirs = neb.Unfolding.load(tmp_path / "theirs")
    assert np.array_equal(ours.weight, theirs.weight) and np.array_equal(ours.samples, theirs.samples)
    assert ours.spectra.keys() == theirs.spectra.keys() == {"x"}
    assert ours.score is not None and ours.score == theirs.score and told
    # The data lie half a deviation to the right of the simulation, and a fifth of them was not seen.
    assert np.average(x[:, 0], weights=ours.weight) > 0.2
    assert 700 < ours.summary["produced"] < 1050
    with pytest.raises(neb.NebValueError, match="never replaced"):
        neb.unfold(x, y, data, tmp_path / "ours", reconstructed=seen)
    with pytest.raises(neb.NebValueError, match="no column of x"):
        neb.unfold(x, x, data, tmp_path / "other", bins={"pt": (8, -3, 3)})
