"""Descriptions of links out of recordings."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple, Union

from trunkline import _trunkline
from trunkline._errors import ExperimentError
from trunkline._executor import Executors, Sweep, Task, same_version

Recording = Union[str, "os.PathLike[str]"]
"""A file with a recording."""


class Known(NamedTuple):
    """A key that was learned."""

    direction: str
    """``forward``, ``backward``, or empty for both."""
    key: str
    value: str
    """As the file writes it, without quotation marks."""
    evidence: str
    """The source of the value, and the bounds of the true one."""


class Unknown(NamedTuple):
    """A key that the recording cannot tell."""

    direction: str
    key: str
    why: str


class Learned:
    """The description of a link, with the evidence for each key."""

    def __init__(self, core: _trunkline.Learned, name: str, when: str | None = None) -> None:
        self._core = core
        self._name = name
        self._when = when or datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def __reduce__(self) -> tuple[Callable[..., Learned], tuple[str, str, str]]:
        return _unpickled, (self._core.to_json(), self._name, self._when)

    @property
    def known(self) -> list[Known]:
        """The keys that were learned."""
        return [Known(*of) for of in self._core.known(self._name)]

    @property
    def unknown(self) -> list[Unknown]:
        """The keys that stay at their defaults, because the recording cannot tell them."""
        return [Unknown(*of) for of in self._core.unknown()]

    @property
    def warnings(self) -> list[str]:
        """Whatever should be known before relying on it."""
        return self._core.warnings

    @property
    def text(self) -> str:
        """The profile as TOML. It names files beside it by the recording; :meth:`write` names them by its own target."""
        return self._core.text(self._name, self._when)

    def write(self, path: str | os.PathLike[str]) -> list[Path]:
        """Writes the profile, for ``profile = "PATH"`` in a link, and the files that it names beside it. Replaces nothing.

        :returns: everything that was written.
        """
        path = Path(path)
        if path.suffix != ".toml":
            raise ExperimentError(f"`{path}` is not a name for a link description; it must end in `.toml`")
        return [Path(file) for file in self._core.write(os.fspath(path), self._when)]

    def __repr__(self) -> str:
        return f"<trunkline.Learned {', '.join(' '.join(filter(None, of[:3])) for of in self.known)}>"


def learn(
    recording: Recording,
    second: Recording | None = None,
    *,
    same_clock: bool = False,
) -> Learned:
    """Learns the description of a link from a recording: a capture (pcap, pcapng), a trace of a stored run (Parquet), a mahimahi
    trace or log, a Pantheon log or an iBoxNet profile.

    :param second: a capture of the other end, or a mahimahi trace of the other direction.
    :param same_clock: both captures are of one clock.
    :raises ExperimentError: if nothing can be learned from them.
    """
    files = [os.fspath(file) for file in (recording, second) if file is not None]
    return Learned(_trunkline.learn(files, same_clock), Path(files[0]).stem)


def learn_each(
    recordings: Iterable[Recording | tuple[Recording, Recording]],
    *,
    same_clock: bool = False,
    executor: Executors | None = None,
) -> list[Learned | ExperimentError]:
    """Learns the description of a link from each of many recordings, in their order: where nothing can be learned, the error takes
    its place.

    :param recordings: files, or pairs of them, each as for :func:`learn`.
    :param same_clock: both captures of each pair are of one clock.
    :param executor: learns on the workers of an executor, as in :meth:`Experiment.run`, instead of this machine's cores. The content of
        the files travels to the workers, and what they learn is the same.
    """
    pairs = [
        tuple(os.fspath(file) for file in one) if isinstance(one, tuple) else (os.fspath(one),) for one in recordings
    ]
    if executor is None:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda pair: _learned(pair, same_clock), pairs))
    learning = _Learning(len(pairs))
    sweep = Sweep(executor)
    try:
        sweep.run(learning, _Recordings(pairs, same_clock, _trunkline.__version__), "nothing is kept", lambda *_: None)
    finally:
        sweep.close()
    return [learning.learned[place] for place in range(len(pairs))]


def _learned(pair: tuple[str, ...], same_clock: bool) -> Learned | ExperimentError:
    try:
        return learn(*pair, same_clock=same_clock)
    except ExperimentError as error:
        return error


def _unpickled(core: str, name: str, when: str) -> Learned:
    return Learned(_trunkline.Learned.from_json(core), name, when)


@dataclass(frozen=True)
class _Recordings:
    """Recordings as work for an executor: the number of each is the first of its task."""

    pairs: list[tuple[str, ...]]
    same_clock: bool
    version: str
    contents: dict[str, bytes] = field(default_factory=dict)
    """Those of all files that a part names and that this machine can read."""

    @property
    def function(self) -> Callable[[_Recordings, list[Task]], tuple[_Answers, list[str], float]]:
        return _learn_part

    def part(self, tasks: list[Task]) -> _Recordings:
        contents = {}
        for file in {file for task in tasks for file in self.pairs[task[0]]}:
            try:
                contents[file] = Path(file).read_bytes()
            except OSError:
                # Missing on the worker too, which says so.
                continue
        return _Recordings(self.pairs, self.same_clock, self.version, contents)

    def name(self, task: Task) -> str:
        return " and ".join(f"`{file}`" for file in self.pairs[task[0]])


_Answers = dict[int, Union[Learned, ExperimentError]]


def _learn_part(recordings: _Recordings, tasks: list[Task]) -> tuple[_Answers, list[str], float]:
    """On a worker: learns from some of the recordings."""
    same_version(recordings.version)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        # Folders of their own, so that each file keeps its name.
        files = {file for number, *_ in tasks for file in recordings.pairs[number]}
        places = {file: os.path.join(folder, str(place), Path(file).name) for place, file in enumerate(sorted(files))}
        for file, content in recordings.contents.items():
            os.mkdir(os.path.dirname(places[file]))
            Path(places[file]).write_bytes(content)
        answers: _Answers = {}
        for number, *_ in tasks:
            pair = recordings.pairs[number]
            answer = _learned(tuple(places[file] for file in pair), recordings.same_clock)
            if isinstance(answer, ExperimentError):
                text = str(answer)
                for file, place in places.items():
                    text = text.replace(place, file)
                answer = ExperimentError(text)
            answers[number] = answer
    return answers, [], time.monotonic() - began


class _Learning:
    """Collects what workers have learned."""

    def __init__(self, count: int) -> None:
        self.learned: _Answers = {}
        self._count = count

    def missing(self) -> list[Task]:
        return [(number, 0, number) for number in range(self._count) if number not in self.learned]

    def take(self, done: _Answers, seconds: float, /) -> int:
        new = {number: answer for number, answer in done.items() if number not in self.learned}
        self.learned.update(new)
        return len(new)
