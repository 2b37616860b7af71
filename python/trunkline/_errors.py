"""The exceptions of the package."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """One thing that is wrong with an experiment."""

    file: str
    """The file, as it was named; for a setting, its text (``--set link.trunk.rate=fast``)."""
    line: int
    """The line, from 1."""
    column: int
    """The column in characters, from 1."""
    message: str
    """What is wrong, what was expected and what to do: the sentence of the command line."""
    text: str
    """The message with its place and the marked line, as the command line prints it."""
    is_setting: bool
    """True if it is about a setting and not about a line of the file."""


class TrunklineError(RuntimeError):
    """The machine, the network or the store refuses; nothing is wrong with the experiment."""


class StoreError(TrunklineError, LookupError):
    """The store has no such run, or cannot be opened as it was named."""


class ExperimentError(ValueError):
    """The experiment is wrong. ``problems`` has everything that is wrong with it; ``file``, ``line``, ``column`` and
    ``message`` are those of the first problem. An error without a place in a file has no problems.
    """

    def __init__(self, text: str, problems: list[tuple[str, int, int, str, str, bool]] | None = None) -> None:
        super().__init__(text)
        self.problems: tuple[Problem, ...] = tuple(Problem(*problem) for problem in problems or [])

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), [tuple(problem) for problem in self.problems])

    @property
    def file(self) -> str | None:
        """The file of the first problem."""
        return self.problems[0].file if self.problems else None

    @property
    def line(self) -> int | None:
        """The line of the first problem, from 1."""
        return self.problems[0].line if self.problems else None

    @property
    def column(self) -> int | None:
        """The column of the first problem in characters, from 1."""
        return self.problems[0].column if self.problems else None

    @property
    def message(self) -> str:
        """The sentence of the first problem."""
        return self.problems[0].message if self.problems else str(self)


class TrunklineWarning(UserWarning):
    """Something that a run reports and that does not end it."""
