"""Experiments: loaded, built, changed, and refused with the sentences of the command line."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from pathlib import Path

import pytest

import trunkline


def test_an_experiment_is_loaded_and_checked(tmp_path: Path, text: str) -> None:
    file = tmp_path / "calls.toml"
    file.write_text(text)
    checked = trunkline.Experiment.load(file).check()
    assert checked.name == "calls beside bulk"
    assert (checked.points, checked.repetitions) == (3, 2)
    assert checked.sweep == {"flow.bulk.count": ["0", "2", "10"]}
    assert checked.seconds == 6.0


def test_every_problem_of_a_file_has_its_place(tmp_path: Path, text: str) -> None:
    file = tmp_path / "calls.toml"
    file.write_text(text.replace('"2 Mbit/s"', '"2 parsec"').replace('"20 ms"', '"20 parsec"'))
    with pytest.raises(trunkline.ExperimentError) as raised:
        trunkline.Experiment.load(file)
    error = raised.value
    assert len(error.problems) == 2
    assert error.file == str(file)
    lines = file.read_text().splitlines()
    for problem in error.problems:
        assert lines[problem.line - 1][problem.column - 1 :].startswith('"2')
        # The error's text is what the command line prints: every sentence, with the marked line.
        assert f"{file}:{problem.line}:{problem.column}: {problem.message}" in str(error)
        assert "^^^" in problem.text
    assert (error.line, error.column, error.message) == error.problems[0][1:4]


def test_an_error_survives_pickling(text: str) -> None:
    with pytest.raises(trunkline.ExperimentError) as raised:
        trunkline.Experiment.parse(text.replace('"udp"', '"udq"'), file="calls.toml")
    error = raised.value
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.problems) == (str(error), error.problems)
    assert "did you mean `udp`?" in error.message


def test_a_missing_file_is_bad_input_without_a_place(tmp_path: Path) -> None:
    with pytest.raises(trunkline.ExperimentError, match="does not exist") as raised:
        trunkline.Experiment.load(tmp_path / "none.toml")
    assert (raised.value.problems, raised.value.line) == ((), None)


def test_settings_change_what_runs_and_not_the_file(experiment: trunkline.Experiment) -> None:
    experiment["link.trunk.rate"] = "5 Mbit/s"
    experiment["repetitions"] = 1
    experiment["flow.voice.reflect"] = False
    experiment.sweep("flow.bulk.count", [0, 1]).limit("flow.voice.latency.p99", "< 150 ms")
    checked = experiment.check()
    assert (checked.points, checked.repetitions) == (2, 1)
    assert 'rate = "5 Mbit/s"' in experiment.text
    assert '"flow.voice.latency.p99" = "< 150 ms"' in experiment.text
    assert "link.trunk.rate=5 Mbit/s" in experiment.settings


def test_a_copy_has_its_own_settings(experiment: trunkline.Experiment) -> None:
    experiment["repetitions"] = 1
    other = experiment.copy()
    other["repetitions"] = 5
    assert (experiment.check().repetitions, other.check().repetitions) == (1, 5)
    third = copy.copy(experiment)
    third["repetitions"] = 6
    assert (experiment.check().repetitions, third.check().repetitions) == (1, 6)


def test_a_problem_of_a_setting_names_the_setting(experiment: trunkline.Experiment) -> None:
    experiment["link.trunk.rate"] = "5 parsec"
    with pytest.raises(trunkline.ExperimentError) as raised:
        experiment.check()
    (problem,) = raised.value.problems
    assert problem.is_setting
    assert problem.file == "--set link.trunk.rate=5 parsec"
    experiment["link.trunk.rate"] = "5 Mbit/s"
    experiment.check()


def test_an_experiment_is_built_in_code() -> None:
    experiment = trunkline.Experiment(
        name='two "calls"',
        duration="1 s",
        hosts={"a": {}, "b": {}},
        link={"trunk": {"between": ["a", "b"], "rate": "2 Mbit/s", "queue": {"kind": "fifo", "limit": "64 KiB"}}},
        flow={"voice": {"from": "a", "to": "b", "transport": "udp", "source": {"kind": "voice", "samples": 80}, "count": 2}},
        limits={"flow.voice.loss": "< 1 %"},
        sweep={"flow.voice.count": [1, 2]},
    )
    checked = experiment.check()
    assert (checked.name, checked.points) == ('two "calls"', 2)


def test_bytes_are_no_value(experiment: trunkline.Experiment) -> None:
    with pytest.raises(TypeError, match="bytes"):
        experiment["link.trunk.rate"] = b"5 Mbit/s"  # type: ignore[assignment]


def test_a_table_that_is_none_is_bad_input() -> None:
    with pytest.raises(trunkline.ExperimentError, match="`flow.voice` must be a table"):
        trunkline.Experiment(name="x", flow={"voice": 3})


@pytest.mark.usefixtures("switching")
def test_threads_read_and_set_one_experiment(experiment: trunkline.Experiment) -> None:
    """Neither waits for the other with what the other needs: a deadlock would leave the threads alive."""

    def change() -> None:
        for repetitions in range(200):
            experiment["repetitions"] = repetitions % 3

    def read() -> None:
        for _ in range(200):
            try:
                assert experiment.check().repetitions in (1, 2)
            except trunkline.ExperimentError:
                # 0 repetitions, or none yet: the error is built in Python.
                assert experiment.settings

    threads = [threading.Thread(target=target, daemon=True) for target in (change, read, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_an_unknown_backend_is_bad_input(experiment: trunkline.Experiment) -> None:
    with pytest.raises(trunkline.ExperimentError, match="unknown backend `moon`"):
        experiment.check(on="moon")  # type: ignore[arg-type]


def test_the_time_of_validation_grows_with_the_points(experiment: trunkline.Experiment) -> None:
    """It grew with their square: each point was read beside the values of all others."""

    def seconds(points: int) -> float:
        sweep = experiment.copy().sweep("link.trunk.delay", [f"{1000 + point} us" for point in range(points)])
        began = time.process_time()
        assert sweep.check().points == points
        return time.process_time() - began

    experiment["flow.bulk.count"] = 1
    assert seconds(4_000) < 12 * seconds(500)
