"""Plans: the largest or smallest value of a key that keeps an experiment's limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from trunkline import _trunkline
from trunkline._errors import ExperimentError
from trunkline._executor import Executors, Spec, Sweep, rest_of_run
from trunkline._measure import Progress, Show, measure

if TYPE_CHECKING:
    from trunkline._run import Run
    from trunkline._store import Store


class Value(NamedTuple):
    """A value of the searched key."""

    value: str
    """As written in a file."""
    number: float
    """In the plan's ``unit``."""


@dataclass(frozen=True)
class Trial:
    """A value that was tried."""

    value: Value
    verdict: str | None
    """``kept``, ``broken``, ``undecided`` or ``not-applicable``; ``None`` if it was not judged."""
    repetitions: int
    refused: str | None
    """The reason why the experiment cannot run with it; ``None`` if it can."""


@dataclass(frozen=True)
class Answer:
    """The answer for one combination of the other swept values."""

    values: dict[str, str | None]
    """The other swept values, by key."""
    kept: Value | None
    """The last value that keeps the limits; ``None`` if none was found."""
    broken: Value | None
    """The first value that breaks a limit; ``None`` if none was found."""
    sentence: str
    """The answer as the command line prints it."""
    is_finished: bool
    """True if the search was completed."""
    trials: tuple[Trial, ...]
    """All tried values, the smallest first."""

    @classmethod
    def _of(cls, found: dict[str, Any]) -> Answer:
        def value(of: dict[str, Any] | None) -> Value | None:
            return None if of is None else Value(of["value"], of["number"])

        trials = (
            Trial(Value(of["value"], of["number"]), of["verdict"], of["repetitions"], of["refused"])
            for of in found["trials"]
        )
        kept, broken = value(found["kept"]), value(found["broken"])
        return cls(found["values"], kept, broken, found["sentence"], found["finished"], tuple(trials))


class Plan:
    """A question and its answers."""

    def __init__(self, run: Run, found: dict[str, Any]) -> None:
        self.run = run
        """The run that keeps every repetition."""
        self.found = found
        """Everything, as ``trunkline plan --json`` prints it."""
        self.answers: tuple[Answer, ...] = tuple(Answer._of(answer) for answer in found["answers"])
        """An answer for every combination of the other swept values."""

    @property
    def key(self) -> str:
        """The key that was searched."""
        key: str = self.found["key"]
        return key

    @property
    def unit(self) -> str:
        """The unit of numbers of the key: ``kbit/s``, ``ms``, or empty for counts."""
        unit: str = self.found["unit"]
        return unit

    def __repr__(self) -> str:
        return f"<trunkline.Plan of {self.key}: {' '.join(answer.sentence for answer in self.answers)}>"


def plan(
    experiment: _trunkline.Experiment,
    store: Store,
    asked: dict[str, Any],
    on: str,
    resume: int | None,
    jobs: int | None,
    progress: Progress,
    executor: Executors | None,
) -> Plan:
    """Carries a plan out."""
    if executor is not None and on != "sim":
        raise ExperimentError(f"an executor runs `sim` only, not `{on}`")
    found: list[str] = []

    def run(show: Show | None) -> tuple[int, bool, list[str]]:
        if executor is None:
            planned = _trunkline.plan(experiment, store._core, asked, on, resume, jobs, show)
        else:
            planned = _distributed(executor, experiment, store, asked, resume, show)
        number, complete, text, told = planned
        found.append(text)
        return number, complete, told

    measured = measure(store, progress, run)
    return Plan(measured, json.loads(found[0]))


def _distributed(
    executor: Executors,
    experiment: _trunkline.Experiment,
    store: Store,
    asked: dict[str, Any],
    resume: int | None,
    show: Callable[..., None] | None,
) -> tuple[int, bool, str, list[str]]:
    sweep = Sweep(executor)

    def measure_round(text: str, file: str, named: dict[str, bytes], round: _trunkline.Round) -> None:
        spec = Spec(text, file, named, b"", "sim", _trunkline.__version__)
        left = rest_of_run(round.progress()[3])
        sweep.run(round, spec, left, lambda *_: show(*round.progress()) if show else None)

    try:
        number, complete, text, told = _trunkline.plan(
            experiment, store._core, asked, "sim", resume, min(sweep.workers(), 1024), None, measure_round
        )
    finally:
        sweep.close()
    return number, complete, text, told + list(sweep.warnings)
