"""Attention of Hugging Face models: after register(), attn_implementation="headway" runs a model's attention here.

Weights, caches and masks are the model's own; keys and values are read where they lie and are not repeated for grouped
heads. Inference alone: there is no backward pass and no dropout.
"""
from __future__ import annotations

import functools
from typing import Any, NamedTuple, Optional

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from . import _core
from ._arrays import default_threads, fail, input_of

NAME = "headway"

# What models pass along that does not change what attention computes here: windows are in the mask already, positions
# in the rotated queries and keys.
_WITHOUT_EFFECT = frozenset({
    "cache_position", "deterministic", "inputs_embeds", "labels", "logits_to_keep", "next_sequence_length",
    "num_items_in_batch", "output_hidden_states", "past_key_values", "position_embeddings", "position_ids", "return_dict",
    "sliding_window", "token_type_ids", "use_cache"})


def register() -> None:
    """Makes attn_implementation="headway" known to transformers. To be called once, before or after models are made:
    model.set_attn_implementation("headway") switches one that is there."""
    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, attention_mask_of)


class Band(NamedTuple):
    """What a mask [B, 1, Sq, Skv] says in rules: it shows nothing after a token's own position when causal, and nothing
    that lies more than `left` before it. exact: within that it hides just the keys that `keys` [B, Skv] hides, if any,
    from all tokens alike, so that the rules say all that the mask does."""
    causal: bool
    left: int
    exact: bool
    keys: Optional[torch.Tensor]
    version: int  # of the mask, which is the caller's to change


def attention_mask_of(*args: Any, **kwargs: Any) -> Optional[torch.Tensor]:
    """torch's mask for a model, [B, 1, Sq, Skv] bool or None, with its Band where it has one: found once for all layers,
    it lets them pass over what causality and windows hide."""
    mask = sdpa_mask(*args, **kwargs)
    if (mask is not None and mask.dtype == torch.bool and mask.dim() == 4 and mask.shape[1] == 1 and mask.shape[2] > 1
            and not mask.is_inference() and not torch.compiler.is_compiling()):
        mask.headway_band = _band_of(mask)
    return mask


def _band_of(mask: torch.Tensor) -> Optional[Band]:
    queries, keys = mask.shape[2:]
    shown = mask[:, 0].any(0)
    own = torch.arange(queries) + (keys - queries)
    visible = shown.any(1)
    if not visible.any():
        return None
    first, last = shown.byte().argmax(1), keys - 1 - shown.flip(1).byte().argmax(1)
    causal = bool((last - own)[visible].max() <= 0)
    left, inside = -1, torch.ones_like(shown)
    if causal:
        left = int((own - first)[visible].max())
        distance = own[:, None] - torch.arange(keys)[None, :]
        inside = (distance >= 0) & (distance <= left)
    seen = mask[:, 0].any(1)
    exact = torch.equal(mask[:, 0], inside & seen[:, None])
    if not causal and not exact:
        return None
    plain = exact and torch.equal(mask[:, 0], inside.expand(len(mask), -1, -1))
    return Band(causal, left, exact, seen if exact and not plain else None, mask._version)


def attention_forward(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                      attention_mask: Optional[torch.Tensor] = None, dropout: float = 0.0,
                      scaling: Optional[float] = None, is_causal: Optional[bool] = None, softcap: Optional[float] = None,
                      s_aux: Optional[torch.Tensor] = None, position_bias: Optional[torch.Tensor] = None,
                      **kwargs: Any) -> tuple[torch.Tensor, None]:
    """query [B, Hq, Sq, D], key and value [B, Hkv, Skv, D] → ([B, Sq, Hq, D], None).

    attention_mask [B or 1, Hq or 1, Sq, Skv]: bool, True takes part, or added; none with Sq > 1 means causal unless the
    module is not. s_aux [Hq]: sinks. Raises Error for dropout, gradients and whatever else it is given and does not
    know."""
    if dropout:
        raise fail(f"dropout is {dropout}, expected 0: Headway runs models in eval mode", "unsupported")
    for name, given in kwargs.items():
        if given is not None and given is not False and name not in _WITHOUT_EFFECT:
            raise fail(f"attention was given {name}, which attn_implementation=\"{NAME}\" does not know: use \"eager\"",
                       "unsupported")
    query, key, value = input_of(query, "query"), input_of(key, "key"), input_of(value, "value")
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise fail(f"query has rank {query.dim()}, key {key.dim()} and value {value.dim()}, expected 4")
    if len(query) == 1 < len(key):  # learned queries
        query = query.expand(len(key), -1, -1, -1)
    queries = query.shape[2]
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = bool(causal) and queries > 1 and attention_mask is None
    band = getattr(attention_mask, "headway_band", None)
    if band is not None and band.version != attention_mask._version:
        band = None
    mask = input_of(attention_mask, "attention_mask")
    if position_bias is not None:
        mask, causal = _with_bias(input_of(position_bias, "position_bias"), mask, causal, query, key), False
    # The layout that the model goes on with is the one that is written.
    out = torch.empty((query.shape[0], queries, query.shape[1], value.shape[3]), dtype=query.dtype)
    if mask is not None and (mask.dim() != 4 or mask.shape[2] not in (1, queries) or mask.shape[3] != key.shape[2]):
        raise fail(f"attention_mask is {list(mask.shape)}, expected [batch, heads, {queries}, {key.shape[2]}]")
    one_for_all_heads = mask is None or mask.shape[1] == 1
    if s_aux is not None or query.dtype == torch.float16 or queries == 1 and one_for_all_heads:
        _from_cache(query, key, value, _explicit(mask, causal, query, key), s_aux, scaling, softcap, out)
    else:
        alignment, left, keys = "top_left" if causal else "none", -1, None
        if band is not None:
            alignment, left = "bottom_right" if band.causal else "none", band.left
            if band.exact and position_bias is None:
                mask, keys = None, None if band.keys is None else band.keys.expand(len(query), -1)
        _core.attention(query, key, value, out.transpose(1, 2), _plain(mask, query), keys, alignment, scaling,
                        softcap or 0.0, left, -1, True, "", default_threads(query), None)
    return out, None


def _with_bias(bias: torch.Tensor, mask: Optional[torch.Tensor], causal: bool, query: torch.Tensor,
               key: torch.Tensor) -> torch.Tensor:
    """One additive mask of a bias by position and what hides."""
    mask = _explicit(mask, causal, query, key) if causal else mask
    if mask is None:
        return bias
    return torch.where(mask, bias, -torch.inf) if mask.dtype == torch.bool else bias + mask


def _explicit(mask: Optional[torch.Tensor], causal: bool, query: torch.Tensor,
              key: torch.Tensor) -> Optional[torch.Tensor]:
    """Causality as a mask."""
    if not causal:
        return mask
    return torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).tril()[None, None]


def _plain(mask: Optional[torch.Tensor], query: torch.Tensor) -> Optional[torch.Tensor]:
    """A mask of a type that the core takes beside the query's."""
    if mask is None or mask.dtype in (torch.bool, torch.float32, query.dtype):
        return mask
    return mask.float()


@functools.lru_cache(maxsize=64)
def _cached_attention(type_name: str, heads: int, kv_heads: int, width: int, value_width: int,
                      scale: Optional[float], softcap: float) -> _core.CachedAttention:
    return _core.CachedAttention(type_name, type_name, heads, kv_heads, width, value_width, scale, softcap, False, -1, -1,
                                 False)


_TYPE_NAMES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}


def _from_cache(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Optional[torch.Tensor],
                sinks: Optional[torch.Tensor], scale: Optional[float], softcap: Optional[float],
                out: torch.Tensor) -> None:
    """The same over key and value as caches of full slots: needs no plan a length, splits long keys over threads and
    knows sinks."""
    batch, heads, queries, width = query.shape
    if query.dtype not in _TYPE_NAMES:
        raise fail(f"query is {query.dtype}, expected float32, bfloat16 or float16", "unsupported")
    attention = _cached_attention(_TYPE_NAMES[query.dtype], heads, key.shape[1], width, value.shape[3], scale,
                                  softcap or 0.0)
    keys = key.shape[2]
    tokens = query.transpose(1, 2).reshape(batch * queries, heads, width)
    rows = key.expand(batch, -1, -1, -1), value.expand(batch, -1, -1, -1)
    rows = [part if part.stride(3) == 1 else part.contiguous() for part in rows]
    if mask is not None:
        if mask.shape[1] != 1:
            raise fail(f"attention_mask is {list(mask.shape)}, expected one of all heads beside sinks or float16",
                       "unsupported")
        mask = mask[:, 0].expand(batch, queries, keys).reshape(batch * queries, keys)
        mask = mask if mask.dtype in (torch.bool, torch.float32) else mask.float()
    starts = None if queries == 1 else [queries * b for b in range(batch + 1)]
    attention.run(tokens if tokens.stride(2) == 1 else tokens.contiguous(), _core.KvCache(*rows, None, None, False),
                  [keys] * batch, starts, None if sinks is None else input_of(sinks, "s_aux").float(), None, None, 0,
                  mask, None, out.view(batch * queries, heads, -1), None, default_threads(query), None)
