"""Plans: in this process and on executors, with the same bytes."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future
from typing import Any

import pytest
from test_executor import Failing, kill_one, processes, results

import trunkline


@pytest.fixture
def experiment(text: str) -> trunkline.Experiment:
    """A line of 2 Mbit/s that carries some calls without loss."""
    experiment = trunkline.Experiment.parse(text)
    experiment["flow.bulk.count"] = 0
    experiment["link.trunk.queue.limit"] = "10 packets"
    return experiment


QUESTION: dict[str, Any] = {"maximise": "flow.voice.count", "at_least": 1, "at_most": 16, "repetitions": 3}


@pytest.fixture
def whole(experiment: trunkline.Experiment, tmp_path: Any) -> trunkline.Plan:
    """The plan of this process alone."""
    return experiment.plan(**QUESTION, store=tmp_path / "whole")


def test_a_plan_finds_the_edge(whole: trunkline.Plan) -> None:
    (answer,) = whole.answers
    assert answer.is_finished and answer.kept is not None and answer.broken is not None
    # Two channels of 64 kbit/s a call with headers of 28 bytes for 80 are 173 kbit/s, so some eleven fit.
    assert answer.kept.number + 1 == answer.broken.number and 5 <= answer.kept.number <= 12
    assert {trial.value.number: trial.verdict for trial in answer.trials}[answer.kept.number] == "kept"
    assert (whole.key, whole.unit) == ("flow.voice.count", "")
    assert whole.run.is_complete and len(whole.run.summary) > 0
    assert answer.sentence in repr(whole)


def test_processes_give_the_same_bytes(
    experiment: trunkline.Experiment, whole: trunkline.Plan, store: trunkline.Store
) -> None:
    told: list[trunkline.Done] = []
    with processes() as executor:
        plan = experiment.plan(**QUESTION, store=store, executor=executor, progress=told.append)
    assert plan.answers == whole.answers
    assert results(plan.run) == results(whole.run)
    assert told[-1].run == 1 and told[-1].repetitions == plan.run.info.repetitions_done


def test_a_killed_process_loses_nothing(
    experiment: trunkline.Experiment, whole: trunkline.Plan, store: trunkline.Store
) -> None:
    made = []
    done = threading.Event()

    def make() -> Any:
        made.append(processes())
        if len(made) == 1:
            threading.Thread(target=kill_one, args=(made[0], done)).start()
        return made[-1]

    def progress(at: trunkline.Done) -> None:
        if at.repetitions >= 2:
            done.set()

    plan = experiment.plan(**QUESTION, store=store, executor=make, progress=progress)
    assert len(made) == 2, "the pool broke and was replaced"
    assert plan.answers == whole.answers
    assert results(plan.run) == results(whole.run)


def test_dask_gives_the_same_bytes(
    experiment: trunkline.Experiment, whole: trunkline.Plan, store: trunkline.Store
) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        plan = experiment.plan(**QUESTION, store=store, executor=client)
    assert plan.answers == whole.answers
    assert results(plan.run) == results(whole.run)


class Interrupted(Executor):
    """Measures some batches in this thread, and is interrupted then."""

    _max_workers = 1

    def __init__(self, batches: int) -> None:
        self.left = batches

    def submit(self, function: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future


def test_an_interrupted_plan_is_resumed(
    experiment: trunkline.Experiment, whole: trunkline.Plan, store: trunkline.Store
) -> None:
    with pytest.raises(KeyboardInterrupt):
        experiment.plan(**QUESTION, store=store, executor=Interrupted(4))
    partial = store.run().info
    assert (partial.status, partial.repetitions_done) == ("partial", 4)
    plan = experiment.plan(**QUESTION, store=store, executor=Interrupted(1000), resume=1)
    assert plan.answers == whole.answers and plan.run.info.id == 1 and plan.run.is_complete


def test_what_always_fails_ends_the_plan(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    with pytest.raises(trunkline.TrunklineError, match="failed 4 times, last with: OSError"):
        experiment.plan(**QUESTION, store=store, executor=Failing())
    assert store.run().info.status == "partial"


def test_a_question_without_an_answer_is_refused(
    experiment: trunkline.Experiment, store: trunkline.Store
) -> None:
    for wrong, message in (
        ({}, "either `maximise` or `minimise`"),
        ({"maximise": "flow.voice.cuont"}, "flow.voice.count"),
        ({**QUESTION, "step": 1, "precision": 0.1}, "exclude each other"),
        ({**QUESTION, "on": "wire"}, "plan --on wire"),
        ({**QUESTION, "on": "live", "executor": Failing()}, "`sim` only"),
    ):
        with pytest.raises(trunkline.ExperimentError, match=message):
            experiment.plan(**wrong, store=store)
    assert store.runs() == []
