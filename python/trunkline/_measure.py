"""Runs with progress: a bar in a notebook or a terminal, or a function of the caller's."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from trunkline import _custom, _trunkline
from trunkline._errors import TrunklineWarning
from trunkline._executor import Executors, Spec, Sweep, rest_of_run

if TYPE_CHECKING:
    from trunkline._run import Run
    from trunkline._store import Store


@dataclass(frozen=True)
class Done:
    """How far a run is."""

    share: float
    """Share of the measuring that is done, from 0 to 1."""
    repetitions: int
    """Repetitions that are measured and stored."""
    of: int
    """All repetitions that this call measures."""
    run: int
    """The run's number in its store; 0 before it has one."""


Progress = Union[bool, Callable[[Done], object]]
"""Whether a bar is shown, or a function that is called about ten times a second."""

Show = Callable[[float, int, int, int], None]


def measure(store: Store, progress: Progress, run: Callable[[Show | None], tuple[int, bool, list[str]]]) -> Run:
    """Runs and returns the stored run; warnings of the run become warnings of Python."""
    bar = _Bar() if progress is True else None
    show = bar.show if bar else None if isinstance(progress, bool) else progress

    def call(share: float, repetitions: int, of: int, number: int) -> None:
        if show:
            show(Done(share, repetitions, of, number))

    try:
        number, complete, told = run(call if show else None)
    finally:
        if bar:
            bar.close()
    for message in told:
        warnings.warn(message, TrunklineWarning, stacklevel=3)
    if not complete:
        warnings.warn(f"run {number} is partial; `resume()` finishes it", TrunklineWarning, stacklevel=3)
    return store.run(number)


def distribute(
    store: Store,
    progress: Progress,
    collector: _trunkline.Collector,
    experiment: _trunkline.Experiment,
    executor: Executors,
) -> Run:
    """Runs on the workers of an executor and returns the stored run."""

    def run(show: Show | None) -> tuple[int, bool, list[str]]:
        functions = _custom.pickled(experiment.functions)
        text, named = experiment.text(), experiment.named()
        spec = Spec(text, experiment.file, named, functions, "sim", _trunkline.__version__)
        sweep: Sweep | None = None

        def told(done: int, of: int) -> None:
            if show:
                show(done / max(of, 1), done, of, collector.id)

        try:
            sweep = Sweep(executor)
            sweep.run(collector, spec, rest_of_run(collector.id), told)
        finally:
            if sweep:
                sweep.close()
            complete = collector.finish()
        return collector.id, complete, list(sweep.warnings)

    return measure(store, progress, run)


class _Bar:
    """A bar: HTML in a notebook, one line on a terminal, nothing elsewhere."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._handle = _notebook()
        self._terminal = sys.stderr.isatty()
        self._shown = False

    def show(self, done: Done) -> None:
        passed = time.monotonic() - self._began
        left = f", {passed / done.share * (1 - done.share):.0f} s left" if done.share > 0.01 else ""
        line = f"{done.repetitions} of {done.of} measured{left}"
        if self._handle is not None:
            percent = 100 * done.share
            self._handle.update(_Html(f"<progress max='100' value='{percent:.1f}'></progress> {line}"))
        elif self._terminal:
            cells = round(30 * done.share)
            sys.stderr.write(f"\r[{'#' * cells}{' ' * (30 - cells)}] {line}\033[K")
            sys.stderr.flush()
            self._shown = True

    def close(self) -> None:
        if self._shown:
            sys.stderr.write("\n")


class _Html:
    """What a notebook shows as HTML."""

    def __init__(self, html: str) -> None:
        self._html = html

    def _repr_html_(self) -> str:
        return self._html


def _notebook() -> Any:
    """The handle of an output of the notebook in which this runs, if it runs in one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return display(_Html("<progress></progress>"), display_id=True)
