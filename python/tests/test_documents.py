"""What the documents show, run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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


def test_tutorial(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(ROOT / "docs/tutorial.ipynb", as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
