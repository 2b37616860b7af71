"""Sources and loss models that are functions of Python."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy
import pytest

import trunkline
from test_executor import results

Batch = tuple[numpy.ndarray, numpy.ndarray]


def calls(random: numpy.random.Generator) -> Iterator[Batch]:
    """About 100 messages a second, of 40 to 100 bytes."""
    while True:
        yield random.exponential(0.01, 50), random.integers(40, 101, 50)


def bursts(random: numpy.random.Generator) -> Iterator[numpy.ndarray]:
    """Losses in bursts of five."""
    while True:
        yield numpy.repeat(random.random(10) < 0.1, 5)


@pytest.fixture
def custom(experiment: trunkline.Experiment) -> trunkline.Experiment:
    return experiment.source("voice", calls, largest="100 B").loss("trunk", bursts)


def test_the_messages_are_those_of_the_function(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    def three(random: numpy.random.Generator) -> Iterator[tuple[Any, Any]]:
        yield [0.0, 0.125], 60
        yield 0.25, [99]

    experiment["flow.bulk.count"] = 0
    experiment["flow.voice.channels"] = 1
    run = experiment.source("voice", three, largest="100 B").run(store=store)
    rows = run.records("voice").to_polars().collect().sort("point", "repetition", "sequence").to_dicts()
    assert len(rows) == 2 * 3
    due = [(row["due_ns"], row["payload_bytes"]) for row in rows]
    assert due == [(0, 60), (125_000_000, 60), (375_000_000, 99)] * 2
    assert '{ kind = "custom", largest = "100 B" }' in run.text


def test_the_losses_are_those_of_the_function(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    experiment["flow.bulk.count"] = 0
    experiment["flow.voice.reflect"] = False
    experiment.loss("trunk", lambda random: itertools.repeat([False, True, False, False]), direction="forward")
    run = experiment.run(store=store)
    rows = run.records("voice").to_polars().collect().sort("repetition", "sent_ns", "channel").to_dicts()
    assert [row["fate"] == "lost" for row in rows] == [False, True, False, False] * (len(rows) // 4)


def test_a_run_follows_from_its_seed(custom: trunkline.Experiment, tmp_path: Any) -> None:
    one = results(custom.run(store=tmp_path / "one", jobs=1))
    assert results(custom.run(store=tmp_path / "two", jobs=4)) == one
    assert results(custom.copy().run(store=tmp_path / "copy")) == one
    custom["seed"] = 8
    assert results(custom.run(store=tmp_path / "other")) != one


def test_workers_give_the_same_bytes(custom: trunkline.Experiment, tmp_path: Any) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        run = custom.run(executor=executor, store=tmp_path / "workers")
    assert results(run) == results(custom.run(store=tmp_path / "here"))


def test_a_function_is_begun_once_for_each_channel(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    begun: list[int] = []

    def counted(random: numpy.random.Generator) -> Iterator[Batch]:
        begun.append(1)
        yield from calls(random)

    experiment["flow.voice.channels"] = 3
    experiment["flow.voice.count"] = 2
    info = experiment.source("voice", counted, largest="100 B").run(store=store).info
    assert len(begun) == 3 * 2 * info.points * info.repetitions


def test_the_lock_is_taken_once_for_each_batch(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    batches: list[int] = []

    def counted(random: numpy.random.Generator) -> Iterator[tuple[Any, Any]]:
        while True:
            batches.append(1)
            yield numpy.full(10_000, 0.001), 100

    experiment["flow.bulk.count"] = 0
    experiment["repetitions"] = 1
    run = experiment.source("voice", counted, largest="100 B").run(store=store)
    # 500 ms for each of two channels.
    assert run.records("voice").to_polars().collect().height == 2 * 499
    assert len(batches) == 2


def fails(random: numpy.random.Generator) -> Iterator[Batch]:
    yield numpy.full(2, 0.1), numpy.full(2, 80)
    raise ValueError("no more of this")


def test_an_exception_of_a_function_names_the_flow(custom: trunkline.Experiment, store: trunkline.Store) -> None:
    custom.source("voice", fails)
    with pytest.raises(trunkline.ExperimentError, match=r"flow `voice`, source: ValueError: no more of this") as raised:
        custom.run(store=store)
    assert isinstance(raised.value.__cause__, ValueError)
    (info,) = store.runs()
    assert (info.status, info.repetitions_done) == ("partial", 0)
    # What has failed does not stay: another function, another run.
    assert custom.source("voice", calls, largest="100 B").run(store=store).is_complete


def test_an_exception_on_a_worker_names_the_link(custom: trunkline.Experiment, store: trunkline.Store) -> None:
    custom.loss("trunk", ended)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        with pytest.raises(trunkline.ExperimentError, match=r"link `trunk`, loss: the function has no more losses"):
            custom.run(executor=executor, store=store)


def ended(random: numpy.random.Generator) -> list[list[bool]]:
    return [[True, False]]


@pytest.mark.parametrize(
    ("batch", "problem"),
    [
        (([0.1], [101]), r"a message has 101 B; expected 1 B to 100 B \(`largest`\)"),
        (([-0.1], [100]), "seconds between messages must be 0 to 1e"),
        (([float("nan")], [100]), "seconds between messages must be 0 to 1e"),
        (([0.1, 0.2], [1, 2, 3]), "two arrays of one length"),
        (([], []), "a batch must be a list or an array with elements"),
        (3, "two arrays of one length"),
    ],
)
def test_a_wrong_batch_is_explained(
    experiment: trunkline.Experiment, store: trunkline.Store, batch: Any, problem: str
) -> None:
    experiment.source("voice", lambda random: itertools.repeat(batch), largest="100 B")
    with pytest.raises(trunkline.ExperimentError, match=f"flow `voice`, source: .*{problem}"):
        experiment.run(store=store)


def test_losses_must_be_true_or_false(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    experiment.loss("trunk", lambda random: [random.random(5)])
    with pytest.raises(trunkline.ExperimentError, match="link `trunk`, loss: losses must be true or false, not float64"):
        experiment.run(store=store)


def test_without_its_function_nothing_runs(custom: trunkline.Experiment, store: trunkline.Store) -> None:
    run = custom.run(store=store)
    with pytest.raises(trunkline.ExperimentError, match=r"flow `voice`, source: `custom` needs a function"):
        trunkline.Experiment.parse(run.text).run(store=store)
    with pytest.raises(trunkline.ExperimentError, match=r"flow `voice`, source: `custom` works in `sim` only"):
        custom.run(on="live", store=store)
    assert custom.check().points == 3
    with pytest.raises(trunkline.ExperimentError, match="plan"):
        custom.plan(maximise="flow.bulk.count")
    with pytest.raises(trunkline.ExperimentError, match="a part has no function"):
        trunkline.Loss("custom")
