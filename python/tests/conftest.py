"""What the tests share: a small experiment, and a store of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trunkline

TEXT = """\
name = "calls beside bulk"
duration = "500 ms"
drain = "500 ms"
repetitions = 2
seed = 7

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "20 ms"
queue = { kind = "fifo", limit = "64 KiB" }

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }
channels = 2
reflect = true

[flow.bulk]
from = "a"
to = "b"
transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }

[sweep]
"flow.bulk.count" = [0, 2, 10]

[limits]
"flow.voice.loss" = "< 1 %"
"""


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads of Python take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def text() -> str:
    return TEXT


@pytest.fixture
def store(tmp_path: Path) -> trunkline.Store:
    return trunkline.open(tmp_path / "store")


@pytest.fixture
def experiment() -> trunkline.Experiment:
    return trunkline.Experiment.parse(TEXT)
