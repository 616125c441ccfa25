"""Headway: multi-head attention on the CPU, for arrays of numpy, torch and whatever else speaks DLPack."""
from ._arrays import Error, get_num_threads, set_num_threads
from ._cache import CachedAttention, HeadNorm, KvCache, RotaryTable, append, merge
from ._core import Threads, __version__
from ._layer import MultiHeadAttention
from ._profiler import Profiler
from ._sdpa import scaled_dot_product_attention
from ._session import Session, TensorSpec

__all__ = ["CachedAttention", "Error", "HeadNorm", "KvCache", "MultiHeadAttention", "Profiler", "RotaryTable", "Session",
           "TensorSpec", "Threads", "__version__", "append", "get_num_threads", "merge",
           "scaled_dot_product_attention", "set_num_threads"]
