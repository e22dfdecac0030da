"""What is accepted as a table, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import neb
from conftest import Array


class HasArray:
    """Something with `__array__`, as other libraries' tables have it."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.values, dtype=dtype)


class Arrow:
    """A table with the names that one of pyarrow has: its `columns` are values."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.column_names = list(frame)
        self.columns = [frame[name].to_numpy() for name in frame]

    def select(self, names: list[str]) -> Arrow:
        return Arrow(self.frame[names])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.frame.to_numpy(dtype)


def frozen(values: Array) -> Array:
    values = values.copy()
    values.flags.writeable = False
    return values


def strided(values: Array) -> Array:
    wide = np.zeros((2 * len(values), 3 * values.shape[1]), np.float32)
    view = wide[::2, ::3]
    view[:] = values
    assert not view.flags.c_contiguous
    return view


FORMS: dict[str, Callable[[Array], Any]] = {
    "list": lambda a: a.tolist(),
    "float64": lambda a: a.astype(np.float64),
    "big endian": lambda a: a.astype(">f8"),
    "Fortran": np.asfortranarray,
    "reversed": lambda a: a[::-1][::-1],
    "strided": strided,
    "read-only": frozen,
    "frame": lambda a: pd.DataFrame(a, columns=["a", "b"]),
    "objects": lambda a: a.astype(object),
    "__array__": HasArray,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_gives_the_same_bits(form: str, surrogate: neb.Surrogate, pairs: tuple[Array, Array]) -> None:
    x, y = (part[:50] for part in pairs)
    expected = surrogate.log_prob(y, x)
    before = x.copy(), y.copy()
    assert np.array_equal(surrogate.log_prob(FORMS[form](y), FORMS[form](x)), expected)
    assert np.array_equal(x, before[0]) and np.array_equal(y, before[1])


def test_float64_is_rounded_to_the_nearest_float32(surrogate: neb.Surrogate, pairs: tuple[Array, Array]) -> None:
    x, y = (part[:50] for part in pairs)
    between = x.astype(np.float64) * (1 + 2.0**-26)
    assert not np.array_equal(between, x) and np.array_equal(between.astype(np.float32), x)
    assert np.array_equal(surrogate.log_prob(y, between), surrogate.log_prob(y, x))


def test_integers_and_one_dimension() -> None:
    x = np.arange(200) % 7
    fitted = neb.Surrogate("mixture", components=1, epochs=1).fit(x, 2.0 * x + np.linspace(0, 1, 200))
    assert (fitted.x_names, fitted.y_names) == (["x"], ["y"])
    assert fitted.log_prob([1.5, 2.5], [1, 2]).shape == (2,)


def test_columns_of_a_frame_keep_their_names_and_are_found_by_them(pairs: tuple[Array, Array]) -> None:
    x = pd.DataFrame(pairs[0], columns=["energy", "angle"])
    y = pd.DataFrame(pairs[1], columns=["px", "py"])
    fitted = neb.Surrogate("mixture", epochs=1).fit(x, y)
    assert (fitted.x_names, fitted.y_names) == (["energy", "angle"], ["px", "py"])
    swapped = x[["angle", "energy"]].assign(other=0.0)
    assert np.array_equal(fitted.log_prob(y, swapped), fitted.log_prob(pairs[1], pairs[0]))
    assert np.array_equal(fitted.log_prob(Arrow(y[["py", "px"]]), Arrow(swapped)), fitted.log_prob(y, x))
    source = neb.Source("affine", k=64, epochs=1, least_steps=1, domain={"energy": (-5, 5)}).fit(y[:200], fitted)
    assert source.x_names == ["energy", "angle"]
    with pytest.raises(neb.NebValueError, match=r"y has no column `px`; the model was fitted with 2 \(`px`, `py`\)"):
        fitted.log_prob(y.rename(columns={"px": "py", "py": "pz"}), x)
    again = neb.Surrogate("mixture", epochs=1).fit(Arrow(x), Arrow(y))
    assert (again.x_names, again.y_names) == (["energy", "angle"], ["px", "py"])


def test_columns_may_have_numbers_for_names(pairs: tuple[Array, Array]) -> None:
    x = pd.DataFrame(pairs[0])
    fitted = neb.Surrogate("mixture", epochs=1).fit(x, pairs[1])
    assert fitted.x_names == ["0", "1"]
    expected = fitted.log_prob(pairs[1], pairs[0])
    for frame in (x[[1, 0]], x.assign(other=0.0)):
        assert np.array_equal(fitted.log_prob(pairs[1], frame), expected)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1.0, np.nan]], "array `x` holds 1 value that is not finite; the first is NaN at row 0, column 1 (`x2`)"),
        ([[0.0, 0.0], [np.inf, np.nan]], "holds 2 values that are not finite; the first is inf at row 1, column 0"),
        ([[1e39, 0.0]], "too large for 32-bit floats (beyond 3.4e38); the first is 1e39 at row 0, column 0 (`x1`)"),
        ([[1.0, 2.0, 3.0]], "x has 3 columns; the model was fitted with 2 (`x1`, `x2`)"),
        (np.array([["a", "b"]]), "holds values of type <U1"),
        (np.array([[1j, 2.0]]), "holds values of type complex128"),
        ([[1.0, 2.0], [3.0]], "is no table of numbers"),
        (np.zeros((1, 2, 2)), "array `x` has shape (1, 2, 2)"),
        (np.zeros((0, 2)), "array `x` has no rows"),
        (np.float32(1.0), "array `x` has shape ()"),
        ([[0.0, 0.0]] * 3, "x has 3 rows, y has 1"),
        (np.ma.masked_equal([[0.0, 1.0], [7.0, 0.0]], 7.0), "array `x` holds masked values; the first is at row 1, column 0 (`x1`)"),
        (np.array([[1.0, "2"]], object), "array `x` holds '2' at row 0, column 1 (`x2`), which is no number"),
        (pd.DataFrame({"x1": [1.0], "x2": ["2"]}), "array `x` holds '2' at row 0, column 1 (`x2`)"),
        (pd.DataFrame({"x1": [1], "x2": [pd.NA]}), "array `x` holds <NA> at row 0, column 1 (`x2`)"),
    ],
)
def test_what_cannot_be_used_is_refused(values: Any, words: str, surrogate: neb.Surrogate) -> None:
    with pytest.raises(ValueError) as refused:
        surrogate.log_prob([[0.0, 0.0]], values)
    assert isinstance(refused.value, neb.NebError) and refused.value.hint
    assert words in str(refused.value)


def test_large_finite_values_are_no_flaw(surrogate: neb.Surrogate) -> None:
    # Their sum overflows; each of them is finite.
    x = np.full((4, 2), 3e38, np.float32)
    assert surrogate.log_prob(np.zeros((4, 2)), x).shape == (4,)


def test_a_masked_array_without_masked_values_is_a_table(surrogate: neb.Surrogate, pairs: tuple[Array, Array]) -> None:
    x, y = (part[:50] for part in pairs)
    assert np.array_equal(surrogate.log_prob(y, np.ma.array(x)), surrogate.log_prob(y, x))


def test_names_must_fit_the_columns(pairs: tuple[Array, Array]) -> None:
    for names in (["a"], ["a", "a"]):
        with pytest.raises(neb.NebValueError, match="x has 2 columns and the names"):
            neb.Surrogate("mixture", epochs=1).fit(*pairs, x_names=names)


def test_later_changes_of_the_pairs_do_not_reach_the_model(pairs: tuple[Array, Array]) -> None:
    x, y = (part.copy() for part in pairs)
    fitted = neb.Surrogate("mixture", epochs=1).fit(x, y)
    x[:] = 0.0
    assert fitted.pairs_x is not None and np.array_equal(fitted.pairs_x, pairs[0])
