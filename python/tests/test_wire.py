"""Runs on the wire: in a process of their own, whatever threads this one has."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import trunkline


@pytest.fixture
def experiment(text: str) -> trunkline.Experiment:
    """Two repetitions of a third of a second."""
    experiment = trunkline.Experiment.parse(text)
    experiment["duration"], experiment["drain"] = "300 ms", "100 ms"
    return experiment.sweep("flow.bulk.count", [1])


@pytest.fixture
def namespaces(experiment: trunkline.Experiment, tmp_path: Path) -> None:
    """Skips the test where the system refuses namespaces."""
    experiment = experiment.copy()
    experiment["repetitions"] = 1
    try:
        experiment.run(on="wire", store=tmp_path / "tried")
    except trunkline.TrunklineError as error:
        if "does not allow you to create network namespaces" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.usefixtures("namespaces")
def test_a_process_with_threads_runs_on_the_wire(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    users = os.readlink("/proc/self/ns/user")
    told: list[trunkline.Done] = []
    waits = threading.Event()
    thread = threading.Thread(target=waits.wait)
    thread.start()
    try:
        run = experiment.run(on="wire", store=store, progress=told.append)
    finally:
        waits.set()
        thread.join()
    assert (run.info.backend, run.is_complete, told[-1]) == ("wire", True, trunkline.Done(1.0, 2, 2, 1))
    (voice, *_) = run.summary.to_arrow().to_pylist()
    # There and back over the link's 20 ms, and no longer than its queue.
    assert 0.04 < voice["latency_p50_s"] < 0.5
    assert os.readlink("/proc/self/ns/user") == users, "this process has the user that it had"


@pytest.mark.usefixtures("namespaces")
def test_problems_are_those_of_the_experiment(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    with pytest.raises(trunkline.ExperimentError, match="1 to 1024"):
        experiment.run(on="wire", store=store, jobs=0)
    experiment["flow.voice.transport"] = "carrier pigeon"
    with pytest.raises(trunkline.ExperimentError, match="carrier pigeon") as raised:
        experiment.run(on="wire", store=store)
    assert raised.value.problems[0].is_setting
    assert store.runs() == []


@pytest.mark.usefixtures("namespaces")
def test_an_error_of_the_progress_s_function_ends_the_run(
    experiment: trunkline.Experiment, store: trunkline.Store
) -> None:
    def fail(_: trunkline.Done) -> None:
        raise LookupError("no screen")

    experiment["repetitions"] = 20
    with pytest.raises(LookupError, match="no screen"):
        experiment.run(on="wire", store=store, progress=fail)
    assert store.run().info.status == "partial"


@pytest.mark.usefixtures("namespaces")
def test_an_interrupted_run_is_resumed(tmp_path: Path, experiment: trunkline.Experiment) -> None:
    experiment["repetitions"] = 5
    file = tmp_path / "calls.toml"
    file.write_text(experiment.text)
    program = (
        "import sys, trunkline\n"
        "told = lambda done: print(done.repetitions, flush=True)\n"
        "trunkline.Experiment.load(sys.argv[1]).run(on='wire', store=sys.argv[2], progress=told)\n"
    )
    arguments = [sys.executable, "-c", program, str(file), str(tmp_path / "store")]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    while int(child.stdout.readline()) < 2:
        pass
    os.kill(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    run = trunkline.open(tmp_path / "store").run()
    assert run.info.status == "partial" and 2 <= run.info.repetitions_done < 5
    done = run.resume()
    assert (done.info.id, done.is_complete, done.info.repetitions_done) == (run.info.id, True, 5)


@pytest.mark.usefixtures("namespaces")
def test_a_killed_process_takes_its_run_with_it(tmp_path: Path, experiment: trunkline.Experiment) -> None:
    experiment["repetitions"] = 100
    file = tmp_path / "calls.toml"
    file.write_text(experiment.text)
    program = (
        "import sys, trunkline\n"
        "told = lambda done: print(done.repetitions, flush=True)\n"
        "trunkline.Experiment.load(sys.argv[1]).run(on='wire', store=sys.argv[2], progress=told)\n"
    )
    arguments = [sys.executable, "-c", program, str(file), str(tmp_path / "store")]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    while int(child.stdout.readline()) < 1:
        pass
    child.kill()
    # The process that measures has the other end of this pipe too, until it ends.
    child.communicate(timeout=60)
    run = trunkline.open(tmp_path / "store").run()
    assert run.info.status == "partial" and run.info.repetitions_done < 100


def test_a_system_without_namespaces_says_which_setting_forbids_them(tmp_path: Path, experiment: trunkline.Experiment) -> None:
    if not shutil.which("unshare") or not shutil.which("setpriv"):
        pytest.skip("`unshare` and `setpriv` are not installed")
    file = tmp_path / "calls.toml"
    file.write_text(experiment.text)
    program = (
        "import sys, trunkline\n"
        "try:\n"
        "    trunkline.Experiment.load(sys.argv[1]).run(on='wire', store=sys.argv[2])\n"
        "except trunkline.TrunklineError as error:\n"
        "    print(error)\n"
    )
    # In a namespace of users that may have none below it, without capabilities.
    without = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --bounding-set=-all \"$@\""
    within = ["unshare", "--user", "--map-root-user", "sh", "-c", without, "sh"]
    if subprocess.run([*within, "true"], capture_output=True).returncode:
        pytest.skip("a namespace of users cannot be made here")
    store = tmp_path / "store"
    command = [*within, sys.executable, "-c", program, str(file), str(store)]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "does not allow you to create network namespaces" in ran.stdout
    assert "sysctl user.max_user_namespaces" in ran.stdout
    assert trunkline.open(store).runs() == []
