"""Surrogate, source and run: settings, state, files, copies."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neb
from conftest import AFFINE, Array


def test_reprs_say_what_a_thing_is_and_whether_it_is_fitted(run: neb.Run) -> None:
    assert repr(neb.Surrogate("spline", epochs=3)) == "Surrogate('spline', epochs=3), not fitted"
    assert repr(neb.Source()) == "Source('auto'), not fitted"
    assert repr(neb.Source("umnn", preset="paper", seed=3)) == "Source('umnn', preset='paper', seed=3), not fitted"
    assert "fitted: mixture" in repr(run.surrogate) and "x of 2, y of 2 columns" in repr(run.surrogate)
    assert "fitted: affine by mc, x of 2 columns" in repr(run.source)
    assert repr(run.posterior).startswith("Posterior(Source(")
    assert repr(neb.simulators.Slcp()) == "Slcp(): x of 5 and y of 8 dimensions"


def test_settings_have_the_programs_names_and_checks() -> None:
    text = neb.Source("spline", k=77, hidden=[8, 8], domain=[(-1, 1), (0, np.inf)], symmetric=["x1"]).settings
    for line in ('source = "spline"', "k = 77", "hidden = [8, 8]", 'domain = "x1=-1.0:1.0,x2=0.0:inf"', 'symmetric = "x1"'):
        assert line in text, text
    with pytest.raises(ValueError, match="bins"):
        neb.Surrogate("coupling", bins=4)
    with pytest.raises(ValueError, match="layers"):
        neb.Source(layers=2)
    with pytest.raises(ValueError, match="unknown variant `best`"):
        neb.Surrogate("best")
    with pytest.raises(TypeError, match="unexpected keyword"):
        neb.Source(epoch=3)  # type: ignore[call-arg]


def test_settings_may_be_numpys() -> None:
    ours: dict[str, Any] = {"hidden": [8, 8], "rate": 0.5, "epochs": 3, "seed": 3}
    theirs = {"hidden": np.array([8, 8]), "rate": np.float32(0.5), "epochs": np.int64(3), "seed": np.int64(3)}
    for make in (neb.Surrogate, neb.Source):
        assert make("spline", **theirs).settings == make("spline", **ours).settings
        assert repr(make("spline", **theirs)) == repr(make("spline", **ours))
        with pytest.raises(neb.NebValueError, match="`rate` is nan"):
            make("spline", rate=np.nan)


def test_numbers_that_cannot_be_are_refused(source: neb.Source, run: neb.Run) -> None:
    calls: dict[str, Any] = {
        "`n` is -1": lambda: source.sample(-1),
        "`seed` is -1": lambda: source.sample(1, seed=-1),
        "`seed` is -2": lambda: neb.Source(seed=-2),
        "`seed` is 0.5": lambda: neb.Surrogate(seed=0.5),  # type: ignore[arg-type]
        "`threads` is -1": lambda: neb.set_threads(-1),
        "`n` is 0": lambda: run.posterior.sample([[0.0, 0.0]], 0),
    }
    for words, call in calls.items():
        with pytest.raises(neb.NebValueError, match=words):
            call()
    assert np.array_equal(source.sample(np.int64(3)), source.sample(3))


def test_one_k_for_all_rungs() -> None:
    text = neb.Source(kind="auto", estimator="mc", k=1024).settings
    assert "affine-k = 1024" in text and "refine-k = 1024" in text


def test_what_is_not_fitted_is_refused() -> None:
    surrogate = neb.Surrogate()
    assert not surrogate.is_fitted
    for call in (surrogate.save, surrogate.sample):
        with pytest.raises(neb.NebError, match="not fitted"):
            call("anything")
    with pytest.raises(neb.NebError, match="not fitted"):
        neb.Source().sample(3)


def test_a_source_is_inside_its_domain_and_its_density_integrates_to_one(surrogate: neb.Surrogate, observed: tuple[Array, Array]) -> None:
    source = neb.Source("spline", k=128, epochs=2, least_steps=1, domain={"x1": (-1, 1), "x2": (-1, 1)}).fit(observed[1], surrogate)
    x = source.sample(2000)
    assert x.dtype == np.float32 and np.abs(x).max() <= 1
    centres = (np.arange(300) + 0.5) / 150 - 1
    grid = np.stack(np.meshgrid(centres, centres), -1).reshape(-1, 2)
    assert np.exp(source.log_prob(grid)).mean() * 4 == pytest.approx(1.0, abs=0.02)
    assert np.isneginf(source.log_prob([[1.5, 0.0]])).all()


def test_history_and_summary_tell_of_every_training(source: neb.Source) -> None:
    stages = {row["stage"] for row in source.history}
    assert stages == {"surrogate", "source"}
    assert [row["epoch"] for row in source.history if row["stage"] == "source"][:3] == [1, 2, 3]
    assert source.summary["rows"] == {"pairs": 2000, "observations": 600, "particles": 0}
    assert "affine by mc" in source.reason


def test_event_weights_count(surrogate: neb.Surrogate, observed: tuple[Array, Array]) -> None:
    x, y = observed
    below = x[:, 1] < x[:, 0]
    settings = {**AFFINE, "epochs": 60}
    means = [
        neb.Source("affine", **settings).fit(y, surrogate, weights=weights).sample(4000).mean(axis=0)
        for weights in (None, np.where(below, 1.0, 1e-3))
    ]
    # x2 - x1, which y shows, is 0 on average, and -2/3 where it is negative.
    found = [float(mean[1] - mean[0]) for mean in means]
    assert abs(found[0]) < 0.2 and found[1] < -0.3, found
    with pytest.raises(ValueError, match="array `weights` has 3 values for 600 rows"):
        neb.Source("affine").fit(y, surrogate, weights=[1, 2, 3])


def test_an_error_of_a_fit_without_output_names_no_folder(surrogate: neb.Surrogate, observed: tuple[Array, Array]) -> None:
    with pytest.raises(neb.NebError, match="NaN") as failed:
        neb.Source("affine", k=64, rate=1e30, epochs=3, least_steps=1).fit(observed[1], surrogate)
    assert "kept" not in str(failed.value) and "--force" not in str(failed.value) and failed.value.hint


def test_both_stages_look_at_everything_first(pairs: tuple[Array, Array], observed: tuple[Array, Array]) -> None:
    y = observed[1]
    wrong: dict[str, dict[str, Any]] = {
        "array `observations` holds 600 values that are not finite": {"observations": y * [1.0, np.nan]},
        "observations has 1 columns; y has 2": {"observations": y[:, 0]},
        "array `weights` has 3 values for 600 rows": {"observations": y, "weights": [1, 2, 3]},
        r"array `weights` has shape \(300, 2\) for 600 rows": {"observations": y, "weights": np.ones((300, 2))},
    }
    surrogate = neb.Surrogate("mixture", epochs=1)
    for words, given in wrong.items():
        with pytest.raises(neb.NebValueError, match=words):
            neb.fit(*pairs, **given, surrogate=surrogate)
    assert not surrogate.is_fitted


def test_pickle_and_copy_give_the_same_bits(run: neb.Run, pairs: tuple[Array, Array]) -> None:
    x, y = (part[:20] for part in pairs)
    for twin in (pickle.loads(pickle.dumps(run)), copy.copy(run), copy.deepcopy(run)):
        assert np.array_equal(twin.surrogate.log_prob(y, x), run.surrogate.log_prob(y, x))
        assert np.array_equal(twin.source.sample(20), run.source.sample(20))
        assert twin.summary == run.summary and twin.history == run.history
        assert repr(twin) == repr(run) and twin.surrogate.report == run.surrogate.report
    assert repr(pickle.loads(pickle.dumps(neb.Source("umnn")))) == repr(neb.Source("umnn"))
    problem = pickle.loads(pickle.dumps(neb.simulators.TwoMoons()))
    assert np.array_equal(problem.pairs(5)[1], neb.simulators.TwoMoons().pairs(5)[1])


def test_a_recognition_network_survives_pickle_and_folder(surrogate: neb.Surrogate, observed: tuple[Array, Array], tmp_path: Path) -> None:
    y = observed[1][:100]
    source = neb.Source("coupling", estimator="elbo", epochs=1, least_steps=1, k=4).fit(y, surrogate)

    def draw(source: neb.Source) -> Array:
        return neb.Posterior(source, surrogate).sample(y[:3], 10, method="direct").x

    neb.Run(surrogate, source).save(tmp_path / "run")
    assert np.array_equal(draw(pickle.loads(pickle.dumps(source))), draw(source))
    assert np.array_equal(draw(neb.Source.load(tmp_path / "run")), draw(source))


def test_folders_and_files_both_ways(run: neb.Run, pairs: tuple[Array, Array], tmp_path: Path) -> None:
    x, y = (part[:20] for part in pairs)
    folder = tmp_path / "run"
    run.save(folder)
    names = {"config.toml", "history.csv", "summary.json", "source.safetensors", "surrogate.safetensors"}
    assert {file.name for file in folder.iterdir()} == names
    loaded = neb.load(folder)
    assert loaded.summary["output"] == str(folder)
    assert np.array_equal(loaded.source.sample(20), run.source.sample(20))
    assert np.array_equal(loaded.surrogate.log_prob(y, x), run.surrogate.log_prob(y, x))
    with pytest.raises(neb.NebValueError, match="exists already and was not touched"):
        run.save(folder)
    (folder / "mine.txt").write_text("stays")
    run.save(folder, force=True)
    assert (folder / "mine.txt").read_text() == "stays"
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    with pytest.raises(neb.NebValueError, match="is no run"):
        run.save(tmp_path / "other", force=True)
    run.surrogate.save(tmp_path / "q.safetensors")
    run.source.save(tmp_path / "p.safetensors")
    assert np.array_equal(neb.Surrogate.load(tmp_path / "q.safetensors").sample(x), run.surrogate.sample(x))
    alone = neb.Source.load(tmp_path / "p.safetensors")
    assert np.array_equal(alone.sample(20), run.source.sample(20)) and alone.summary == {}
    assert loaded.source.settings == loaded.surrogate.settings == (folder / "config.toml").read_text()
    assert "k = 512" in loaded.source.settings and "components = 4" in loaded.surrogate.settings
    for model in (alone, neb.Surrogate.load(tmp_path / "q.safetensors")):
        with pytest.raises(neb.NebValueError, match=rf"are not known\nhint: make a new one: neb.{type(model).__name__}\("):
            model.settings
    for call in (lambda: alone.fit(y, run.surrogate), lambda: loaded.surrogate.fit(x, y)):
        with pytest.raises(neb.NebValueError, match="model that was read"):
            call()
    with pytest.raises(neb.NebError, match="nowhere"):
        neb.Surrogate.load(tmp_path / "nowhere.safetensors")


def test_a_loaded_surrogate_needs_x_of_the_pairs(run: neb.Run, pairs: tuple[Array, Array], observed: tuple[Array, Array], tmp_path: Path) -> None:
    run.surrogate.save(tmp_path / "q.safetensors")
    loaded = neb.Surrogate.load(tmp_path / "q.safetensors")
    again = neb.Source("affine", **AFFINE)
    with pytest.raises(neb.NebValueError, match="does not know the pairs"):
        again.fit(observed[1], loaded)
    again.fit(observed[1], loaded, x=pairs[0])
    assert np.array_equal(again.sample(20), run.source.sample(20))


def test_transformed_columns_are_given_and_returned_in_the_users_units(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = np.exp(rng.normal(size=(1500, 1)))
    y = x * np.exp(0.3 * rng.normal(size=(1500, 1)))
    surrogate = neb.Surrogate("noisy-mixture", components=1, epochs=15, transform={"all": "log"}).fit(x, y)
    # log y is normal about log x.
    points = np.array([[0.5], [1.0], [4.0]])
    exact = -0.5 * (np.log(points / 1.2) / 0.3) ** 2 - np.log(0.3 * points * np.sqrt(2 * np.pi))
    assert surrogate.log_prob(points, np.full((3, 1), 1.2))[1] == pytest.approx(exact[1, 0], abs=0.3)
    drawn = surrogate.sample(np.full((2000, 1), 1.2))
    assert drawn.min() > 0 and np.log(drawn).mean() == pytest.approx(np.log(1.2), abs=0.1)
    source = neb.Source("affine", **{**AFFINE, "base": "normal"}).fit(y, surrogate)
    z = np.log(source.sample(2000))
    assert z.mean() == pytest.approx(0.0, abs=0.2) and z.std() == pytest.approx(1.0, abs=0.3)
    grid = np.linspace(1e-3, 60, 200_000)[:, None]
    assert np.exp(source.log_prob(grid)).sum() * (grid[1, 0] - grid[0, 0]) == pytest.approx(1.0, abs=0.05)
    draws = neb.Posterior(source, surrogate).sample([[2.0]], 500)
    # The posterior of log x is normal with mean log 2 / 1.09.
    assert np.log(draws.x).mean() == pytest.approx(np.log(2.0) / 1.09, abs=0.12)
    neb.Run(surrogate, source).save(tmp_path / "run")
    loaded = neb.load(tmp_path / "run")
    assert np.array_equal(loaded.source.log_prob(grid[:9]), source.log_prob(grid[:9]))
    assert np.array_equal(pickle.loads(pickle.dumps(source)).sample(9), source.sample(9))
    with pytest.raises(neb.NebValueError, match="transforms of x"):
        neb.log_marginal(y[:5], x[:5], surrogate)
    with pytest.raises(neb.NebValueError, match="log"):
        surrogate.log_prob([[-1.0]], [[1.0]])
