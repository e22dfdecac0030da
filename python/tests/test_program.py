"""The same numbers, files and words as the program, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import neb
from conftest import Array, Program


@pytest.fixture(scope="module")
def folder(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both stages, by the program."""
    work = tmp_path_factory.mktemp("program")
    program("simulate", "two-moons", "-n", 1000, "--from", "proposal", "-o", work / "pairs.npz")
    program("simulate", "two-moons", "-n", 400, "--seed", 2, "-o", work / "truth.npz")
    config = work / "settings.toml"
    config.write_text("seed = 7\n[surrogate]\nkind = 'noisy-mixture'\nepochs = 4\n[source]\nsource = 'affine'\nk = 128\nepochs = 4\nleast-steps = 1\n")
    files = ["--pairs", work / "pairs.npz", "--observations", work / "truth.npz"]
    program("fit", *files, "--config", config, "-o", work / "run")
    return work


@pytest.fixture(scope="module")
def same(folder: Path) -> neb.Run:
    """Both stages with the same data and settings, from Python."""
    pairs, truth = np.load(folder / "pairs.npz"), np.load(folder / "truth.npz")
    surrogate = neb.Surrogate("noisy-mixture", epochs=4, seed=7)
    source = neb.Source("affine", k=128, epochs=4, least_steps=1, seed=7)
    return neb.fit(pairs["x"], pairs["y"], truth["y"], surrogate=surrogate, source=source, output=folder / "ours")


def test_simulators(folder: Path) -> None:
    problem = neb.simulators.TwoMoons()
    for file, drawn in (("pairs", problem.pairs(1000)), ("truth", problem.observations(400, seed=2))):
        stored = np.load(folder / f"{file}.npz")
        assert np.array_equal(stored["x"], drawn[0]) and np.array_equal(stored["y"], drawn[1])


def test_both_stages(folder: Path, same: neb.Run, tmp_path: Path) -> None:
    same.save(tmp_path / "saved")
    for name in ("surrogate.safetensors", "source.safetensors"):
        expected = (folder / "run" / name).read_bytes()
        assert (folder / "ours" / name).read_bytes() == expected
        assert (tmp_path / "saved" / name).read_bytes() == expected
    theirs, ours = (json.loads((folder / name / "summary.json").read_text()) for name in ("run", "ours"))
    assert theirs["source"]["reason"] == ours["source"]["reason"] == same.source.reason
    assert [row["train"] for row in neb.load(folder / "run").history] == [row["train"] for row in same.history]


def test_the_program_reads_our_folder_and_we_read_its(folder: Path, same: neb.Run, program: Program) -> None:
    theirs = neb.load(folder / "run")
    truth = np.load(folder / "truth.npz")
    points = folder / "truth.npz"
    for run in ("run", "ours"):
        program("sample", folder / run, "-n", 50, "-o", folder / "x.npz", "--force")
        program("log-prob", folder / run, "--points", points, "-o", folder / "p.npz", "--force")
        np.savez(folder / "few.npz", y=truth["y"][:4])
        options = ["--observations", folder / "few.npz", "-n", 20, "-o", folder / "d.npz", "--force"]
        program("posterior", folder / run, *options)
        x, p, d = (np.load(folder / name) for name in ("x.npz", "p.npz", "d.npz"))
        for fitted in (theirs, same):
            assert np.array_equal(fitted.source.sample(50), x["x"])
            assert np.array_equal(fitted.source.log_prob(truth["x"]), p["log_prob"])
            draws = fitted.posterior.sample(truth["y"][:4], 20)
            assert np.array_equal(draws.x.reshape(d["x"].shape), d["x"], equal_nan=True)


def test_checks(folder: Path, same: neb.Run, program: Program) -> None:
    said = json.loads(program("compare", folder / "truth.npz", folder / "pairs.npz", "--json").stdout)
    truth, pairs = np.load(folder / "truth.npz"), np.load(folder / "pairs.npz")
    assert neb.compare(truth["x"], pairs["x"]).auc == said["auc"]["value"]
    # With so short a training they are not calibrated: exit code 1.
    program("calibrate", folder / "ours", "--pairs", folder / "truth.npz", "-n", 50, "-o", folder / "c.json", code=1)
    stored = json.loads((folder / "c.json").read_text())
    ours = neb.calibrate(same.posterior, truth["x"], truth["y"], n=50)
    assert not ours.calibrated and ours.ks == stored["ks"] and ours.left_out == stored["left_out"]


def test_errors_have_the_programs_words(folder: Path, same: neb.Run, program: Program, tmp_path: Path) -> None:
    broken = np.load(folder / "pairs.npz")["y"].copy()
    broken[137, 1] = np.nan
    np.savez(tmp_path / "pairs.npz", x=np.load(folder / "pairs.npz")["x"], y=broken)
    said = program("surrogate", "--pairs", tmp_path / "pairs.npz", "-o", tmp_path / "q.safetensors", code=2).stderr
    with pytest.raises(neb.NebValueError) as refused:
        neb.Surrogate().fit(np.load(tmp_path / "pairs.npz")["x"], broken)
    assert refused.value.message in said and f"hint: {refused.value.hint}" in said
    config = tmp_path / "settings.toml"
    config.write_text("[source]\nlayers = 2\n")
    said = program("config", "--config", config, code=2).stderr
    with pytest.raises(neb.NebValueError) as refused:
        neb.Source(layers=2)
    assert f"hint: {refused.value.hint}" in said
    far = np.load(folder / "truth.npz")["y"] + 100
    np.savez(tmp_path / "far.npz", y=far)
    files = ["--pairs", folder / "pairs.npz", "--observations", tmp_path / "far.npz"]
    said = program("source", folder / "run", *files, "-o", tmp_path / "far", code=2).stderr
    with pytest.raises(neb.NebValueError) as refused:
        neb.Source("affine").fit(far, same.surrogate)
    assert refused.value.message in said


def test_a_run_begun_here_is_not_resumed_by_the_program(folder: Path, same: neb.Run, program: Program, tmp_path: Path) -> None:
    def stop(_: neb.Progress) -> None:
        raise RuntimeError("enough")

    y = np.load(folder / "truth.npz")["y"]
    source = neb.Source("affine", k=128, epochs=4, least_steps=1, seed=7)
    with pytest.raises(RuntimeError, match="enough"):
        source.fit(y, same.surrogate, output=tmp_path / "run", callback=stop)
    said = program("fit", "--resume", tmp_path / "run", code=2).stderr
    assert "started from another program" in said and "call fit again" in said
    source.fit(y, same.surrogate, output=tmp_path / "run")
    assert (tmp_path / "run/source.safetensors").read_bytes() == (folder / "run/source.safetensors").read_bytes()
