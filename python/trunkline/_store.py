"""Stores of runs."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Union

from trunkline import _trunkline
from trunkline._run import Run


@dataclass(frozen=True)
class RunInfo:
    """A stored run without its results."""

    id: int
    name: str
    backend: str
    """``sim``, ``wire`` or ``live``."""
    status: str
    """``running``, ``complete`` or ``partial``."""
    started: datetime
    finished: datetime | None
    points: int
    repetitions: int
    repetitions_done: int
    """Repetitions that were measured to the end, over all points."""
    tags: tuple[str, ...]
    key: str
    """Tells the run from those of all other stores."""

    @classmethod
    def _of(cls, text: str) -> RunInfo:
        info: dict[str, Any] = json.loads(text)
        return cls(
            started=_time(info["started"]),
            finished=_time(info["finished"]) if info["finished"] else None,
            tags=tuple(info["tags"]),
            **{
                name: info[name]
                for name in (
                    "id", "name", "backend", "status", "points", "repetitions", "repetitions_done", "key"
                )
            },
        )


def _time(text: str) -> datetime:
    # Python 3.10 reads neither `Z` nor more than six digits of a second.
    whole, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{fraction[:6]:0<6}+00:00")


class Store:
    """A folder of runs, or a PostgreSQL server with the files of its runs here or in a bucket."""

    def __init__(self, place: str | os.PathLike[str] | None = None) -> None:
        self._core = _trunkline.Store(None if place is None else os.fspath(place))

    @property
    def place(self) -> str:
        """The folder or the address."""
        return self._core.place

    def runs(self) -> list[RunInfo]:
        """The stored runs, the oldest first."""
        return [RunInfo._of(text) for text in self._core.runs()]

    def run(self, selector: int | str = "latest") -> Run:
        """A run by its number, its folder's name, or ``latest``.

        :raises StoreError: if there is no such run.
        """
        return Run(self, self._core.run(self._core.find(str(selector))))

    def __repr__(self) -> str:
        return f"<trunkline.Store {self.place}>"


def open_store(place: Union[str, "os.PathLike[str]", Store, None]) -> Store:
    """The store, opened if it is not."""
    return place if isinstance(place, Store) else Store(place)
