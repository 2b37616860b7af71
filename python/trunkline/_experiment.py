"""Experiments: loaded, written as text, built in code, changed, checked and run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union

from trunkline import _toml, _trunkline, _wire
from trunkline._custom import LossFunction, SourceFunction
from trunkline._errors import ExperimentError
from trunkline._executor import Executors
from trunkline._measure import Progress, distribute, measure
from trunkline._plan import Plan, plan
from trunkline._run import Run
from trunkline._store import Store, open_store
from trunkline._toml import Value

Backend = Literal["sim", "wire", "live"]
"""Virtual time; real time over the file's links between namespaces of this machine; real sockets."""

StorePlace = Union[str, "os.PathLike[str]", Store, None]
"""A folder, an address (``postgresql://...``) or an open store; ``None`` is the store of the command line."""


@dataclass(frozen=True)
class Checked:
    """What a valid experiment consists of."""

    name: str
    sweep: dict[str, list[str]]
    """The swept keys with their values as written."""
    points: int
    repetitions: int
    """Repetitions of each point."""
    seconds: float
    """The length of all measurements together: virtual time in ``sim``."""
    refused: dict[str, str]
    """Backends on which the experiment cannot run on any machine, with the reason."""


class Experiment:
    """An experiment file's text, and settings that change it as ``--set`` does. The file itself never changes.

    Built in code, from the tables of the file::

        trunkline.Experiment(
            name="two calls",
            duration="2 s",
            hosts={"a": {}, "b": {}},
            link={"trunk": {"between": ["a", "b"], "rate": "2 Mbit/s"}},
            flow={"voice": {"from": "a", "to": "b", "transport": "udp", "source": {"kind": "voice", "samples": 80}, "count": 2}},
        )
    """

    def __init__(self, tables: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        self._core = _trunkline.Experiment(_toml.document({**(tables or {}), **more}), "<python>")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Experiment:
        """Reads and validates an experiment file.

        :raises ExperimentError: with everything that is wrong with it, by line and column.
        """
        return cls._of(_trunkline.Experiment.load(os.fspath(path)))

    @classmethod
    def parse(cls, text: str, *, file: str | os.PathLike[str] = "<python>") -> Experiment:
        """Reads and validates a text. Paths in it are relative to the folder of ``file``, which names it in problems.

        :raises ExperimentError: with everything that is wrong with it, by line and column.
        """
        experiment = cls._of(_trunkline.Experiment(text, os.fspath(file)))
        experiment._core.text()
        return experiment

    @classmethod
    def _of(cls, core: _trunkline.Experiment) -> Experiment:
        experiment = cls.__new__(cls)
        experiment._core = core
        return experiment

    def copy(self) -> Experiment:
        """A copy whose settings can be changed without changing these."""
        copy = self._of(_trunkline.Experiment(self._core.source, self._core.file, self._core.settings))
        for key, function in self._core.functions.items():
            copy._core.provide(key, function)
        return copy

    __copy__ = copy

    def __setitem__(self, key: str, value: Value) -> None:
        """Sets a key: ``exp["link.trunk.rate"] = "5 Mbit/s"``. Setting a swept key replaces its sweep. The value is
        validated by :meth:`check` and :meth:`run`, so that several keys can be set that only fit together.
        """
        self._core.set(f"{key}={_toml.setting(value)}")

    def sweep(self, key: str, values: Iterable[Value]) -> Experiment:
        """Sweeps a key over values; every combination of swept values is a point. Returns the experiment."""
        self._core.set(f"sweep.{key}={_toml.inline(list(values))}")
        return self

    def limit(self, key: str, condition: str) -> Experiment:
        """Sets a limit: ``exp.limit("flow.voice.loss", "< 1 %")``. Returns the experiment."""
        self._core.set(f"limits.{key}={condition}")
        return self

    def source(self, flow: str, function: SourceFunction, *, largest: Value = "1200 B") -> Experiment:
        """Gives a flow a source of your own, in ``sim``. Returns the experiment::

            def calls(random):      # a numpy.random.Generator
                while True:         # a thousand messages at a time
                    yield random.exponential(0.02, 1000), random.integers(100, 1200, 1000)

            exp.source("voice", calls)

        :param function: called for each channel of each repetition, with a generator of random numbers that follows from the
            experiment's seed. It gives batches of messages: arrays of the seconds since the message before (of the first, since
            the flow's start) and of the sizes in bytes; a single number counts for the whole batch. The source ends with the last batch.
            The results must not depend on anything else: channels of several repetitions are made on many threads.
        :param largest: the largest message.
        """
        self[f"flow.{_toml.key(flow)}.source"] = {"kind": "custom", "largest": largest}
        self._core.provide(f"flow.{flow}.source", function)
        return self

    def loss(self, link: str, function: LossFunction, *, direction: str | None = None) -> Experiment:
        """Gives a link a loss model of your own, in ``sim``. Returns the experiment::

            def bursts(random):
                while True:
                    yield numpy.repeat(random.random(100) < 0.02, 5)

            exp.loss("trunk", bursts)

        :param function: called as in :meth:`source`, for each direction. It gives batches of losses without end: arrays with true
            for each packet that is lost.
        :param direction: ``forward`` or ``backward``; both unless told otherwise, each with random numbers of its own.
        """
        way = "" if direction is None else f".{_toml.key(direction)}"
        self[f"link.{_toml.key(link)}{way}.loss"] = {"kind": "custom"}
        self._core.provide(f"link.{link}{way}.loss", function)
        return self

    @property
    def settings(self) -> list[str]:
        """What was set, as ``KEY=VALUE``."""
        return self._core.settings

    @property
    def text(self) -> str:
        """The file's text with the settings: what runs and what is stored.

        :raises ExperimentError: if the experiment is not valid.
        """
        return self._core.text()

    def check(self, on: Backend = "sim") -> Checked:
        """Validates the experiment as ``trunkline check --on`` does.

        :raises ExperimentError: with everything that is wrong with it; a problem of a setting names the setting.
        """
        name, axes, points, repetitions, seconds, refused = self._core.check(on)
        return Checked(name, dict(axes), points, repetitions, seconds, dict(refused))

    def run(
        self,
        on: Backend = "sim",
        *,
        progress: Progress = False,
        jobs: int | None = None,
        store: StorePlace = None,
        executor: Executors | None = None,
    ) -> Run:
        """Runs the experiment and stores it.

        :param on: the backend.
        :param progress: ``True`` shows a bar in a notebook or terminal; a function is called with what is done
            (:class:`trunkline.Done`).
        :param jobs: repetitions that are simulated at once, 1 to 1024; all cores unless told otherwise.
        :param store: where the run is stored.
        :param executor: measures on the workers of an executor instead, with the same results byte for byte: one of
            :mod:`concurrent.futures`, Dask's ``Client``, :class:`trunkline.RayExecutor`; or a function that makes one,
            which is called again if the executor breaks. Only for ``sim``.
        :raises ExperimentError: before anything is stored, if the experiment is not valid.
        :raises TrunklineError: before anything is stored, if the system does not allow namespaces for ``wire``, with the setting
            that forbids them.
        :raises KeyboardInterrupt: after Ctrl-C. What was measured is stored as a partial run, which :meth:`Run.resume`
            finishes.
        """
        opened = open_store(store)
        if executor is not None:
            if on != "sim":
                raise ExperimentError(f"an executor runs `sim` only, not `{on}`")
            collector = _trunkline.Collector.begin(self._core, opened._core, on)
            return distribute(opened, progress, collector, self._core, executor)
        if on == "wire":
            return measure(opened, progress, lambda show: _wire.run(self._core, opened.place, jobs, show))
        return measure(
            opened, progress, lambda show: _trunkline.run(self._core, opened._core, on, jobs, show)
        )

    def plan(
        self,
        *,
        maximise: str | None = None,
        minimise: str | None = None,
        against: tuple[str, Iterable[Value]] | None = None,
        at_least: Value | None = None,
        at_most: Value | None = None,
        step: Value | None = None,
        precision: float | None = None,
        repetitions: int | None = None,
        most_repetitions: int | None = None,
        confidence: float = 0.95,
        on: Backend = "sim",
        resume: int | None = None,
        progress: Progress = False,
        jobs: int | None = None,
        store: StorePlace = None,
        executor: Executors | None = None,
    ) -> Plan:
        """Searches for the largest or smallest value of a key that keeps the experiment's limits, as ``trunkline plan`` does::

            exp.limit("flow.voice.loss", "< 1 %").plan(maximise="flow.voice.count")

        :param maximise: the key whose largest value is searched; or ``minimise``.
        :param against: a second key with values, for each of which the first is searched.
        :param at_least: the smallest value to try.
        :param at_most: the largest value to try.
        :param step: precision of the answer as an amount; or ``precision``, as a share from 0 to 1.
        :param repetitions: how often a value is measured before it is judged.
        :param most_repetitions: how often a value near the edge is measured at most.
        :param confidence: of each verdict.
        :param on: ``sim`` or ``live``.
        :param resume: the number of a partial run of the same plan, whose repetitions are not measured again.
        :param executor: measures on the workers of an executor, as in :meth:`run`. Only for ``sim``.
        :raises ExperimentError: before anything is stored, if the question cannot be answered.
        :raises KeyboardInterrupt: after Ctrl-C. What was measured is stored as a partial run.
        """
        if (maximise is None) == (minimise is None):
            raise ExperimentError("name a key with either `maximise` or `minimise`")

        if self._core.functions:
            raise ExperimentError("a plan measures what its text says: it has no sources and loss models of your own")

        def written(value: Value | None) -> str | None:
            return None if value is None else _toml.setting(value)

        asked = {
            "maximise": maximise is not None,
            "key": maximise if minimise is None else minimise,
            "against": against and (against[0], [_toml.setting(value) for value in against[1]]),
            "at_least": written(at_least),
            "at_most": written(at_most),
            "step": written(step),
            "precision": precision,
            "repetitions": repetitions,
            "most_repetitions": most_repetitions,
            "confidence": confidence,
        }
        return plan(self._core, open_store(store), asked, on, resume, jobs, progress, executor)

    def __repr__(self) -> str:
        settings = "".join(f" --set {setting!r}" for setting in self.settings)
        return f"<trunkline.Experiment {self._core.file}{settings}>"
