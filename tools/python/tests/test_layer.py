"""MultiHeadAttention.from_torch against torch.nn.MultiheadAttention."""
import pytest

import headway

torch = pytest.importorskip("torch")


def module_of(**options):
    torch.manual_seed(3)
    module = torch.nn.MultiheadAttention(**{"embed_dim": 48, "num_heads": 4, "batch_first": True, **options}).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-0.5, 0.5)
    return module


def inputs_of(module, batch=2, queries=7, keys=9):
    def rows(length, width):
        shape = (batch, length, width) if module.batch_first else (length, batch, width)
        return torch.randn(shape, generator=torch.Generator().manual_seed(length))
    return rows(queries, module.embed_dim), rows(keys, module.kdim), rows(keys, module.vdim)


@pytest.mark.parametrize("options", [
    {}, {"batch_first": False}, {"bias": False}, {"kdim": 24, "vdim": 40}, {"add_bias_kv": True},
    {"add_zero_attn": True}, {"add_bias_kv": True, "add_zero_attn": True, "batch_first": False},
])
@pytest.mark.parametrize("average", [True, False])
def test_same_as_torch(options, average):
    module = module_of(**options)
    layer = headway.MultiHeadAttention.from_torch(module)
    query, key, value = inputs_of(module)
    padding = torch.zeros(2, 9, dtype=torch.bool)
    padding[1, 6:] = True
    hidden = torch.rand(8, 7, 9, generator=torch.Generator().manual_seed(1)) < 0.3
    added = torch.randn(7, 9, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        for attn_mask, key_mask in [(None, None), (hidden, None), (added, None), (None, padding), (hidden, padding)]:
            expected, expected_weights = module(query, key, value, key_mask, True, attn_mask, average)
            out, weights = layer(query, key, value, key_mask, True, attn_mask, average)
            assert torch.allclose(out, expected, atol=1e-4)
            assert weights.shape == expected_weights.shape
            assert torch.allclose(weights, expected_weights, atol=1e-5)
            assert layer(query, key, value, key_mask, False, attn_mask)[1] is None


def test_self_attention_without_a_batch_and_causal():
    module = module_of()
    layer = headway.MultiHeadAttention.from_torch(module)
    query = torch.randn(6, 48)
    mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
    with torch.no_grad():
        expected, expected_weights = module(query, query, query, attn_mask=mask)
    out, weights = layer(query, need_weights=True, attn_mask=mask)
    assert torch.allclose(out, expected, atol=1e-4) and torch.allclose(weights, expected_weights, atol=1e-5)
    assert torch.allclose(layer(query, is_causal=True)[0], expected, atol=1e-4)


def test_many_lengths_share_the_weights():
    module = module_of()
    layer = headway.MultiHeadAttention.from_torch(module)
    for length in range(1, 25):  # more than plans are kept
        query = torch.randn(1, length, 48)
        with torch.no_grad():
            expected, _ = module(query, query, query, need_weights=False)
        assert torch.allclose(layer(query)[0], expected, atol=1e-4)


def test_bf16():
    module = module_of().to(torch.bfloat16)
    query = torch.randn(2, 5, 48).to(torch.bfloat16)
    with torch.no_grad():
        exact, _ = module.float()(query.float(), query.float(), query.float(), need_weights=False)
    out = headway.MultiHeadAttention.from_torch(module.to(torch.bfloat16))(query)[0]
    assert out.dtype == torch.bfloat16
    assert (out.float() - exact).abs().max() < 0.03 * exact.abs().max()


def test_numpy_weights():
    weights = [weight.numpy() for weight in torch.randn(4, 48, 48)]
    query = torch.randn(2, 5, 48)
    out, _ = headway.MultiHeadAttention(4, *weights)(query.numpy())
    expected, _ = headway.MultiHeadAttention(4, *map(torch.from_numpy, weights))(query)
    assert torch.equal(torch.from_numpy(out), expected)


def test_refused():
    module = module_of(dropout=0.1)
    with pytest.raises(headway.Error, match="dropout 0.1"):
        headway.MultiHeadAttention.from_torch(module.train())
    layer = headway.MultiHeadAttention.from_torch(module.eval())
    with pytest.raises(headway.Error, match="47"):
        layer(torch.randn(2, 5, 47))
    with pytest.raises(headway.Error, match="attn_mask has 3 matrices, expected batch times heads, 8"):
        layer(torch.randn(2, 5, 48), attn_mask=torch.zeros(3, 5, 5))
    with pytest.raises(headway.Error, match="query has rank 1"):
        layer(torch.randn(48))
