"""Growth of sweeps on executors: efficiency of workers, overhead per point, and the client's memory.

    python python/benches/growth.py efficiency
    python python/benches/growth.py overhead
    python python/benches/growth.py memory --points 10000

Rounds of ours and of the machine's own limit are interleaved, and the load is printed. docs/python.md has results.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import trunkline
from trunkline import _trunkline

TICKS = os.sysconf("SC_CLK_TCK")
given = argparse.Namespace(duration=None)


def experiment(points: int, duration: float) -> trunkline.Experiment:
    """A sweep of this many points, each of which simulates a call beside a transfer for `duration` seconds."""
    made = trunkline.Experiment(
        name="growth",
        duration=f"{max(round(duration * 1e6), 1000)} us",
        drain="50 ms",
        hosts={"a": {}, "b": {}},
        link={"trunk": {"between": ["a", "b"], "rate": "10 Mbit/s", "delay": "5 ms"}},
        flow={
            "voice": {"from": "a", "to": "b", "transport": "udp", "source": {"kind": "voice", "samples": 80}},
            "load": {
                "from": "a",
                "to": "b",
                "transport": "udp",
                "source": {"kind": "load", "message": "1000 B", "interval": {"kind": "exponential", "mean": "1 ms"}},
            },
        },
    )
    return made.sweep("link.trunk.delay", [f"{5000 + point} us" for point in range(points)])


def each(duration: float, points: int = 20) -> float:
    """Processor seconds that a point takes in a batch."""
    core = experiment(points, duration)._core
    core.text()
    began = time.process_time()
    _trunkline.measure_part(core, "sim", [(point, 0, point) for point in range(points)], 1)
    return (time.process_time() - began) / points


def calibrated(seconds: float) -> float:
    """The duration of a point that takes this long, in processor time; or that of `--duration`, to compare two versions."""
    if given.duration is not None:
        return float(given.duration)
    low, high = each(0.1), each(2.0)
    slope = (high - low) / 1.9
    return max(0.1 + (seconds - low) / slope, 0.001)


def processor(pids: Iterable[int]) -> float:
    """Processor seconds of processes until now."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(of[11]) + int(of[12]) for of in fields) / TICKS


def peak() -> float:
    """The most memory that this process has had, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def pool(workers: int) -> ProcessPoolExecutor:
    """Workers that have started."""
    made = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    for future in [made.submit(_ready, 0.5) for _ in range(workers)]:
        future.result()
    return made


def _ready(seconds: float) -> str:
    time.sleep(seconds)
    return trunkline.__version__


def _alone(points: int, duration: float, store: str) -> tuple[float, float]:
    """Measures the sweep in this process alone. Returns the seconds that it took by the clock, and of the processor."""
    sweep = experiment(points, duration)
    sweep.check()
    began, processors = time.monotonic(), time.process_time()
    sweep.run(store=store, jobs=1)
    return time.monotonic() - began, time.process_time() - processors


def spread(name: str, values: list[float], form: str = "{:.1%}") -> None:
    """Prints the median of the rounds, and the least and the most."""
    low, middle, high = (form.format(of) for of in (min(values), median(values), max(values)))
    print(f"  {name}: {middle} ({low} to {high})")


def efficiency(store: str, points: int, rounds: int) -> None:
    """The work of one process, over that of the client and its workers for the same results; and the machine's own limit: one process
    beside two that measure the same at once, without an executor. Rounds are interleaved.
    """
    duration = calibrated(0.05)
    sweep = experiment(points, duration)
    sweep.check()
    found: dict[str, list[float]] = {}

    def add(name: str, value: float) -> None:
        found.setdefault(name, []).append(value)

    with pool(1) as one, pool(2) as two:
        for turn in range(rounds):
            begun = [one.submit(_alone, points, duration, f"{store}/{turn}-alone")]
            alone_wall, alone = begun[0].result()
            begun = [two.submit(_alone, points, duration, f"{store}/{turn}-beside-{n}") for n in range(2)]
            beside = [future.result() for future in begun]
            add("machine", 2 * alone_wall / sum(wall for wall, _ in beside))
            add("machine, of processor time", 2 * alone / sum(of for _, of in beside))
            add("alone, ms for each point", 1000 * alone / points)
            for workers, executor in ((1, one), (2, two)):
                pids = list(executor._processes)
                before, began, client = processor(pids), time.monotonic(), time.process_time()
                sweep.run(store=f"{store}/{turn}-{workers}", executor=executor)
                wall, client = time.monotonic() - began, time.process_time() - client
                own = f"{workers} worker{'s' * (workers > 1)}"
                add(f"{own}, of processor time", alone / (client + processor(pids) - before))
                add(f"{own}, by the clock", alone_wall / (workers * wall))
                add(f"{own}, client, ms for each point", 1000 * client / points)
                if workers == 2:
                    add(f"{own}, by the clock, of the machine's limit", found[f"{own}, by the clock"][-1] / found["machine"][-1])
    print(f"{points} points, {rounds} rounds: median (least to most)")
    for name, values in found.items():
        spread(name, values, "{:.2f}" if name.endswith("point") else "{:.1%}")


def overhead(store: str, points: int, rounds: int) -> None:
    """Processor time per point that is not the measuring itself, on a cluster of Dask; beside one process alone, interleaved."""
    from distributed import Client, LocalCluster

    duration = calibrated(0.05)
    sweep = experiment(points, duration)
    sweep.check()
    alone, client_and_scheduler, more, total = [], [], [], []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        pids = [worker.process.pid for worker in cluster.workers.values()]
        client.run(_ready, 0.1)
        for turn in range(rounds):
            # A cluster that does nothing has a heartbeat, which is not of the points.
            began, own, of_workers = time.monotonic(), time.process_time(), processor(pids)
            time.sleep(3)
            idle = time.monotonic() - began
            beat, beat_workers = (time.process_time() - own) / idle, (processor(pids) - of_workers) / idle
            began, own = time.monotonic(), time.process_time()
            sweep.run(store=f"{store}/{turn}-alone", jobs=1)
            alone.append(1000 * (time.process_time() - own - beat * (time.monotonic() - began)) / points)
            before, began, own = processor(pids), time.monotonic(), time.process_time()
            sweep.run(store=f"{store}/{turn}-dask", executor=client)
            wall, own = time.monotonic() - began, time.process_time() - own
            of_workers = processor(pids) - before - beat_workers * wall
            client_and_scheduler.append(1000 * (own - beat * wall) / points)
            more.append(1000 * of_workers / points - alone[-1])
            total.append(client_and_scheduler[-1] + more[-1])
    print(f"{points} points, {rounds} rounds, ms for each point: median (least to most)")
    spread("alone", alone, "{:.2f}")
    spread("client and scheduler", client_and_scheduler, "{:.2f}")
    spread("workers, more than alone", more, "{:.2f}")
    spread("overhead", total, "{:.2f}")


def memory(store: str, points: int, _: int) -> None:
    """The client's memory and time, for points of 10 ms on two processes."""
    began = time.process_time()
    sweep = experiment(points, calibrated(0.01))
    print(f"before: {peak():.0f} MB")
    began = time.process_time()
    sweep.check()
    print(f"validated: {peak():.0f} MB, {time.process_time() - began:.1f} s")
    with pool(2) as executor:
        began, clock = time.process_time(), time.monotonic()
        run = sweep.run(store=store, executor=executor)
        took, wall = time.process_time() - began, time.monotonic() - clock
    print(f"measured: {peak():.0f} MB, {took:.1f} s in the client, {wall:.1f} s by the clock")
    began = time.process_time()
    rows = run.summary.to_arrow().num_rows
    print(f"summarised: {rows} rows, {peak():.0f} MB, {time.process_time() - began:.1f} s")


def main() -> None:
    kinds: dict[str, tuple[Any, int]] = {
        "efficiency": (efficiency, 200),
        "overhead": (overhead, 200),
        "memory": (memory, 100_000),
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=kinds)
    parser.add_argument("--points", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=float, help="seconds of virtual time of a point; 40 take about 45 ms")
    arguments = parser.parse_args(namespace=given)
    bench, usual = kinds[arguments.what]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with TemporaryDirectory() as store:
        bench(store, arguments.points or usual, arguments.rounds)


if __name__ == "__main__":
    main()
