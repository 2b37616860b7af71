"""Runs, their tables and their records."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow
import pytest

import trunkline


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> trunkline.Run:
    from conftest import TEXT

    store = trunkline.open(tmp_path_factory.mktemp("store"))
    return trunkline.Experiment.parse(TEXT).run(store=store)


def test_a_run_is_stored_and_found(run: trunkline.Run) -> None:
    (info,) = run.store.runs()
    assert (info.id, info.backend, info.status, info.repetitions_done) == (1, "sim", "complete", 6)
    assert info.finished is not None and info.finished >= info.started
    assert run.store.run("latest").info == info == run.store.run(1).info
    assert trunkline.runs(run.store.place) == [info]
    with pytest.raises(trunkline.StoreError, match="9"):
        run.store.run(9)


def test_the_summary_is_arrow_with_types(run: trunkline.Run) -> None:
    table = run.summary.to_arrow()
    assert table.num_rows == len(run.summary) == 3 * 2 * 2
    assert table.schema.field("flow.bulk.count").type == pyarrow.float64()
    assert table.schema.field("latency_p99_s").type == pyarrow.float64()
    assert table.column("flow").to_pylist()[:2] == ["voice", "bulk"]
    voice = [row for row in table.to_pylist() if row["flow"] == "voice"]
    by_count = {row["flow.bulk.count"]: row["latency_p50_s"] for row in voice}
    assert by_count[10.0] > by_count[0.0] > 0.04, "a round trip takes 40 ms, and bulk transfers delay it"


def test_the_figures_are_those_of_the_report(run: trunkline.Run) -> None:
    point = run.report()["points"][0]
    assert point, "the report has points"
    assert run.report()["limits"][0]["key"] == "flow.voice.loss"


def test_pandas_and_polars_read_the_same_rows(run: trunkline.Run) -> None:
    pandas = run.summary.to_pandas()
    polars = run.summary.to_polars()
    assert list(pandas.columns) == polars.columns == run.summary.column_names
    assert pandas["latency_p99_s"].tolist()[:1] == polars["latency_p99_s"].to_list()[:1]


def test_arrow_is_handed_over_without_copies(run: trunkline.Run) -> None:
    """Two readers of one table see the same memory."""
    summary = run.summary
    first, second = (pyarrow.table(summary).column("latency_p99_s").chunk(0).buffers()[1] for _ in range(2))
    assert first.address == second.address


def test_limits_and_links(run: trunkline.Run) -> None:
    assert len(run.stalls) == 0, "virtual time does not stall"
    limits = run.limits.to_arrow().to_pylist()
    assert [row["point"] for row in limits] == [0, 1, 2]
    assert {row["condition"] for row in limits} == {"< 1 %"}
    assert run.limits_hold == all(row["outcome"] == "holds" for row in limits)
    assert len(run.links) == 3 * 2 * 2
    assert len(run.bundles) == 0


def test_records_are_read_when_they_are_asked_for(run: trunkline.Run) -> None:
    records = run.records("voice")
    assert len(records) == 6
    lazy = records.to_polars()
    counted = lazy.group_by("point").len().collect()
    per_point = dict(counted.iter_rows())
    assert set(per_point) == {0, 1, 2}
    table = records.to_arrow(columns=["sent_ns", "received_ns"])
    assert table.num_rows == sum(per_point.values())
    assert table.column_names == ["point", "repetition", "sent_ns", "received_ns"]
    with pytest.raises(KeyError, match="no column `sent`"):
        records.to_arrow(columns=["sent"])
    with pytest.raises(KeyError, match="known: voice, bulk"):
        run.records("video")


def test_a_flow_without_messages_has_records_with_types(experiment: trunkline.Experiment, tmp_path: Path) -> None:
    experiment.sweep("flow.bulk.count", [0])
    records = experiment.run(store=tmp_path / "none").records("bulk")
    assert len(records) == 2
    table = records.to_arrow()
    assert table.num_rows == 0
    assert table.column_names[:2] == ["point", "repetition"] and "sent_ns" in table.column_names
    few = records.to_arrow(columns=["sent_ns"])
    assert few.schema == pyarrow.schema([("point", pyarrow.uint32()), ("repetition", pyarrow.uint32()), table.schema.field("sent_ns")])
    assert len(records.to_pandas()) == 0
    with pytest.raises(KeyError, match="no column `sent`"):
        records.to_arrow(columns=["sent"])


def test_jobs_have_bounds(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    for jobs in (-1, 0, 1025):
        with pytest.raises(trunkline.ExperimentError, match=f"1 to 1024, not {jobs}"):
            experiment.run(store=store, jobs=jobs)
    assert store.runs() == []


def test_what_the_store_refuses_is_an_error_of_the_store(run: trunkline.Run) -> None:
    with pytest.raises(trunkline.StoreError, match="complete"):
        trunkline._trunkline.resume(run.store._core, 1)


def test_the_report_s_own_figure_is_shown_in_a_notebook(run: trunkline.Run) -> None:
    html = run._repr_html_()
    assert "<svg" in html and "calls beside bulk" in html
    assert run.html().startswith("<!DOCTYPE html>")
    with pytest.raises(KeyError, match="no figure `none`"):
        run.svg("none")


def test_latency_is_plotted(run: trunkline.Run) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = run.plot.latency("voice")
    median, worst = axes.get_lines()
    assert list(median.get_xdata()) == [0.0, 2.0, 10.0]
    assert all(low <= high for low, high in zip(median.get_ydata(), worst.get_ydata()))


def test_progress_is_told(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    told: list[trunkline.Done] = []
    experiment.run(store=store, progress=told.append)
    assert told[-1] == trunkline.Done(1.0, 6, 6, 1)


def test_other_threads_of_python_run_meanwhile(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    experiment["duration"] = "20 s"
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    experiment.run(store=store)
    stop.set()
    thread.join()
    assert counted[0] > 20


def test_an_interrupted_run_keeps_what_it_has_and_is_resumed(tmp_path: Path, text: str) -> None:
    file = tmp_path / "calls.toml"
    file.write_text(text.replace("repetitions = 2", "repetitions = 60"))
    program = (
        "import sys, trunkline\n"
        "exp = trunkline.Experiment.load(sys.argv[1])\n"
        "told = lambda done: print(done.repetitions, flush=True)\n"
        "exp.run(store=sys.argv[2], progress=told)\n"
    )
    arguments = [sys.executable, "-c", program, str(file), str(tmp_path / "store")]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    while int(child.stdout.readline()) < 3:
        pass
    os.kill(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    run = trunkline.open(tmp_path / "store").run()
    assert run.info.status == "partial"
    before = run.info.repetitions_done
    assert 3 <= before < 180
    done = run.resume()
    assert (done.info.id, done.is_complete, done.info.repetitions_done) == (run.info.id, True, 180)


def test_what_is_refused_writes_nothing(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    experiment["flow.voice.transport"] = "carrier pigeon"
    with pytest.raises(trunkline.ExperimentError):
        experiment.run(store=store)
    assert store.runs() == []


def test_a_live_run_has_python_at_its_other_end(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    experiment["repetitions"] = 1
    experiment.sweep("flow.bulk.count", [1])
    run = experiment.run(on="live", store=store)
    assert (run.info.backend, run.is_complete) == ("live", True)
    (voice, _) = run.summary.to_arrow().to_pylist()
    assert voice["latency_p50_s"] > 0
    # Of this machine, in the time of the records.
    stalls = run.stalls.to_arrow()
    assert stalls.column_names == ["run", "point", "flow.bulk.count", "repetition", "at_ns", "length_ns"]
    assert all(length >= 1_000_000 for length in stalls["length_ns"].to_pylist())
