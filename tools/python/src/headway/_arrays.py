"""Arrays in, arrays of the same kind out; and how many threads a call gets. Knows no operator."""
from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any, Optional, Sequence

from . import _core

Error = _core.Error
Array = Any  # numpy.ndarray, torch.Tensor, or another array that speaks DLPack

_threads_by_workers: dict[tuple[bool, int], _core.Threads] = {}
_chosen_workers: Optional[int] = None


def fail(message: str, code: str = "invalid_argument") -> Error:
    """An Error to raise."""
    error = Error(message)
    error.code = code
    return error


def torch_of(array: Array):
    """The module torch when `array` is one of its tensors."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else None


def input_of(array: Optional[Array], name: str) -> Optional[Array]:
    """`array` as the library reads it. A tensor that wants a gradient is refused: there is no backward pass. So is one
    that is being traced, since a trace would not have this call in it."""
    torch = torch_of(array)
    if torch is None:
        return array
    if torch._C._get_tracing_state() is not None:  # torch.jit.is_tracing(), in a thirtieth of its time
        raise fail(f"{name} is being traced by torch.jit, which cannot see what Headway computes", "unsupported")
    if array.is_neg():  # a view whose sign is not in memory
        array = array.resolve_neg()
    if not array.requires_grad:
        return array
    if torch.is_grad_enabled():
        raise fail(f"{name} requires a gradient, which Headway does not compute: call it under torch.no_grad()",
                   "unsupported")
    return array.detach()


def memory_of(array: Optional[Array], name: str) -> Optional[Array]:
    """The same of an array whose memory is written, or read by later calls: it is taken as it lies or not at all."""
    if torch_of(array) is not None and array.is_neg():
        raise fail(f"{name} is a tensor whose sign is not in its memory, expected one after resolve_neg()")
    return input_of(array, name)


def shape_of(array: Array, name: str) -> tuple[int, ...]:
    shape = getattr(array, "shape", None)
    if shape is None:
        raise fail(f"{name} is {type(array).__name__}, expected an array on the CPU (numpy, torch or another that "
                   "speaks DLPack)")
    return tuple(shape)


_NUMPY_TYPES = {"f32": "float32", "f64": "float64", "f16": "float16", "i8": "int8", "u8": "uint8", "i32": "int32",
                "i64": "int64", "bool": "bool"}
_TORCH_TYPES = {**_NUMPY_TYPES, "bf16": "bfloat16"}
_TYPE_NAMES = {name: short for short, name in _TORCH_TYPES.items()}


def type_of(array: Array, name: str) -> str:
    """ "f32", "bf16", …"""
    shape_of(array, name)
    text = str(getattr(array, "dtype", None)).rsplit(".", maxsplit=1)[-1]
    if text not in _TYPE_NAMES:
        raise fail(f"{name} has elements of type {text}, which are not supported", "unsupported")
    return _TYPE_NAMES[text]


def empty_as(array: Array, shape: Sequence[int], type_name: Optional[str] = None) -> Array:
    """Memory for a result that goes back beside `array`: a tensor beside tensors, else of numpy."""
    torch = torch_of(array)
    if torch is not None:
        return torch.empty(shape, dtype=array.dtype if type_name is None else getattr(torch, _TORCH_TYPES[type_name]))
    import numpy as np  # pylint: disable=import-outside-toplevel
    if type_name is None:
        type_name = type_of(array, "query")
    if type_name not in _NUMPY_TYPES:
        raise fail(f"an array of {type_name} can only be returned to torch, not beside {type(array).__name__}",
                   "unsupported")
    return np.empty(shape, dtype=_NUMPY_TYPES[type_name])


def result_as(array: Array, result: Array) -> Array:
    """`result` as the kind of array that `array` is."""
    if type(result) is type(array) or torch_of(array) is not None or not hasattr(array, "__array_namespace__"):
        return result
    namespace = array.__array_namespace__()
    return namespace.from_dlpack(result) if namespace.__name__ != "numpy" else result


def set_num_threads(workers: Optional[int]) -> None:
    """Threads of every later call that is given none. None: torch's own number for its tensors, else the CPUs that the
    process may use."""
    global _chosen_workers  # pylint: disable=global-statement
    if workers is not None and workers < 1:
        raise fail(f"workers is {workers}, expected at least 1")
    _chosen_workers = workers


def get_num_threads() -> int:
    return default_threads(None).workers


@functools.lru_cache(maxsize=1)
def _shares_openmp_with_torch() -> bool:
    """Whether torch's own operators run on the OpenMP team that Threads.openmp() would use."""
    torch = sys.modules["torch"]
    library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    try:
        teams = [ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW).omp_get_max_threads
                 for path in (library, _core.__file__)]
    except (AttributeError, OSError):
        return False
    first, second = (ctypes.cast(function, ctypes.c_void_p).value for function in teams)
    return first == second


def default_threads(array: Optional[Array]) -> _core.Threads:
    """For tensors of torch its own team where it can be had: threads of another would share the CPUs with torch's, which
    go on spinning for a while after each of its operators. Else a pool."""
    torch = torch_of(array)
    workers = _chosen_workers
    if workers is None:
        workers = torch.get_num_threads() if torch is not None else 0
    openmp = torch is not None and workers > 1 and _shares_openmp_with_torch()
    threads = _threads_by_workers.get((openmp, workers))
    if threads is None:
        made = _core.Threads.openmp(workers) if openmp else _core.Threads(workers)
        threads = _threads_by_workers.setdefault((openmp, workers), made)
    return threads
