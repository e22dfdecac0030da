"""A small fitted problem that most tests share, and the program to compare with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import neb

ROOT = Path(__file__).parents[2]

#: Settings of a source that is learned in a moment.
AFFINE: dict[str, Any] = {"base": "uniform", "k": 512, "epochs": 20, "rate": 0.02, "least_steps": 1}

Array = npt.NDArray[np.float32]
Program = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def problem() -> neb.simulators.TwoMoons:
    return neb.simulators.TwoMoons()


@pytest.fixture(scope="session")
def pairs(problem: neb.simulators.TwoMoons) -> tuple[Array, Array]:
    return problem.pairs(2000)


@pytest.fixture(scope="session")
def observed(problem: neb.simulators.TwoMoons) -> tuple[Array, Array]:
    """x, which an experiment would not see, and y."""
    return problem.observations(600, seed=2)


@pytest.fixture(scope="session")
def surrogate(pairs: tuple[Array, Array]) -> neb.Surrogate:
    return neb.Surrogate("noisy-mixture", components=4, epochs=12).fit(*pairs)


@pytest.fixture(scope="session")
def source(observed: tuple[Array, Array], surrogate: neb.Surrogate) -> neb.Source:
    return neb.Source("affine", **AFFINE).fit(observed[1], surrogate)


@pytest.fixture(scope="session")
def run(surrogate: neb.Surrogate, source: neb.Source) -> neb.Run:
    return neb.Run(surrogate, source)


@pytest.fixture(scope="session")
def program() -> Program:
    """Runs the `neb` program that was built along with the extension module."""
    path = Path(os.environ.get("NEB_PROGRAM", ROOT / "target/debug/neb"))

    def call(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([path, *map(str, words)], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done

    return call


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., str]:
    """Runs a script in a Python of its own; what it printed."""

    def call(script: str, *words: object, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script, *map(str, words)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(Path(neb.__file__).parents[1])} | environment,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call
