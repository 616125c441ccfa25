"""scaled_dot_product_attention against torch's own in float64, within the bound of headway/numerical_bound.h."""
import math
import random
import threading
import warnings

import numpy as np
import pytest

import headway

torch = pytest.importorskip("torch")

EPSILON = 2.0**-23
BF16_STEP = 2.0**-8


def expected(query, key, value, mask, is_causal, scale, grouped):
    wide = [t.double() for t in (query, key, value)]
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.double()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(
            *wide, attn_mask=mask, is_causal=is_causal, scale=scale, enable_gqa=grouped)


def bound(query, key, value, mask, scale):
    """Of every element: |out - exact| <= eps * max|v| * (24 + 4 * max sum|scale*q*k| + |bias|), and a step of bf16."""
    if key.numel() == 0 or query.numel() == 0:
        return 0.0
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    magnitude = abs(scale) * query.double().abs().sum(-1).max().item() * key.double().abs().max().item()
    if mask is not None and mask.dtype != torch.bool:
        magnitude += mask.double()[mask.isfinite()].abs().max().item() if mask.isfinite().any() else 0
    largest = value.double().abs().max().item()
    rounding = 2 * BF16_STEP if query.dtype == torch.bfloat16 else 0
    return largest * (EPSILON * (24 + 4 * magnitude) + rounding)


def strided(rng, tensor):
    """The same numbers with other strides."""
    form = rng.choice(["plain", "transposed", "sliced", "wide"])
    if form == "transposed" and tensor.dim() >= 3:
        return tensor.transpose(-2, -3).contiguous().transpose(-2, -3)
    if form == "sliced":
        buffer = torch.full((*tensor.shape[:-1], tensor.shape[-1] + 3), float("nan"), dtype=tensor.dtype)
        buffer[..., 1:-2] = tensor
        return buffer[..., 1:-2]
    if form == "wide":
        buffer = torch.full((*tensor.shape[:-2], 2 * tensor.shape[-2], tensor.shape[-1]), float("nan"),
                            dtype=tensor.dtype)
        buffer[..., ::2, :] = tensor
        return buffer[..., ::2, :]
    return tensor


def random_case(number):
    rng = random.Random(number)
    generator = torch.Generator().manual_seed(number)
    dtype = rng.choice([torch.float32, torch.float32, torch.bfloat16])
    kv_heads, grouped = rng.choice([1, 2, 3]), rng.random() < 0.4
    heads = kv_heads * rng.choice([1, 2, 4]) if grouped else kv_heads
    lead = rng.choice([(), (1,), (3,), (2, 2)])
    queries, keys = rng.choice([0, 1, 2, 7, 16, 33, 70]), rng.choice([0, 1, 3, 16, 40, 129])
    width, value_width = rng.choice([1, 8, 32, 64, 80]), rng.choice([8, 64, 5])

    def normal(*shape, of=dtype):
        return torch.randn(shape, generator=generator).to(of)

    query = strided(rng, normal(*lead, heads, queries, width))
    key = strided(rng, normal(*lead, kv_heads, keys, width))
    value = strided(rng, normal(*lead, kv_heads, keys, value_width))
    if rng.random() < 0.1 and lead:
        key, value = key[:1], value[:1]  # broadcast over the batch
    mask, is_causal = None, False
    form = rng.random()
    if form < 0.3:
        is_causal = True
    elif form < 0.8:
        shape = [*lead, heads, queries, keys]
        for axis in range(len(shape) - 1):
            if rng.random() < 0.4:
                shape[axis] = 1
        while rng.random() < 0.3 and len(shape) > 2:
            shape = shape[1:]
        shown = torch.rand(shape, generator=generator) < 0.7
        if rng.random() < 0.5:
            mask = shown
        else:
            mask = torch.where(shown, normal(*shape, of=torch.float32), -math.inf)
            if dtype == torch.bfloat16 and rng.random() < 0.5:
                mask = mask.to(dtype)
    scale = rng.choice([None, None, 0.3, 1.0])
    return query, key, value, mask, is_causal, scale, grouped


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_random_configurations(first):
    for number in range(first, first + 50):
        query, key, value, mask, is_causal, scale, grouped = case = random_case(number)
        out = headway.scaled_dot_product_attention(query, key, value, mask, 0.0, is_causal, scale, grouped)
        exact = expected(*case)
        assert out.shape == exact.shape and out.dtype == query.dtype, number
        assert out.is_contiguous()
        if out.numel():
            error = (out.double() - exact).abs().max().item()
            assert error <= bound(query, key, value, mask, scale), f"case {number}: {error}"


def test_row_without_keys_is_zero():
    query = torch.randn(1, 2, 4, 8)
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[2] = False
    out = headway.scaled_dot_product_attention(query, query, query, mask)
    assert (out[:, :, 2] == 0).all()
    assert torch.allclose(out, torch.nn.functional.scaled_dot_product_attention(query, query, query, mask), atol=1e-6)


def test_hidden_nan_stays_hidden():
    query, key = torch.randn(1, 2, 4, 8), torch.randn(1, 2, 6, 8)
    mask = torch.ones(4, 6, dtype=torch.bool)
    mask[:, 5] = False
    poisoned = key.clone()
    poisoned[:, :, 5] = math.nan
    out = headway.scaled_dot_product_attention(query, poisoned, poisoned, mask)
    assert torch.allclose(out, headway.scaled_dot_product_attention(query, key, key, mask), atol=1e-6)


def test_heads_broadcast_as_in_torch():
    query, key = torch.randn(2, 4, 5, 8), torch.randn(2, 1, 6, 8)
    for q, k, v in [(query, key, key), (query[:, :1], key.expand(2, 4, 6, 8), key), (query[:, :1], key, key)]:
        assert torch.allclose(headway.scaled_dot_product_attention(q, k, v),
                              torch.nn.functional.scaled_dot_product_attention(q, k, v), atol=1e-6)


def test_ranks_two_to_five():
    for lead in [(), (3,), (2, 3), (2, 1, 3)]:
        query = torch.randn(*lead, 5, 8)
        assert torch.allclose(headway.scaled_dot_product_attention(query, query, query),
                              torch.nn.functional.scaled_dot_product_attention(query, query, query), atol=1e-6)


def test_same_bits_at_any_number_of_threads():
    query = torch.randn(2, 4, 70, 32)
    results = [headway.scaled_dot_product_attention(query, query, query, threads=headway.Threads(n)) for n in (1, 2, 3)]
    results.append(headway.scaled_dot_product_attention(query, query, query, threads=headway.Threads.openmp(2)))
    assert all(torch.equal(results[0], result) for result in results)


def test_callers_on_several_threads():
    query = torch.randn(1, 2, 64, 32)
    alone = headway.scaled_dot_product_attention(query, query, query, is_causal=True)
    same = []

    def call():
        for length in range(1, 64):  # more shapes than plans are kept
            part = query[:, :, :length]
            out = headway.scaled_dot_product_attention(part, part, part, is_causal=True)
            same.append(torch.allclose(out, alone[:, :, :length], atol=1e-6))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(same) == 4 * 63 and all(same)


@pytest.mark.parametrize("change, message", [
    ({"dropout_p": 0.1}, "dropout_p is 0.1, expected 0"),
    ({"attn_mask": torch.ones(4, 7)}, "attn_mask is [4, 7], expected what broadcasts to [2, 4, 4, 6]"),
    ({"attn_mask": torch.ones(6, dtype=torch.int64)}, "attn_mask is i64"),
    ({"attn_mask": torch.ones(4, 6, dtype=torch.bool), "is_causal": True}, "attn_mask is given beside is_causal"),
    ({"query": torch.ones(2, 4, 4, 8).half()}, "key is f32, query is f16"),
    ({"query": torch.ones(2, 4, 4, 9)}, "key has head width 8, query has 9"),
    ({"query": torch.ones(2, 3, 4, 8)}, "key has 4"),
    ({"query": torch.ones(2, 6, 4, 8), "enable_gqa": True}, "query has 6 heads, expected a multiple of the 4 of key"),
    ({"value": torch.ones(2, 4, 5, 8)}, "value has 5 keys, key has 6"),
    ({"query": torch.ones(8)}, "query has rank 1"),
    ({"query": [1.0]}, "query is list"),
    ({"value": torch.ones(2, 4, 6, 8, device="meta")}, "value is Tensor"),
    ({"query": torch.ones(2, 4, 4, 8, requires_grad=True)}, "query requires a gradient"),
])
def test_refused(change, message):
    arguments = {"query": torch.ones(2, 4, 4, 8), "key": torch.ones(2, 4, 6, 8), "value": torch.ones(2, 4, 6, 8)}
    with pytest.raises(headway.Error) as error:
        headway.scaled_dot_product_attention(**{**arguments, **change})
    assert message in str(error.value)
    assert isinstance(error.value, ValueError) and "\n" not in str(error.value)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_types_that_are_not_computed_in(dtype):
    query = torch.ones(1, 1, 2, 8, dtype=dtype)
    with pytest.raises(headway.Error, match="expected f32 or bf16"):
        headway.scaled_dot_product_attention(query, query, query)


def test_parameters_run_without_gradients():
    query = torch.nn.Parameter(torch.randn(1, 2, 4, 8))
    with torch.no_grad():
        out = headway.scaled_dot_product_attention(query, query, query)
    assert not out.requires_grad


def test_numpy_beside_torch_is_numpy():
    query = np.ones((1, 2, 4, 8), np.float32)
    assert isinstance(headway.scaled_dot_product_attention(query, torch.ones(1, 2, 4, 8), query), np.ndarray)


def test_views_with_their_sign_elsewhere():
    query = torch.randn(1, 2, 5, 8)
    negative = torch.randn(1, 2, 5, 8, dtype=torch.complex64).conj().imag
    assert negative.is_neg()
    out = headway.scaled_dot_product_attention(negative, query, negative)
    assert torch.allclose(out, torch.nn.functional.scaled_dot_product_attention(negative, query, negative), atol=1e-5)
    with pytest.raises(headway.Error, match="cache.key is a tensor whose sign is not in its memory"):
        headway.KvCache(negative, query)


def test_a_trace_without_the_call_is_refused():
    query = torch.randn(1, 2, 5, 8)
    with warnings.catch_warnings(), pytest.raises(headway.Error, match="query is being traced"):
        warnings.simplefilter("ignore")
        torch.jit.trace(lambda q: headway.scaled_dot_product_attention(q, q, q), (query,))
