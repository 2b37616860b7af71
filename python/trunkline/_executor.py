"""Runs on executors: processes of this machine, Dask, Ray, or anything else with ``submit``."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, Union, runtime_checkable

from trunkline import _custom, _trunkline
from trunkline._errors import ExperimentError, TrunklineError

Task = tuple[int, int, int]
"""Point, repetition, and the point's number in the stored run, all from 0."""

BATCH = 2.0
"""Seconds of work that are sent at once: long beside the cost of sending and collecting a batch."""
LEAST = 0.1
"""Seconds of work that are sent at once at least. The last batches are the shortest, so that all workers end together."""
ASKED = 1.0
"""Seconds for which the number of workers is taken to stay as it is."""
ATTEMPTS = 4
"""A task is tried this many times at most, if workers die or fail."""
STRAGGLER = 4.0
"""A batch that takes this many times as long as expected is given to another worker too, once nothing else is left."""


@runtime_checkable
class Executor(Protocol):
    """What is needed of an executor: :mod:`concurrent.futures`, Dask's ``Client``, mpi4py's and Parsl's have it."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Returns a future with ``add_done_callback``, ``result`` and ``cancel``."""


Executors = Union[Executor, Callable[[], Executor]]
"""An executor, or a function that makes one, which is called again if the executor breaks. Those of :mod:`concurrent.futures` that
it has made are shut down.
"""


class RayExecutor:
    """Ray as an executor, for a process that has called ``ray.init``."""

    def __init__(self) -> None:
        import ray

        self._ray = ray
        resources: Any = ray.cluster_resources()  # type: ignore[no-untyped-call, unused-ignore]
        self._max_workers = int(resources.get("CPU", 1))

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Runs a function as a task of Ray."""
        return self._ray.remote(function).remote(*arguments).future()


class Work(Protocol):
    """What workers do."""

    @property
    def function(self) -> Callable[[Any, list[Task]], tuple[Any, list[str], float]]:
        """Does tasks on a worker, of a part of this work. Returns what a :class:`Collecting` takes, warnings, and the seconds that it
        took.
        """

    def part(self, tasks: list[Task]) -> Any:
        """Whatever a worker needs for these tasks."""

    def name(self, task: Task) -> str:
        """A task in a few words."""


@dataclass(frozen=True)
class Spec:
    """An experiment as it travels to a worker, with the files that it names. It is valid."""

    text: str
    """With its settings."""
    file: str
    named: dict[str, bytes] = field(hash=False)
    functions: bytes
    """Those of custom sources and loss models, pickled."""
    on: str
    version: str

    @property
    def function(self) -> Callable[[Spec, list[Task]], tuple[bytes, list[str], float]]:
        return measure

    def part(self, tasks: list[Task]) -> Spec:
        return self

    def name(self, task: Task) -> str:
        return f"repetition {task[1]} of point {task[0]}"


_known: tuple[Spec, _trunkline.Experiment] | None = None


def rest_of_run(number: int) -> str:
    """What becomes of the rest of a run."""
    return f"run {number} is partial, and `resume(executor=...)` measures the rest"


def measure(spec: Spec, tasks: list[Task]) -> tuple[bytes, list[str], float]:
    """On a worker: measures repetitions. Returns an archive, warnings, and the seconds that it took."""
    global _known
    same_version(spec.version)
    if _known is None or _known[0] != spec:
        # Read once for each worker, however many batches it measures; a point is read when it is measured.
        experiment = _trunkline.Experiment.validated(spec.text, spec.file, spec.named)
        for key, function in _custom.unpickled(spec.functions).items():
            experiment.provide(key, function)
        _known = spec, experiment
    began = time.monotonic()
    archive, warnings = _trunkline.measure_part(_known[1], spec.on, tasks, 1)
    return archive, warnings, time.monotonic() - began


def same_version(client: str) -> None:
    """On a worker: refuses the work of another version."""
    if client != _trunkline.__version__:
        raise TrunklineError(f"a worker has trunkline {_trunkline.__version__}, and the client {client}")


@dataclass
class _Batch:
    tasks: list[Task]
    began: float
    doubled: bool = False


class Collecting(Protocol):
    """Keeps what workers have done."""

    def missing(self) -> list[Task]:
        """The tasks that are not done yet."""

    def take(self, done: Any, seconds: float, /) -> int:
        """Keeps what a work's function has returned, each task of which took so long. Returns how many of them were missing."""


class Sweep:
    """Tasks that an executor does, such as repetitions of a run. Each is collected once, from the first worker that returns it;
    batches of workers that die are given to others.
    """

    def __init__(self, executors: Executors) -> None:
        self._make: Callable[[], Executor] | None = None
        if isinstance(executors, Executor) and not isinstance(executors, type):
            self._executor: Executor = executors
        else:
            self._make = executors
            self._executor = self._make()
        self._each: float | None = None
        self._workers, self._asked = 1, -ASKED
        self.warnings: dict[str, None] = {}

    def run(self, collector: Collecting, work: Work, left: str, show: Callable[[int, int], None]) -> None:
        """Does everything that a collector misses of a work. ``show`` is called with the number of tasks that are done, and of all.
        ``left`` says what becomes of the rest after a failure.
        """
        self._begin(collector, work, left)
        of = len(self._missing)
        try:
            while self._missing:
                self._submit()
                self._collect(0.2)
                # All that has been returned, so that no batch that is over counts as a straggler.
                while self._missing and not self._returned.empty():
                    self._collect(0.0)
                show(of - len(self._missing), of)
        finally:
            for future, _ in self._open.values():
                future.cancel()

    def _begin(self, collector: Collecting, work: Work, left: str) -> None:
        self._collector, self._work, self._left = collector, work, left
        self._returned: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._open: dict[int, tuple[Any, _Batch]] = {}
        self._waiting = list(reversed(collector.missing()))
        self._missing = set(self._waiting)
        self._attempts: dict[Task, int] = {}

    def close(self) -> None:
        """Ends an executor that was made here. Dask's clients would end their cluster."""
        if self._make is not None and isinstance(self._executor, futures.Executor):
            self._executor.shutdown(wait=False, cancel_futures=True)

    def workers(self) -> int:
        """How many batches are measured at once."""
        if not hasattr(self._executor, "ncores"):
            return int(getattr(self._executor, "_max_workers", None) or os.cpu_count() or 1)
        # Dask's client asks its scheduler, which takes as long as a repetition may.
        now = time.monotonic()
        if now - self._asked >= ASKED:
            self._workers = max(int(sum(self._executor.ncores().values())), 1)
            self._asked = now
        return self._workers

    def _submit(self) -> None:
        """Gives every worker a batch, and one to wait."""
        workers = self.workers()
        while self._waiting and len(self._open) < 2 * workers:
            share = max(len(self._waiting) // (2 * workers), 1)
            # The first batches measure how long a repetition takes.
            each = self._each and max(self._each, 1e-6)
            size = 1 if each is None else max(min(int(BATCH / each), share), int(LEAST / each), 1)
            tasks = [self._waiting.pop() for _ in range(min(size, len(self._waiting)))]
            self._send([task for task in tasks if task in self._missing])
        if not self._waiting and self._each is not None:
            now = time.monotonic()
            for key, (_, batch) in list(self._open.items()):
                # A worker that stands still may have two batches. Or the executor has been replaced.
                if key not in self._open or len(self._open) >= 2 * workers:
                    break
                expected = STRAGGLER * max(self._each * len(batch.tasks), 1.0)
                if not batch.doubled and now - batch.began > expected:
                    batch.doubled = True
                    self._send([task for task in batch.tasks if task in self._missing], doubled=True)

    def _send(self, tasks: list[Task], *, doubled: bool = False) -> None:
        if not tasks:
            return
        # Dask gives the result of an earlier call with the same arguments otherwise.
        keywords = {"pure": False} if hasattr(self._executor, "ncores") else {}
        try:
            future = self._executor.submit(self._work.function, self._work.part(tasks), tasks, **keywords)
        except (BrokenExecutor, RuntimeError) as error:
            # Counted: an executor that takes nothing is not made again without end.
            self._replace(error, tasks)
            return
        self._open[id(future)] = future, _Batch(tasks, time.monotonic(), doubled)
        future.add_done_callback(self._returned.put)

    def _replace(self, error: BaseException, tasks: list[Task]) -> None:
        """Makes another executor in place of one that broke with these tasks."""
        if self._make is None:
            raise TrunklineError(f"the executor has failed: {error or type(error).__name__}; {self._left}") from error
        # Once each, however many workers had it.
        lost = dict.fromkeys(tasks)
        for future, batch in self._open.values():
            future.cancel()
            lost.update(dict.fromkeys(batch.tasks))
        self._open.clear()
        self._again(list(lost), error)
        self.close()
        self._executor = self._make()

    def _collect(self, patience: float) -> None:
        """Stores what one batch has returned, and waits for it this many seconds."""
        try:
            future = self._returned.get(timeout=patience)
        except queue.Empty:
            return
        _, batch = self._open.pop(id(future), (None, None))
        if batch is None:
            return
        try:
            archive, warnings, took = future.result()
        except ExperimentError:
            raise
        except BrokenExecutor as error:
            self._replace(error, batch.tasks)
        except Exception as error:  # noqa: BLE001
            # A worker that was killed, a lost connection: whatever an executor raises for it.
            self._again(batch.tasks, error)
        except BaseException as error:
            if type(error).__name__ != "CancelledError":
                raise
            self._again(batch.tasks, error)
        else:
            wanted = self._missing.intersection(batch.tasks)
            each = took / len(batch.tasks)
            is_whole = self._collector.take(archive, each) >= len(wanted)
            self._missing -= wanted if is_whole else wanted.difference(self._collector.missing())
            self.warnings.update(dict.fromkeys(warnings))
            self._each = each if self._each is None else 0.8 * self._each + 0.2 * each
            if not is_whole:
                self._again(batch.tasks, TrunklineError("a worker has returned less than it was asked for"))

    def _again(self, tasks: list[Task], error: BaseException) -> None:
        waiting = set(self._waiting)
        for task in tasks:
            if task not in self._missing:
                continue
            self._attempts[task] = self._attempts.get(task, 0) + 1
            if self._attempts[task] >= ATTEMPTS:
                raise TrunklineError(
                    f"{self._work.name(task)} has failed {ATTEMPTS} times, last with: {error!r}; {self._left}"
                ) from error
            elsewhere = [batch for _, batch in self._open.values() if task in batch.tasks]
            for batch in elsewhere:
                # Its worker may be lost too: another may have it then.
                batch.doubled = False
            if not elsewhere and task not in waiting:
                self._waiting.append(task)
