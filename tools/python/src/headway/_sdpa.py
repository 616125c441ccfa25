"""torch's scaled_dot_product_attention for any array."""
from __future__ import annotations

from typing import Optional

from . import _core
from ._arrays import Array, default_threads, empty_as, fail, input_of, result_as, shape_of


def _broadcast(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(len(shape) for shape in shapes.values())
    result = [1] * rank
    for name, shape in shapes.items():
        for axis, size in enumerate(shape, rank - len(shape)):
            if size != 1 and result[axis] not in (1, size):
                raise fail(f"{name} has {size} in batch or head axis {axis - rank - 2} where another has "
                           f"{result[axis]}")
            if size != 1:
                result[axis] = size
    return tuple(result)


def _output_shape(query: Array, key: Array, value: Array, grouped: bool) -> tuple[int, ...]:
    shapes = {"query": shape_of(query, "query"), "key": shape_of(key, "key"), "value": shape_of(value, "value")}
    for name, shape in shapes.items():
        if len(shape) < 2:
            raise fail(f"{name} has rank {len(shape)}, expected at least 2")
    q, k, v = shapes.values()
    if q[:-2] == k[:-2] == v[:-2]:
        return q[:-1] + v[-1:]
    if grouped and min(len(q), len(k), len(v)) >= 3:
        return _broadcast({name: shape[:-3] for name, shape in shapes.items()}) + q[-3:-1] + v[-1:]
    return _broadcast({name: shape[:-2] for name, shape in shapes.items()}) + q[-2:-1] + v[-1:]


def scaled_dot_product_attention(query: Array, key: Array, value: Array, attn_mask: Optional[Array] = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: Optional[float] = None,
                                 enable_gqa: bool = False, *, threads: Optional[_core.Threads] = None,
                                 profiler: Optional[_core.Profiler] = None) -> Array:
    """softmax(scale · query · keyᵀ + mask) · value, as torch.nn.functional.scaled_dot_product_attention defines it.

    query [..., Hq, L, E], key [..., H, S, E], value [..., H, S, Ev], f32 or bf16, of any strides, none of them copied;
    batch axes and heads broadcast, and with enable_gqa Hq is a multiple of H. attn_mask broadcasts to [..., Hq, L, S]:
    bool, where True takes part, or f32 or query's type, which is added. is_causal: query i sees keys up to i. Returns
    [..., Hq, L, Ev], the kind of array that query is. A row that sees no key is 0; NaN in hidden keys does not reach
    the output.

    Raises Error for what does not fit, naming the argument and both numbers, and for dropout_p other than 0. Releases
    the GIL while it computes.
    """
    if dropout_p != 0:
        raise fail(f"dropout_p is {dropout_p}, expected 0: there is no dropout here", "unsupported")
    if attn_mask is not None and is_causal:
        raise fail("attn_mask is given beside is_causal=True, expected one of them")
    out = empty_as(query, _output_shape(query, key, value, enable_gqa))
    _core.attention(input_of(query, "query"), input_of(key, "key"), input_of(value, "value"), out,
                    input_of(attn_mask, "attn_mask"), None, "top_left" if is_causal else "none", scale, 0.0, -1, -1,
                    enable_gqa, "", threads or default_threads(query), profiler)
    return result_as(query, out)
