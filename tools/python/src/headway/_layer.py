"""Multi-head attention with its projections, as torch.nn.MultiheadAttention has it."""
from __future__ import annotations

from typing import Optional

from . import _core
from ._arrays import Array, default_threads, empty_as, fail, input_of, result_as, shape_of


class MultiHeadAttention:
    """The layer of torch.nn.MultiheadAttention, weights packed once and shared by all shapes.

    y = x · Wᵀ + b; query_weight [E, E], key_weight [E, kdim], value_weight [E, vdim], output_weight [E, E], f32 or
    bf16; biases and bias_k, bias_v of E numbers, each may be absent. The arrays are held and must not change.
    """

    def __init__(self, num_heads: int, query_weight: Array, key_weight: Array, value_weight: Array,
                 output_weight: Array, *, query_bias: Optional[Array] = None, key_bias: Optional[Array] = None,
                 value_bias: Optional[Array] = None, output_bias: Optional[Array] = None,
                 bias_k: Optional[Array] = None, bias_v: Optional[Array] = None, add_zero_attention: bool = False,
                 batch_first: bool = True) -> None:
        self.batch_first = batch_first
        self.num_heads = num_heads
        self._appended = (bias_k is not None) + add_zero_attention
        weights = {"query": query_weight, "key": key_weight, "value": value_weight, "output": output_weight,
                   "query_bias": query_bias, "key_bias": key_bias, "value_bias": value_bias,
                   "output_bias": output_bias, "bias_k": bias_k, "bias_v": bias_v}
        self._core = _core.MultiHeadAttention(num_heads, add_zero_attention,
                                              {name: input_of(array, name) for name, array in weights.items()})

    @classmethod
    def from_torch(cls, module: "torch.nn.MultiheadAttention") -> "MultiHeadAttention":  # noqa: F821
        """The layer of a module's weights as they are now. A module that would apply dropout is refused: call eval()
        first."""
        if module.training and module.dropout != 0:
            raise fail(f"module has dropout {module.dropout} and is in training mode, expected eval()", "unsupported")

        def plain(tensor):
            return None if tensor is None else tensor.detach().clone()

        if module.in_proj_weight is not None:
            rows = plain(module.in_proj_weight).chunk(3)
        else:
            rows = [plain(w) for w in (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)]
        biases = [None] * 3 if module.in_proj_bias is None else plain(module.in_proj_bias).chunk(3)
        appended = [None if b is None else plain(b).reshape(-1) for b in (module.bias_k, module.bias_v)]
        return cls(module.num_heads, *rows, plain(module.out_proj.weight), query_bias=biases[0], key_bias=biases[1],
                   value_bias=biases[2], output_bias=plain(module.out_proj.bias), bias_k=appended[0],
                   bias_v=appended[1], add_zero_attention=module.add_zero_attn, batch_first=module.batch_first)

    def __call__(self, query: Array, key: Optional[Array] = None, value: Optional[Array] = None,
                 key_padding_mask: Optional[Array] = None, need_weights: bool = False,
                 attn_mask: Optional[Array] = None, average_attn_weights: bool = True, is_causal: bool = False, *,
                 threads: Optional[_core.Threads] = None, profiler: Optional[_core.Profiler] = None
                 ) -> tuple[Array, Optional[Array]]:
        """Returns (out, weights), weights None unless need_weights.

        query [B, L, E], or [L, B, E] without batch_first, or [L, E]; key and value alike, query itself by default.
        Masks are bool, where True hides, or added: key_padding_mask [B, S], attn_mask [L, S] or [B · heads, L, S].
        is_causal without attn_mask: query i sees keys up to i. weights [B, L, S], or [B, heads, L, S] without
        average_attn_weights, f32. Rows that see no key have a context of 0.
        """
        key = query if key is None else key
        value = key if value is None else value
        shape, keys = shape_of(query, "query"), shape_of(key, "key")
        if len(shape) not in (2, 3) or len(keys) != len(shape):
            raise fail(f"query has rank {len(shape)} and key {len(keys)}, expected 3, or 2 without a batch")
        out, weights = empty_as(query, shape), None
        if need_weights:
            axis = 1 if self.batch_first and len(shape) == 3 else 0
            batch = shape[1 - axis:2 - axis] if len(shape) == 3 else ()
            heads = () if average_attn_weights else (self.num_heads,)
            weights = empty_as(query, (*batch, *heads, shape[axis], keys[axis] + self._appended), "f32")
        self._core.run(input_of(query, "query"), input_of(key, "key"), input_of(value, "value"),
                       input_of(attn_mask, "attn_mask"), input_of(key_padding_mask, "key_padding_mask"), out, weights,
                       is_causal and attn_mask is None, average_attn_weights, query is key and key is value,
                       self.batch_first, threads or default_threads(query), profiler)
        return result_as(query, out), None if weights is None else result_as(query, weights)
