"""Runs on executors: the same bytes wherever each repetition was measured, and nothing lost when workers die."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import trunkline
from trunkline import _executor


def processes(workers: int = 2) -> ProcessPoolExecutor:
    """Processes that are started afresh: a fork would copy threads of this one in the middle of their work."""
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def results(run: trunkline.Run) -> tuple[dict[str, bytes], list[tuple[Any, ...]]]:
    """Every file with results, and the rows of the database."""
    folder = run.directory
    files = {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "running.lock"
    }
    with sqlite3.connect(Path(run.store.place) / "trunkline.db") as database:
        query = "SELECT point, repetition, partial, summary FROM repetition WHERE run = ? ORDER BY point, repetition"
        return files, database.execute(query, [run.info.id]).fetchall()


@pytest.fixture
def longer(experiment: trunkline.Experiment) -> trunkline.Experiment:
    """24 repetitions, each of which takes about a tenth of a second."""
    experiment["repetitions"] = 8
    experiment["duration"] = "2 s"
    return experiment


@pytest.fixture
def whole(longer: trunkline.Experiment, tmp_path: Path) -> tuple[dict[str, bytes], list[tuple[Any, ...]]]:
    """The results of this process alone."""
    return results(longer.run(store=tmp_path / "whole"))


def test_processes_give_the_same_bytes(longer: trunkline.Experiment, store: trunkline.Store, whole: Any) -> None:
    told: list[trunkline.Done] = []
    with processes() as executor:
        run = longer.run(executor=executor, store=store, progress=told.append)
    assert run.is_complete
    assert results(run) == whole
    assert told[-1] == trunkline.Done(1.0, 24, 24, 1)


def kill_one(executor: ProcessPoolExecutor, done: threading.Event) -> None:
    """Kills a process of the executor as soon as something has been measured."""
    assert done.wait(60)
    os.kill(next(iter(executor._processes)), signal.SIGKILL)


def test_a_killed_process_loses_nothing(longer: trunkline.Experiment, store: trunkline.Store, whole: Any) -> None:
    made: list[ProcessPoolExecutor] = []
    done = threading.Event()

    def make() -> ProcessPoolExecutor:
        made.append(processes())
        if len(made) == 1:
            threading.Thread(target=kill_one, args=(made[0], done)).start()
        return made[-1]

    def progress(at: trunkline.Done) -> None:
        if at.repetitions >= 2:
            done.set()

    run = longer.run(executor=make, store=store, progress=progress)
    for executor in made:
        executor.shutdown()
    assert len(made) == 2, "the pool broke and was replaced"
    assert run.is_complete
    assert results(run) == whole


def test_a_broken_executor_leaves_a_partial_run(
    longer: trunkline.Experiment, store: trunkline.Store, whole: Any
) -> None:
    done = threading.Event()
    with processes() as executor:
        threading.Thread(target=kill_one, args=(executor, done)).start()
        with pytest.raises(trunkline.TrunklineError, match="run 1 is partial"):
            longer.run(executor=executor, store=store, progress=lambda at: at.repetitions >= 2 and done.set())
    partial = store.run()
    assert partial.info.status == "partial" and partial.info.repetitions_done >= 2
    with processes() as executor:
        run = partial.resume(executor=executor)
    assert run.is_complete
    assert results(run) == whole


class Straggling(Executor):
    """Runs everything at once in this thread, but never returns one of the batches after the first."""

    def __init__(self) -> None:
        self._max_workers = 3
        self.calls = 0

    def submit(self, function: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls += 1
        if self.calls != 4:
            future.set_result(function(*arguments))
        return future


def test_a_straggler_is_given_to_another_worker(
    longer: trunkline.Experiment, store: trunkline.Store, whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_executor, "STRAGGLER", 0.5)
    run = longer.run(executor=Straggling(), store=store)
    assert run.is_complete
    assert results(run) == whole


class Failing(Executor):
    """Fails always."""

    def submit(self, function: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(OSError("no route to the worker"))
        return future


def test_what_always_fails_ends_the_run(longer: trunkline.Experiment, store: trunkline.Store) -> None:
    with pytest.raises(trunkline.TrunklineError, match="failed 4 times, last with: OSError"):
        longer.run(executor=Failing(), store=store)
    assert store.run().info.status == "partial"


class Losing(Executor):
    """Works at once in this thread. Batches are given to several workers, which fail now and then."""

    def __init__(self, lost: set[int], failed: set[int]) -> None:
        self._max_workers = 3
        self.lost, self.failed = lost, failed
        self.batches: list[list[_executor.Task]] = []

    def submit(self, function: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.batches.append(arguments[1])
        assert arguments[1], "no batch is empty"
        if len(self.batches) in self.failed:
            future.set_exception(OSError("no route to the worker"))
        elif len(self.batches) not in self.lost:
            future.set_result(function(*arguments))
        return future


def test_the_second_worker_of_a_straggler_fails_too(
    longer: trunkline.Experiment, store: trunkline.Store, whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_executor, "STRAGGLER", 0.1)
    executor = Losing(lost={24}, failed={25})
    # One repetition in each batch: the last is lost, and its second worker fails.
    monkeypatch.setattr(_executor, "BATCH", 0.0)
    monkeypatch.setattr(_executor, "LEAST", 0.0)
    run = longer.run(executor=executor, store=store)
    assert run.is_complete
    assert results(run) == whole
    assert executor.batches[23] == executor.batches[24] == executor.batches[25]
    assert len(executor.batches) == 26


def test_a_repetition_waits_once() -> None:
    class Collector:
        def missing(self) -> list[tuple[int, int, int]]:
            return [(0, 0, 0), (0, 1, 0)]

    sweep = _executor.Sweep(Losing({1, 2}, set()))
    nothing = _executor.Spec("", "", {}, b"", "sim", "")
    sweep._begin(Collector(), nothing, "")  # type: ignore[arg-type]
    sweep._again([(0, 0, 0)], OSError())
    assert sorted(sweep._waiting) == [(0, 0, 0), (0, 1, 0)], "it waits already"
    sweep._submit()
    assert sweep._waiting == [] and len(sweep._open) == 2
    sweep._again([(0, 0, 0)], OSError())
    assert sweep._waiting == [], "another worker measures it"
    sweep._missing.clear()
    sweep._waiting.append((0, 0, 0))
    sweep._submit()
    assert (sweep._waiting, len(sweep._open)) == ([], 2), "nothing is sent that is not missing"


def test_what_a_worker_leaves_out_is_measured_again(
    longer: trunkline.Experiment, store: trunkline.Store, whole: Any
) -> None:
    class Short(Executor):
        _max_workers = 1
        sizes: list[int] = []

        def submit(self, function: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
            spec, tasks = arguments
            self.sizes.append(len(tasks))
            future: Future[Any] = Future()
            archive, warnings, _ = function(spec, tasks[:1] if len(self.sizes) == 3 else tasks)
            future.set_result((archive, warnings, 0.01 * len(tasks)))
            return future

    run = longer.run(executor=Short(), store=store)
    assert Short.sizes[2] > 1 and sum(Short.sizes) == 24 + Short.sizes[2] - 1
    assert run.is_complete
    assert results(run) == whole


def test_executors_that_were_made_are_shut_down(longer: trunkline.Experiment, store: trunkline.Store) -> None:
    class Counting(Losing):
        shut = 0

        def __init__(self) -> None:
            super().__init__(set(), set())

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            type(self).shut += 1

    own = Counting()
    longer.run(executor=own, store=store)
    assert Counting.shut == 0, "an executor of the caller stays"
    # A class is a function that makes one, although it has `submit` too.
    longer.run(executor=Counting, store=store)
    assert Counting.shut == 1

    class Refusing(Counting):
        def submit(self, function: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
            raise RuntimeError("cannot schedule new futures")

    with pytest.raises(trunkline.TrunklineError, match="failed 4 times"):
        longer.run(executor=Refusing, store=store)
    assert Refusing.shut == 1 + 4


def test_only_the_simulator_runs_on_executors(longer: trunkline.Experiment, store: trunkline.Store) -> None:
    with pytest.raises(trunkline.ExperimentError, match="`sim` only"):
        longer.run(on="live", executor=Failing(), store=store)
    assert store.runs() == []


def test_dask_loses_a_worker_and_nothing_else(
    longer: trunkline.Experiment, store: trunkline.Store, whole: Any
) -> None:
    distributed = pytest.importorskip("distributed")
    done = threading.Event()
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))

        def kill() -> None:
            assert done.wait(60)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        run = longer.run(executor=client, store=store, progress=lambda at: at.repetitions >= 2 and done.set())
        killer.join()
    assert run.is_complete
    assert results(run) == whole


def test_a_scheduler_of_dask_is_restarted(
    longer: trunkline.Experiment, store: trunkline.Store, whole: Any
) -> None:
    """The client finds the new scheduler by its address; what the old one had is measured again."""
    distributed = pytest.importorskip("distributed")
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = str(bound.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []

    def start(module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"]
        started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))

    def start_cluster() -> None:
        start("dask_scheduler", "--host", "127.0.0.1", "--port", port)
        for _ in range(2):
            start("dask_worker", address, "--no-nanny", "--nthreads", "1")

    def progress(at: trunkline.Done) -> None:
        if at.repetitions >= 2 and len(started) == 3:
            started[0].kill()
            started[0].wait()
            start_cluster()

    start_cluster()
    try:
        with distributed.Client(address, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            run = longer.run(executor=client, store=store, progress=progress)
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert len(started) == 6 and run.is_complete
    assert results(run) == whole


class Halting:
    """Progress that stops a worker in mid-sweep, so that it neither works nor ends."""

    def __init__(self, worker: int) -> None:
        self.worker = worker
        self.halted = False

    def __call__(self, at: trunkline.Done) -> None:
        if at.repetitions >= 2 and not self.halted:
            os.kill(self.worker, signal.SIGSTOP)
            self.halted = True

    def resume(self) -> None:
        os.kill(self.worker, signal.SIGCONT)


def test_dask_has_a_straggler(
    longer: trunkline.Experiment, store: trunkline.Store, whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(_executor, "STRAGGLER", 0.5)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        halting = Halting(next(iter(client.run(os.getpid).values())))
        try:
            run = longer.run(executor=client, store=store, progress=halting)
        finally:
            halting.resume()
    assert halting.halted and run.is_complete
    assert results(run) == whole


@pytest.fixture(scope="module")
def ray_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], list[int]]]:
    """A cluster of Ray with two workers. Returns their processes."""
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        try:
            process = ray.remote(lambda: time.sleep(0.2) or os.getpid())
            yield lambda: sorted(set(ray.get([process.remote() for _ in range(4)])))
        finally:
            ray.shutdown()


def test_ray_loses_a_worker_and_nothing_else(
    longer: trunkline.Experiment, store: trunkline.Store, whole: Any, ray_workers: Callable[[], list[int]]
) -> None:
    victim, *_ = ray_workers()
    killed: list[int] = []

    def progress(at: trunkline.Done) -> None:
        if at.repetitions >= 2 and not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    run = longer.run(executor=trunkline.RayExecutor(), store=store, progress=progress)
    assert killed and victim not in ray_workers()
    assert run.is_complete
    assert results(run) == whole


def test_ray_has_a_straggler(
    longer: trunkline.Experiment,
    store: trunkline.Store,
    whole: Any,
    monkeypatch: pytest.MonkeyPatch,
    ray_workers: Callable[[], list[int]],
) -> None:
    monkeypatch.setattr(_executor, "STRAGGLER", 0.5)
    halting = Halting(ray_workers()[0])
    try:
        run = longer.run(executor=trunkline.RayExecutor(), store=store, progress=halting)
    finally:
        halting.resume()
    assert halting.halted and run.is_complete
    assert results(run) == whole


def test_batches_grow_with_what_a_repetition_takes(longer: trunkline.Experiment, store: trunkline.Store) -> None:
    sizes: list[int] = []

    class Counting(Executor):
        _max_workers = 1

        def submit(self, function: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
            sizes.append(len(arguments[1]))
            future: Future[Any] = Future()
            archive, warnings, _ = function(*arguments)
            future.set_result((archive, warnings, 0.001 * sizes[-1]))
            return future

    longer["duration"] = "100 ms"
    began = time.monotonic()
    assert longer.run(executor=Counting(), store=store).is_complete
    assert sizes[:2] == [1, 1] and max(sizes) > 4 and sum(sizes) == 24
    assert time.monotonic() - began < 60
