"""Plots of a run with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunkline._run import Run, Table


class Plot:
    """Plots of a run. Each takes the axes to draw on, or makes them, and returns them."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def latency(self, flow: str | None = None, *, ax: Any = None) -> Any:
        """Median and 99th percentile of the latency against the first swept key, a line per flow: means over repetitions
        and the other swept keys.
        """
        ax = self._axes(ax)
        for name in self._flows(flow):
            for figure, style in (("latency_p50_s", "-"), ("latency_p99_s", "--")):
                label = f"{name}, {'median' if 'p50' in figure else '99 %'}"
                self._line(ax, figure, name, 1000.0, style, label)
        ax.set_ylabel("latency [ms]")
        return self._finish(ax)

    def loss(self, flow: str | None = None, *, ax: Any = None) -> Any:
        """The share of lost messages against the first swept key, a line per flow."""
        ax = self._axes(ax)
        for name in self._flows(flow):
            self._line(ax, "loss", name, 100.0, "-", name)
        ax.set_ylabel("loss [%]")
        return self._finish(ax)

    def figure(self, figure: str, flow: str | None = None, *, ax: Any = None) -> Any:
        """Any column of ``run.summary`` against the first swept key, a line per flow."""
        ax = self._axes(ax)
        for name in self._flows(flow):
            self._line(ax, figure, name, 1.0, "-", name)
        ax.set_ylabel(figure)
        return self._finish(ax)

    def _flows(self, flow: str | None) -> list[str]:
        return self._run.flows if flow is None else [flow]

    def _axes(self, ax: Any) -> Any:
        if ax is not None:
            return ax
        from matplotlib import pyplot

        return pyplot.subplots()[1]

    def _line(self, ax: Any, figure: str, flow: str, scale: float, style: str, label: str) -> None:
        of_point: dict[int, tuple[object, list[float]]] = {}
        key, place = self._axis()
        for row in _rows(self._run.summary, ["point", "flow", figure, *key]):
            if row["flow"] == flow and row[figure] is not None:
                x = row[key[0]] if key else row["point"]
                of_point.setdefault(place(x), (x, []))[1].append(scale * row[figure])
        points = [(x, sum(values) / len(values)) for _, (x, values) in sorted(of_point.items())]
        if points:
            ax.plot([x for x, _ in points], [y for _, y in points], style, marker="o", label=label)

    def _axis(self) -> tuple[list[str], Any]:
        """The column of the first swept key, and its order: by number, or as the file lists the values."""
        axes = self._run._core.axes
        if not axes:
            return [], lambda _: 0
        key, values, numbers, unit = axes[0]
        if numbers is None:
            return [key], values.index
        return [f"{key} [{unit}]" if unit else key], lambda number: number

    def _finish(self, ax: Any) -> Any:
        key, _ = self._axis()
        ax.set_xlabel(key[0] if key else "point")
        ax.set_title(self._run.info.name)
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
        return ax


def _rows(table: Table, columns: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_arrow().select(columns).to_pylist()
    return rows
