"""Growth of sweeps on executors: efficiency of workers, overhead per point, and the client's memory.

    python python/benches/growth.py efficiency
    python python/benches/growth.py overhead
    python python/benches/growth.py memory --points 10000

Times are processor time where another load on the machine would change them; the load is printed. docs/python.md has results.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trunkline
from trunkline import _trunkline

TICKS = os.sysconf("SC_CLK_TCK")


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
    """The duration of a point that takes this long, in processor time."""
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


def efficiency(store: str, points: int) -> None:
    """The work of one process, over that of the client and its workers for the same results."""
    duration = calibrated(0.05)
    sweep = experiment(points, duration)
    sweep.check()
    began, processors = time.monotonic(), time.process_time()
    sweep.run(store=f"{store}/alone", jobs=1)
    alone, alone_wall = time.process_time() - processors, time.monotonic() - began
    print(f"{points} points, {1000 * alone / points:.1f} ms each: {alone:.2f} s alone, {alone_wall:.2f} s by the clock")
    for workers in (1, 2):
        with pool(workers) as executor:
            pids = list(executor._processes)
            before, began, client = processor(pids), time.monotonic(), time.process_time()
            sweep.run(store=f"{store}/{workers}", executor=executor)
            wall, client = time.monotonic() - began, time.process_time() - client
            of_workers = processor(pids) - before
        total = client + of_workers
        print(
            f"{workers} workers: {of_workers:.2f} s in workers, {client:.2f} s in the client, {wall:.2f} s by the clock; "
            f"efficiency {alone / total:.1%} of processor time, {alone_wall / (workers * wall):.1%} by the clock"
        )


def overhead(store: str, points: int) -> None:
    """Processor time per point that is not the measuring itself, on a cluster of Dask."""
    from distributed import Client, LocalCluster

    duration = calibrated(0.05)
    sweep = experiment(points, duration)
    sweep.check()
    processors = time.process_time()
    sweep.run(store=f"{store}/alone", jobs=1)
    alone = time.process_time() - processors
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        pids = [worker.process.pid for worker in cluster.workers.values()]
        client.run(_ready, 0.1)
        before, began, own = processor(pids), time.monotonic(), time.process_time()
        sweep.run(store=f"{store}/dask", executor=client)
        wall, own = time.monotonic() - began, time.process_time() - own
        of_workers = processor(pids) - before
        idle_began, idle_own, idle_workers = time.monotonic(), time.process_time(), processor(pids)
        time.sleep(3)
        idle = time.monotonic() - idle_began
        # A cluster that does nothing has a heartbeat, which is not of the points.
        beat, beat_workers = (time.process_time() - idle_own) / idle, (processor(pids) - idle_workers) / idle
    own, of_workers = own - beat * wall, of_workers - beat_workers * wall
    print(
        f"{points} points, {1000 * alone / points:.1f} ms each, in {wall:.2f} s by the clock: {1000 * own / points:.2f} ms for each in "
        f"client and scheduler, {1000 * (of_workers - alone) / points:.2f} ms more in workers than alone; without the heartbeat, "
        f"{1000 * beat:.0f} and {1000 * beat_workers:.0f} ms a second"
    )


def memory(store: str, points: int) -> None:
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
    arguments = parser.parse_args()
    bench, usual = kinds[arguments.what]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with TemporaryDirectory() as store:
        bench(store, arguments.points or usual)


if __name__ == "__main__":
    main()
