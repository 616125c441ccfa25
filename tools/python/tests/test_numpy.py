"""The package with numpy alone: torch is neither imported nor needed."""
import subprocess
import sys

import numpy as np
import pytest

import headway


def attention(query, key, value):
    scores = np.einsum("bhqd,bhkd->bhqk", query.astype(np.float64), key.astype(np.float64)) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), value.astype(np.float64))


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_result_is_an_array_of_the_same_numbers():
    query, key, value = normal(2, 3, 5, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 4)
    out = headway.scaled_dot_product_attention(query, key, value)
    assert type(out) is np.ndarray and out.dtype == np.float32
    np.testing.assert_allclose(out, attention(query, key, value), atol=1e-6)


def test_views_are_not_copied_and_read_as_they_lie():
    packed = normal(2, 7, 3, 8)  # [B, S, H, D]
    heads = packed.transpose(0, 2, 1, 3)
    backwards = heads[:, :, ::-1]
    np.testing.assert_allclose(headway.scaled_dot_product_attention(heads, heads, heads), attention(heads, heads, heads),
                               atol=1e-6)
    np.testing.assert_allclose(headway.scaled_dot_product_attention(backwards, heads, heads),
                               attention(backwards, heads, heads), atol=1e-6)


class Foreign:
    """An array of which nothing is known but DLPack."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_that_only_speak_dlpack():
    query = normal(1, 2, 4, 8)
    out = headway.scaled_dot_product_attention(Foreign(query), query, query)
    np.testing.assert_array_equal(out, headway.scaled_dot_product_attention(query, query, query))


def test_layer_of_arrays():
    weights = [normal(24, 24) / 5, normal(24, 16) / 5, normal(24, 20) / 5, normal(24, 24) / 5]
    biases = [normal(24) + i for i in range(4)]
    layer = headway.MultiHeadAttention(3, *weights, query_bias=biases[0], key_bias=biases[1], value_bias=biases[2],
                                       output_bias=biases[3])
    inputs = normal(2, 5, 24), normal(2, 7, 16), normal(2, 7, 20)
    out, _ = layer(*inputs)
    heads = [(x.astype(np.float64) @ w.T + b).reshape(2, -1, 3, 8).transpose(0, 2, 1, 3)
             for x, w, b in zip(inputs, weights, biases)]
    context = attention(*heads).transpose(0, 2, 1, 3).reshape(2, 5, 24)
    assert type(out) is np.ndarray
    np.testing.assert_allclose(out, context @ weights[3].T + biases[3], rtol=1e-5, atol=1e-5)


def test_read_only_arrays_are_read():
    query = normal(1, 2, 4, 8)
    query.setflags(write=False)
    headway.scaled_dot_product_attention(query, query, query)


def test_types():
    query = normal(1, 2, 4, 8)
    with pytest.raises(headway.Error, match="query is f64, expected f32 or bf16"):
        headway.scaled_dot_product_attention(*[query.astype(np.float64)] * 3)
    with pytest.raises(headway.Error):
        headway.scaled_dot_product_attention(*[query.astype(np.complex64)] * 3)


def test_torch_is_not_imported():
    program = ("import sys; sys.modules['torch'] = None; sys.modules['transformers'] = None\n"
               "import numpy, headway; q = numpy.ones((1, 2, 3, 8), numpy.float32)\n"
               "print(headway.scaled_dot_product_attention(q, q, q).sum())")
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.stdout == "48.0\n", result.stderr


def test_number_of_threads():
    headway.set_num_threads(3)
    assert headway.get_num_threads() == 3
    headway.set_num_threads(None)
    with pytest.raises(headway.Error, match="workers is 0"):
        headway.set_num_threads(0)
