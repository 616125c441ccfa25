"""CachedAttention, append and RotaryTable from Python. What they compute at random: tests/fuzz/cached_differential.py."""
import importlib
import pathlib

import numpy as np
import pytest

import headway

FUZZ = pathlib.Path(__file__).parents[3] / "tests/fuzz"


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def decoded(cache, query, lengths, **options):
    return headway.CachedAttention(4, 16, num_kv_heads=2)(query, cache, lengths, **options)


def test_same_as_torch_in_random_calls(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(FUZZ)
    differential = importlib.import_module("cached_differential")
    for number in range(40):
        case = differential.Case(0, number)
        found, _ = case.finding()
        assert found is None, f"{number}: {found}"
        found = differential.appended(case)
        assert found is None, f"{number}: {found}"


def test_decode_is_attention_over_the_keys_so_far():
    key, value, query = normal(2, 2, 30, 16), normal(2, 2, 30, 16), normal(2, 4, 16)
    out = decoded(headway.KvCache(key, value), query, [30, 11])
    for b, length in enumerate([30, 11]):
        expected = headway.scaled_dot_product_attention(query[b, :, None], key[b, :, :length], value[b, :, :length],
                                                        enable_gqa=True)
        np.testing.assert_allclose(out[b], expected[:, 0], atol=1e-6)


def test_paged_is_contiguous_bit_for_bit():
    key, value, query = normal(1, 2, 32, 16), normal(1, 2, 32, 16), normal(1, 4, 16)
    blocks = [part.reshape(2, 8, 4, 16).transpose(1, 0, 2, 3)[::-1].copy() for part in (key, value)]
    paged = headway.KvCache(*blocks, block_table=[list(range(7, -1, -1))])
    assert np.array_equal(decoded(paged, query, [29]), decoded(headway.KvCache(key, value), query, [29]))


def test_append_then_attend():
    cache = headway.KvCache(np.zeros((1, 2, 8, 16), np.float32), np.zeros((1, 2, 8, 16), np.float32))
    table = headway.RotaryTable(16, 8)
    key, value, query = normal(5, 2, 16), normal(5, 2, 16), normal(5, 4, 16)
    whole = query.copy()
    headway.append(cache, key, value, [5], [0, 5], query=whole, rotary=table)
    expected = headway.CachedAttention(4, 16, num_kv_heads=2)(whole, cache, [5], [0, 5])
    again = headway.KvCache(np.zeros((1, 2, 8, 16), np.float32), np.zeros((1, 2, 8, 16), np.float32))
    for t in range(5):
        turned = query[t:t + 1].copy()
        headway.append(again, key[t:t + 1], value[t:t + 1], np.array([t + 1]), query=turned, rotary=table)
        np.testing.assert_array_equal(turned, whole[t:t + 1])
        np.testing.assert_allclose(decoded(again, turned, [t + 1]), expected[t:t + 1], atol=1e-6)
    assert np.array_equal(cache.key, again.key)


def test_rotary_tables():
    table = headway.RotaryTable(8, 16, base=500.0, interleaved=True)
    assert (table.rotary_dim, table.positions, table.interleaved) == (8, 16, True)
    angle = np.arange(16)[:, None] * 500.0 ** (-np.arange(4) / 4)
    own = headway.RotaryTable.from_tables(np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32), True)
    rows = [normal(1, 2, 16), normal(1, 2, 16)]
    results = []
    for rotary in (table, own):
        key = np.zeros((1, 2, 16, 16), np.float32)
        headway.append(headway.KvCache(key, np.zeros_like(key)), *rows, [16], rotary=rotary)
        results.append(key)
    np.testing.assert_allclose(results[0], results[1], atol=1e-6)


def test_merge_of_two_halves():
    key, value, query = normal(1, 2, 30, 16), normal(1, 2, 30, 16), normal(1, 4, 16)
    attention = headway.CachedAttention(4, 16, num_kv_heads=2, causal=False)
    halves = [attention(query, headway.KvCache(key[:, :, rows], value[:, :, rows]), [15], log_sum_exp=True)
              for rows in (slice(0, 15), slice(15, 30))]
    out, sums = headway.merge(*halves[0], *halves[1])
    whole, whole_sums = attention(query, headway.KvCache(key, value), [30], log_sum_exp=True)
    np.testing.assert_allclose(out, whole, atol=1e-6)
    np.testing.assert_allclose(sums, whole_sums, atol=1e-5)


def test_numbers_as_arrays_and_lists_are_the_same():
    cache, query = headway.KvCache(normal(3, 2, 9, 16), normal(3, 2, 9, 16)), normal(3, 4, 16)
    expected = decoded(cache, query, [9, 4, 1])
    for lengths in (np.array([9, 4, 1]), np.array([9, 4, 1], np.int32), np.array([9, 0, 4, 0, 1])[::2], (9, 4, 1)):
        assert np.array_equal(decoded(cache, query, lengths), expected)


@pytest.mark.parametrize("lengths, message", [
    ([9, 4], "2"), ([9, 4, 2**40], "32 bits"), ([9, 4, 10], "10"), (np.ones(3), "lengths is f64, expected i32 or i64"),
    ([9, 4, 0.5], "a whole number was expected"), (None, "lengths has rank 0"),
])
def test_wrong_lengths(lengths, message):
    cache, query = headway.KvCache(normal(3, 2, 9, 16), normal(3, 2, 9, 16)), normal(3, 4, 16)
    with pytest.raises(headway.Error, match=message):
        decoded(cache, query, lengths)


def test_read_only_results_are_refused():
    out = np.zeros((1, 4, 16), np.float32)
    out.setflags(write=False)
    cache = headway.KvCache(normal(1, 2, 9, 16), normal(1, 2, 9, 16))
    with pytest.raises(headway.Error, match="out is ndarray, expected a writable array"):
        decoded(cache, normal(1, 4, 16), [9], out=out)


def test_plan_and_explain():
    attention = headway.CachedAttention(4, 16, num_kv_heads=2)
    cache = headway.KvCache(normal(1, 2, 900, 16), normal(1, 2, 900, 16))
    plan = attention.plan(normal(1, 4, 16), cache, [900])
    assert plan["tasks"] >= 1 and plan["split_keys"] > 0
    assert attention.explain()
