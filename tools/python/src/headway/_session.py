"""ONNX models from a file, dict in and dict out."""
from __future__ import annotations

import os
from typing import Mapping, NamedTuple, Optional, Union

from . import _core
from ._arrays import Array, default_threads, empty_as, fail, input_of, result_as


class TensorSpec(NamedTuple):
    """An input as the model declares it: a dim is a number or a name."""
    name: str
    type: str
    dims: tuple[Union[int, str], ...]


class Session:
    """A model file ready to run, attention and norms fused. Thread-safe."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, fused: bool = True, plan_cache_capacity: int = 16,
                 memory_limit_bytes: Optional[int] = None) -> None:
        self._core = _core.Session(os.fspath(path), fused, plan_cache_capacity, memory_limit_bytes)

    @property
    def inputs(self) -> list[TensorSpec]:
        return [TensorSpec(*row) for row in self._core.input_infos()]

    @property
    def outputs(self) -> list[str]:
        return self._core.output_names()

    def run(self, inputs: Mapping[str, Array], *, threads: Optional[_core.Threads] = None,
            profiler: Optional[_core.Profiler] = None) -> dict[str, Array]:
        """The outputs by name, the kind of array that the first input is. Raises Error for a name that is unknown or
        missing and for types and dims that the model does not take."""
        given = {name: input_of(array, name) for name, array in inputs.items()}
        first = next(iter(given.values()), None)
        rows = self._core.output_infos(given)
        outputs = [empty_as(first, dims, type_name) for _, type_name, dims in rows]
        self._core.run(given, outputs, threads or default_threads(first), profiler)
        return {row[0]: result_as(first, output) for row, output in zip(rows, outputs)}

    def explain(self, inputs: Mapping[str, Array], workers: int = 1) -> str:
        """Per node: operator, implementation, tiles, bytes."""
        if workers < 1:
            raise fail(f"workers is {workers}, expected at least 1")
        return self._core.explain(dict(inputs), workers)

    def fusion(self) -> str:
        """What was recognised as attention, and what was not."""
        return self._core.fusion()
