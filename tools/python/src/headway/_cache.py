"""Caches of keys and values, rotation, append, and attention over a cache, as decoder engines call them."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence, Union

from . import _core
from ._arrays import Array, default_threads, empty_as, fail, input_of, memory_of, shape_of

Indices = Union[Array, Sequence[int], Sequence[Sequence[int]]]  # i32 arrays are read where they lie, others are copied
RotaryTable = _core.RotaryTable


def _window(window: Optional[tuple[Optional[int], Optional[int]]]) -> tuple[int, int]:
    sides = (None, None) if window is None else window
    for name, side in zip(("left", "right"), sides):
        if side is not None and side < 0:
            raise fail(f"window has {name} {side}, expected at least 0, or None for an open end")
    return tuple(-1 if side is None else side for side in sides)


class KvCache:
    """Views of one layer's cache in the caller's memory, which is neither copied nor owned.

    key [slots, Hkv, M, D] and value [slots, Hkv, M, Dv], f32, bf16 or f16, innermost stride 1; sequence b has slot
    slots[b], or b. With block_table [B, n]: paged, key [blocks, Hkv, block, D], position p of sequence b in block
    block_table[b][p // block], row p % block. ring: position p lies in row p mod M and older ones are overwritten.
    """

    def __init__(self, key: Array, value: Array, *, slots: Optional[Indices] = None,
                 block_table: Optional[Indices] = None, ring: bool = False) -> None:
        self.key, self.value = key, value
        self._core = _core.KvCache(memory_of(key, "cache.key"), memory_of(value, "cache.value"), slots, block_table,
                                   ring)


@dataclass
class HeadNorm:
    """x / sqrt(mean(x²) + epsilon) · (weight_offset + weight) over a head's D dimensions, or over all heads of a
    token. weight_offset is 1 for Gemma. Weights [D], or [heads · D] across heads; None: 1."""
    epsilon: float = 1e-6
    weight_offset: float = 0.0
    across_heads: bool = False
    query_weight: Optional[Array] = None
    key_weight: Optional[Array] = None


def append(cache: KvCache, key: Optional[Array], value: Optional[Array], lengths: Optional[Indices] = None,
           query_starts: Optional[Indices] = None, *, query: Optional[Array] = None,
           slot_mapping: Optional[Indices] = None, positions: Optional[Indices] = None,
           rotary: Optional[RotaryTable] = None, norm: Optional[HeadNorm] = None,
           threads: Optional[_core.Threads] = None) -> None:
    """Writes projected rows into a cache: key [T, Hkv, D] and value [T, Hkv, Dv], f32, bf16 or f16, normalised, rotated
    and converted to the cache's type in one pass. query [T, Hq, D] is normalised and rotated in place.

    Token t of sequence b, of which query_starts[b] <= t < query_starts[b + 1] (None: a token each), goes to position
    lengths[b] - query_starts[b + 1] + t: lengths include this call's tokens. slot_mapping [T] gives rows instead, slot ·
    M + row or block · block size + row, -1 for none; positions [T] are then, or also otherwise, those of the rotation.
    """
    how = norm or HeadNorm()
    _core.append(cache._core, input_of(key, "key"), input_of(value, "value"), memory_of(query, "query"), lengths,
                 query_starts, slot_mapping, positions, rotary, norm is not None, how.epsilon, how.weight_offset,
                 how.across_heads, input_of(how.query_weight, "norm.query_weight"),
                 input_of(how.key_weight, "norm.key_weight"),
                 threads or default_threads(key if key is not None else query))


class CachedAttention:
    """Attention over a cache: one object a model, any mixture of prefill chunks, decodes and speculation in one call.

    type and cache_type are "f32", "bf16" or "f16" (cache_type None: type). window (left, right): keys from position
    p - left to p + right, None an open end. batch_invariant: a row's bits do not depend on what else is in the batch,
    on paging or on how a prefill was cut into chunks. Thread-safe.
    """

    def __init__(self, num_heads: int, head_dim: int, *, num_kv_heads: Optional[int] = None,
                 value_head_dim: Optional[int] = None, type: str = "f32",  # pylint: disable=redefined-builtin
                 cache_type: Optional[str] = None, scale: Optional[float] = None, softcap: float = 0.0,
                 causal: bool = True, window: Optional[tuple[Optional[int], Optional[int]]] = None,
                 batch_invariant: bool = False) -> None:
        self._value_width = head_dim if value_head_dim is None else value_head_dim
        self._core = _core.CachedAttention(type, cache_type or type, num_heads, num_kv_heads, head_dim, value_head_dim,
                                           scale, softcap, causal, *_window(window), batch_invariant)

    def __call__(self, query: Array, cache: KvCache, lengths: Indices, query_starts: Optional[Indices] = None, *,
                 sinks: Optional[Array] = None, alibi_slopes: Optional[Array] = None,
                 relative_bias: Optional[Array] = None, relative_bias_future: int = 0, mask: Optional[Array] = None,
                 mask_starts: Optional[Indices] = None, out: Optional[Array] = None,
                 log_sum_exp: Union[bool, Array] = False, threads: Optional[_core.Threads] = None,
                 profiler: Optional[_core.Profiler] = None) -> Union[Array, tuple[Array, Array]]:
        """Returns out [T, Hq, Dv], and log_sum_exp [T, Hq] f32 beside it where that is True or an array to write.

        query [T, Hq, D]; tokens query_starts[b] to query_starts[b + 1] - 1 (None: a token each) have the last positions
        of the lengths[b] of their sequence, so that their keys are in the cache already. sinks and alibi_slopes [Hq]
        f32; relative_bias [n, Hq] f32, row p - j + relative_bias_future of position p and key j. mask [T, W] for keys
        from mask_starts[b] (None: 0) on: bool, True takes part; f32, added; u8, packed by bits from the lowest on, with
        W / 8 columns; keys beyond it are hidden. A row that sees no key is 0. out may be query.
        """
        shape = shape_of(query, "query")
        if out is None:
            out = empty_as(query, (*shape[:-1], self._value_width))
        sums = None if log_sum_exp is False else log_sum_exp
        if sums is True:
            sums = empty_as(query, shape[:-1], "f32")
        self._core.run(input_of(query, "query"), cache._core, lengths, query_starts, input_of(sinks, "sinks"),
                       input_of(alibi_slopes, "alibi_slopes"), input_of(relative_bias, "relative_bias"),
                       relative_bias_future, input_of(mask, "mask"), mask_starts, memory_of(out, "out"),
                       memory_of(sums, "log_sum_exp"), threads or default_threads(query), profiler)
        return out if sums is None else (out, sums)

    def plan(self, query: Array, cache: KvCache, lengths: Indices, query_starts: Optional[Indices] = None
             ) -> dict[str, int]:
        """How such a call is cut into tasks: tasks, few_query_tasks, split_keys, split_sequences."""
        out = empty_as(query, (*shape_of(query, "query")[:-1], self._value_width))
        return self._core.plan(input_of(query, "query"), cache._core, lengths, query_starts, out)

    def explain(self) -> str:
        """SIMD target, tiles, key blocks, bytes."""
        return self._core.explain()


def merge(out_a: Array, log_sum_exp_a: Array, out_b: Array, log_sum_exp_b: Array, *,
          threads: Optional[_core.Threads] = None) -> tuple[Array, Array]:
    """Results of the same rows over two disjoint sets of keys made one: (out, log_sum_exp)."""
    out, sums = empty_as(out_a, shape_of(out_a, "out_a")), empty_as(out_a, shape_of(log_sum_exp_a, "log_sum_exp_a"), "f32")
    _core.merge(input_of(out_a, "out_a"), input_of(log_sum_exp_a, "log_sum_exp_a"), input_of(out_b, "out_b"),
                input_of(log_sum_exp_b, "log_sum_exp_b"), out, sums, threads or default_threads(out_a))
    return out, sums
