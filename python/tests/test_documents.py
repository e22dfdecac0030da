"""What the documents show, run as it stands."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import neb
import neb.plot
from conftest import ROOT


def examples(document: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "docs/python.md"])
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of a document, one after the other, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    found = examples(ROOT / name)
    assert found
    names: dict[str, object] = {}
    for text in found:
        if "import torch" not in text:
            exec(compile(text, name, "exec"), names)


def test_everything_public_is_documented_and_completed() -> None:
    """`help()` has something to say about every name, with an example of every function, and Tab knows the names."""
    assert {*neb.__all__, "torch"} <= set(dir(neb)) and not {"os", "forked"} & set(dir(neb))
    told = [getattr(neb, name) for name in neb.__all__ if name != "__version__"]
    told += [getattr(neb.simulators, name) for name in neb.simulators.__all__]
    told += [getattr(neb.plot, name) for name in neb.plot.__all__]
    for thing in told:
        assert inspect.getdoc(thing), thing
        for name, member in inspect.getmembers(thing, inspect.isfunction if inspect.isclass(thing) else lambda _: False):
            assert name.startswith("_") or inspect.getdoc(member), (thing, name)
    shown = [neb.unfold, neb.fit, neb.report, neb.compare, neb.calibrate, neb.simulate, neb.log_marginal]
    for thing in [*shown, neb.Surrogate, neb.Source, neb.Run, neb.Posterior.sample, neb.plot.corner, neb.plot.spectrum]:
        assert ">>> " in (thing.__doc__ or ""), thing


def test_tutorial(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(ROOT / "docs/tutorial.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
