"""Trunkline: carries voice and music over networks, and predicts, emulates and measures what the network does to them."""

from __future__ import annotations

import os

from trunkline._errors import ExperimentError, Problem, StoreError, TrunklineError, TrunklineWarning
from trunkline._executor import RayExecutor
from trunkline._experiment import Checked, Experiment
from trunkline._learn import Known, Learned, Unknown, learn, learn_each
from trunkline._machines import (
    Arrival,
    ClockOffset,
    Datagram,
    Drop,
    Endpoint,
    Event,
    Link,
    Loss,
    Message,
    Meter,
    Offset,
    Source,
    Window,
    endpoints,
)
from trunkline._measure import Done
from trunkline._parts import NotBefore, Packet, Queue, Rating, e_model
from trunkline._plan import Answer, Plan, Trial
from trunkline._run import Records, Run, Table
from trunkline._store import RunInfo, Store
from trunkline._trunkline import __version__

__all__ = [
    "Answer",
    "Arrival",
    "Checked",
    "ClockOffset",
    "Datagram",
    "Done",
    "Drop",
    "Endpoint",
    "Event",
    "Experiment",
    "ExperimentError",
    "Known",
    "Learned",
    "Link",
    "Loss",
    "Message",
    "Meter",
    "NotBefore",
    "Offset",
    "Packet",
    "Plan",
    "Problem",
    "Queue",
    "Rating",
    "RayExecutor",
    "Records",
    "Run",
    "RunInfo",
    "Source",
    "Store",
    "StoreError",
    "Table",
    "Trial",
    "TrunklineError",
    "TrunklineWarning",
    "Unknown",
    "Window",
    "__version__",
    "e_model",
    "endpoints",
    "learn",
    "learn_each",
    "open",
    "runs",
]


def open(place: str | os.PathLike[str] | None = None) -> Store:
    """Opens a store: a folder, or a server's address (``postgresql://...?files=s3://...``). Without one, the store of the
    command line: ``TRUNKLINE_STORE``, or the user's data folder.
    """
    return Store(place)


def runs(place: str | os.PathLike[str] | None = None) -> list[RunInfo]:
    """The runs of a store, the oldest first."""
    return Store(place).runs()
