"""Descriptions of links out of recordings."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from trunkline import _trunkline
from trunkline._errors import ExperimentError


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

    def __init__(self, core: _trunkline.Learned, name: str) -> None:
        self._core = core
        self._name = name
        self._when = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

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
    recording: str | os.PathLike[str],
    second: str | os.PathLike[str] | None = None,
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
