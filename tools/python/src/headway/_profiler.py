"""Where the time and the work of runs went."""
from __future__ import annotations

import json
import os
from typing import Any, Optional, Union

from . import _core
from ._arrays import get_num_threads


class Profiler(_core.Profiler):
    """Given to runs as `profiler`, collects zones: time, flops, exps and bytes of each. workers: at least those of the
    threads of the runs, None as many as the process has CPUs; trace_events_per_worker: 0 keeps totals only."""

    def __init__(self, workers: Optional[int] = None, trace_events_per_worker: int = 0) -> None:
        most = max(get_num_threads(), os.cpu_count() or 1)
        super().__init__(most if workers is None else workers, trace_events_per_worker)

    def as_dict(self) -> dict[str, Any]:
        """{"zones": [{"name", "category", "count", "seconds", "seconds_max", "flops_nominal", "flops_executed", "exps",
        "bytes"}], "dropped": 0}"""
        return json.loads(self.json())

    def save_trace(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Chrome's trace event format; opens in Perfetto."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.chrome_trace())
