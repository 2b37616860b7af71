"""Stored runs: tables, records, figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunkline import _trunkline, _wire

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from trunkline._executor import Executors
    from trunkline._measure import Progress
    from trunkline._plot import Plot
    from trunkline._store import RunInfo, Store


class Table:
    """A table of a run. Every reader of Arrow's C stream interface takes it without copies:
    ``polars.DataFrame(table)``, ``pyarrow.table(table)``, ``duckdb.sql("from table")``.
    """

    def __init__(self, core: _trunkline.Table) -> None:
        self._core = core

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns. Figures end with their base unit: ``latency_p99_s``."""
        return self._core.column_names

    def __len__(self) -> int:
        return self._core.num_rows

    def to_arrow(self) -> pyarrow.Table:
        """As a table of pyarrow, over the same memory."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame of pandas, through pyarrow."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """As a data frame of polars, over the same memory."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        return f"<trunkline.Table of {len(self)} rows, {len(self.column_names)} columns>"


class Records:
    """The records of a flow: a row per message, in one Parquet file for each measurement. Nothing is read before it is
    asked for. Times are nanoseconds since the begin of the measurement.
    """

    def __init__(self, files: list[tuple[int, int, str]]) -> None:
        self.files: tuple[tuple[int, int, Path], ...] = tuple((p, r, Path(file)) for p, r, file in files)
        """Point, repetition and Parquet file of each measurement."""

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[tuple[int, int, Path]]:
        return iter(self.files)

    def to_polars(self) -> polars.LazyFrame:
        """As a lazy frame of polars, with the columns ``point`` and ``repetition`` before those of the files."""
        import polars

        frames = (
            polars.scan_parquet(file).select(
                polars.lit(point, polars.UInt32).alias("point"),
                polars.lit(repetition, polars.UInt32).alias("repetition"),
                polars.all(),
            )
            for point, repetition, file in self.files
        )
        return polars.concat(list(frames))

    def batches(self, *, columns: list[str] | None = None, rows: int = 65_536) -> Iterator[pyarrow.RecordBatch]:
        """Record batches of pyarrow, one file after the other, with ``point`` and ``repetition`` before the columns."""
        import pyarrow
        from pyarrow import parquet

        for point, repetition, file in self.files:
            with parquet.ParquetFile(file) as opened:
                for column in columns or []:
                    # pyarrow leaves out what is not there.
                    if column not in opened.schema_arrow.names:
                        raise KeyError(f"no column `{column}`; known: {', '.join(opened.schema_arrow.names)}")
                for batch in opened.iter_batches(batch_size=rows, columns=columns):
                    of = {"point": point, "repetition": repetition}
                    keys = [pyarrow.array([value] * len(batch), pyarrow.uint32()) for value in of.values()]
                    yield pyarrow.RecordBatch.from_arrays([*keys, *batch.columns], [*of, *batch.schema.names])

    def to_arrow(self, *, columns: list[str] | None = None) -> pyarrow.Table:
        """All of them as a table of pyarrow, in memory."""
        import pyarrow
        from pyarrow import parquet

        batches = list(self.batches(columns=columns))
        if batches:
            return pyarrow.Table.from_batches(batches)
        # No message at all: the types are those of the files.
        keys = pyarrow.schema([("point", pyarrow.uint32()), ("repetition", pyarrow.uint32())])
        for _, _, file in self.files[:1]:
            of = parquet.read_table(file, columns=columns, partitioning=None).schema.remove_metadata()
            return pyarrow.schema([*keys, *of]).empty_table()
        return keys.empty_table()

    def to_pandas(self, *, columns: list[str] | None = None) -> pandas.DataFrame:
        """All of them as a data frame of pandas, in memory."""
        frame: pandas.DataFrame = self.to_arrow(columns=columns).to_pandas()
        return frame

    def __repr__(self) -> str:
        return f"<trunkline.Records of {len(self)} measurements>"


class Run:
    """A stored run. Its tables and figures are read from the store when they are asked for, so that they need not fit into memory
    together.
    """

    def __init__(self, store: Store, core: _trunkline.Run) -> None:
        self._store = store
        self._core = core

    @property
    def info(self) -> RunInfo:
        """What the run is: number, backend, status, times."""
        from trunkline._store import RunInfo

        return RunInfo._of(self._core.info())

    @property
    def store(self) -> Store:
        """The store that has it."""
        return self._store

    @property
    def directory(self) -> Path:
        """The folder with its files on the host that measured it."""
        return Path(json.loads(self._core.info())["directory"])

    @property
    def is_complete(self) -> bool:
        """True if every repetition of every point was measured."""
        return self.info.status == "complete"

    @property
    def text(self) -> str:
        """The experiment file as it was run."""
        return self._core.text

    @property
    def sweep(self) -> dict[str, list[str]]:
        """The swept keys with their values as written."""
        return {key: values for key, values, _, _ in self._core.axes}

    @property
    def flows(self) -> list[str]:
        """The names of its flows."""
        return self._core.flows

    @property
    def summary(self) -> Table:
        """Every figure of every flow: a row per point, repetition and flow, in base units."""
        return Table(self._core.summary())

    @property
    def sinks(self) -> Table:
        """Figures of each sink of flows with several: a row per point, repetition, flow and sink."""
        return Table(self._core.sinks())

    @property
    def bundles(self) -> Table:
        """Figures of bundles: a row per point, repetition and bundle, and one per transport in it."""
        return Table(self._core.bundles())

    @property
    def links(self) -> Table:
        """Figures of links: a row per point, repetition and direction."""
        return Table(self._core.links())

    @property
    def stalls(self) -> Table:
        """Periods of a millisecond or more in which the measuring machine ran nothing, the longest thousand of each repetition:
        a row per stall, with times as in records. In ``wire`` and ``live`` only.
        """
        return Table(self._core.stalls())

    @property
    def limits(self) -> Table:
        """Whether the limits hold: a row per limit and point."""
        return Table(self._core.limits())

    @property
    def limits_hold(self) -> bool | None:
        """True if every limit was shown to hold wherever it applies; ``None`` without limits."""
        return self._core.limits_hold()

    def records(self, flow: str) -> Records:
        """The records of a flow's messages. Files on other hosts are fetched from the store's bucket.

        :raises KeyError: if the run has no such flow.
        """
        files = self._core.traces(flow)
        if not files and flow not in self.flows:
            raise KeyError(f"the run has no flow `{flow}`; known: {', '.join(self.flows)}")
        return Records(files)

    @property
    def plot(self) -> Plot:
        """Plots with matplotlib: ``run.plot.latency()``."""
        from trunkline._plot import Plot

        return Plot(self)

    @property
    def figures(self) -> dict[str, str]:
        """The names of the report's figures, with their titles."""
        return dict(self._core.figures())

    def svg(self, figure: str) -> str:
        """A figure of the report as SVG.

        :raises KeyError: if the report has no such figure.
        """
        svg = self._core.svg(figure)
        if svg is None:
            raise KeyError(f"the report has no figure `{figure}`; known: {', '.join(self.figures)}")
        return svg

    def html(self) -> str:
        """The report: one HTML file that needs no others."""
        return self._core.html()

    def report(self) -> dict[str, Any]:
        """The report as ``trunkline report --json`` prints it."""
        report: dict[str, Any] = json.loads(self._core.json())
        return report

    def resume(
        self, *, progress: Progress = False, jobs: int | None = None, executor: Executors | None = None
    ) -> Run:
        """Measures what a partial run lacks, and returns the run as it is then; a complete run is returned as it is."""
        from trunkline._measure import distribute, measure

        if self.is_complete:
            return self
        store, number = self._store, self.info.id
        if executor is not None:
            collector = _trunkline.Collector.resume(store._core, number)
            return distribute(store, progress, collector, self._core.experiment(), executor)
        if self.info.backend == "wire":
            return measure(store, progress, lambda show: _wire.resume(store.place, number, jobs, show))
        return measure(store, progress, lambda show: _trunkline.resume(store._core, number, jobs, show))

    def _repr_html_(self) -> str:
        info = self.info
        head = (
            f"<p><b>{_escaped(info.name)}</b>: run {info.id} on {info.backend}, {info.status}, "
            f"{info.repetitions_done} of {info.points * info.repetitions} measured</p>"
        )
        return head + "".join(self.svg(figure) for figure in list(self.figures)[:1])

    def __repr__(self) -> str:
        info = self.info
        return f"<trunkline.Run {info.id} {info.name!r} on {info.backend}, {info.status}>"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
