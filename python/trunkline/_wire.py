"""Runs on the wire, in a process of their own."""

from __future__ import annotations

import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from trunkline import _trunkline
from trunkline._errors import TrunklineError

Ran = tuple[int, bool, list[str]]


def run(
    experiment: _trunkline.Experiment, store: str, jobs: int | None, show: Callable[..., None] | None
) -> Ran:
    """Runs an experiment on the wire and stores it."""
    # Validated here too: an error needs no process.
    named = experiment.named()
    sent = experiment.source, experiment.file, experiment.settings, named
    return _measure({"store": store, "jobs": jobs, "experiment": sent}, show)


def resume(store: str, number: int, jobs: int | None, show: Callable[..., None] | None) -> Ran:
    """Measures what a partial run on the wire lacks."""
    return _measure({"store": store, "jobs": jobs, "resume": number}, show)


def _measure(request: dict[str, Any], show: Callable[..., None] | None) -> Ran:
    process = subprocess.Popen(
        [sys.executable, "-m", "trunkline._wire_run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C in a terminal is for this process, which passes it on.
        start_new_session=True,
    )
    try:
        kind, value = _follow(process, request, show)
    except BaseException:
        # Interrupted once more, while the run was ending in order.
        process.kill()
        raise
    finally:
        process.wait()
    if kind == "ended":
        ran: Ran = value
        return ran
    if kind == "raised":
        raise value
    raise TrunklineError(f"the process that measured on the wire has ended with exit code {process.returncode}")


def _follow(
    process: subprocess.Popen[bytes], request: dict[str, Any], show: Callable[..., None] | None
) -> tuple[str, Any]:
    """Sends the request and shows progress; returns the last reply, or an exception with which this process was stopped."""
    assert process.stdin is not None and process.stdout is not None
    replies: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
    # An interrupt may come in the middle of a reply.
    threading.Thread(target=_read, args=(process.stdout, replies), daemon=True).start()
    stopped: BaseException | None = None
    try:
        with process.stdin as requests:
            pickle.dump(request, requests)
    except BrokenPipeError:
        # It has ended already.
        pass
    kind, value = "progress", None
    while kind == "progress":
        try:
            kind, value = replies.get()
            if kind == "progress" and show and not stopped:
                show(*value)
        except BaseException as error:
            if stopped:
                raise
            stopped = error
            process.send_signal(signal.SIGINT)
    return ("raised", stopped) if stopped else (kind, value)


def _read(stream: IO[bytes], replies: queue.SimpleQueue[tuple[str, Any]]) -> None:
    with stream:
        try:
            while True:
                replies.put(pickle.load(stream))
        except (EOFError, pickle.UnpicklingError):
            replies.put(("over", None))
