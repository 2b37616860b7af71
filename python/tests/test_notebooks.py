"""The notebooks: what they claim holds, as their assertions compute it, and no outputs are in git."""

from __future__ import annotations

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

from jupyter_client.manager import AsyncKernelManager  # noqa: E402

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

CELL = 60
"""Seconds that a cell takes at most, on a busy machine. On an idle one, a whole notebook takes less than half of this."""


def test_they_are_where_docs_say() -> None:
    documentation = (FOLDER.parents[1] / "docs" / "python.md").read_text()
    assert NOTEBOOKS
    assert [file.name for file in NOTEBOOKS if f"python/notebooks/{file.name}" not in documentation] == []


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_is_stored_without_outputs(file: Path) -> None:
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.source for cell in code if cell.outputs or cell.execution_count is not None] == []
    assert [cell.source for cell in notebook.cells if cell.metadata] == []
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert any("\nassert " in f"\n{cell.source}" for cell in code), "a claim that nothing computes is prose"


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    # Sockets of the file system: other users of the machine cannot connect to the kernel.
    kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(tmp_path / "kernel"))
    notebook = nbformat.read(file, as_version=4)
    resources = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(notebook, km=kernel, timeout=CELL, resources=resources).execute()
