"""Hugging Face models through attn_implementation="headway": the tokens that eager attention generates."""
import pytest

import headway

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import headway.transformers  # noqa: E402  pylint: disable=wrong-import-position,ungrouped-imports

headway.transformers.register()

SMALL = {"vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 256,
         "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0, "tie_word_embeddings": False}

CONFIGS = {
    "gpt2": lambda: transformers.GPT2Config(vocab_size=128, n_embd=64, n_layer=2, n_head=4, n_positions=256,
                                            bos_token_id=1, eos_token_id=None, pad_token_id=0),
    "llama": lambda: transformers.LlamaConfig(**SMALL),
    "qwen3": lambda: transformers.Qwen3Config(**SMALL),
    "mistral": lambda: transformers.MistralConfig(**SMALL, sliding_window=12),
    "gemma2": lambda: transformers.Gemma2Config(**SMALL, query_pre_attn_scalar=16, sliding_window=12,
                                                attn_logit_softcapping=5.0),
    "gemma3": lambda: transformers.Gemma3TextConfig(**SMALL, query_pre_attn_scalar=16, sliding_window=12,
                                                    layer_types=["sliding_attention", "full_attention"]),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(vocab_size=128, hidden_size=64, intermediate_size=96,
                                                   num_hidden_layers=2, num_attention_heads=4,
                                                   max_position_embeddings=256, bos_token_id=1, eos_token_id=None,
                                                   pad_token_id=0),
    "gpt_oss": lambda: transformers.GptOssConfig(**SMALL, num_local_experts=2, num_experts_per_tok=1,
                                                 sliding_window=12),
}


def model_of(name):
    """A random model whose weights are scaled up, so that attention and logits are not flat."""
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS[name](), attn_implementation="eager").eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() >= 2:
                weight.mul_(6)
            elif "sinks" in name:
                weight.normal_()
    return model


def generate(model, implementation, **inputs):
    model.set_attn_implementation(implementation)
    with torch.no_grad():
        return model.generate(**inputs, max_new_tokens=64, min_new_tokens=64, do_sample=False,
                              return_dict_in_generate=True, output_logits=True)


@pytest.mark.parametrize("name", CONFIGS)
def test_same_tokens_as_eager(name):
    model = model_of(name)
    prompt = torch.randint(2, 128, (1, 23), generator=torch.Generator().manual_seed(1))
    inputs = {"input_ids": prompt, "attention_mask": torch.ones_like(prompt)}
    eager, ours = generate(model, "eager", **inputs), generate(model, "headway", **inputs)
    assert ours.sequences.shape == (1, 87)
    assert torch.equal(eager.sequences, ours.sequences)
    logits = torch.stack(eager.logits)
    assert logits.std() > 0.1 and len(set(eager.sequences[0, 23:].tolist())) > 3  # not flat
    assert (logits - torch.stack(ours.logits)).abs().max() < 1e-3 * logits.abs().max()


# A query that sees no key is the mean of all values in eager attention and 0 here and in torch's: padding on the right
# stays below the window, so that no token has such a row.
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", CONFIGS)
def test_same_tokens_in_a_padded_batch(name, side):
    model = model_of(name)
    tokens = torch.randint(2, 128, (3, 20), generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(tokens)
    for row, padding in enumerate([0, 7, 13] if side == "left" else [0, 3, 9]):
        hidden = slice(0, padding) if side == "left" else slice(20 - padding, 20)
        tokens[row, hidden] = 0
        mask[row, hidden] = 0
    eager = generate(model, "eager", input_ids=tokens, attention_mask=mask)
    ours = generate(model, "headway", input_ids=tokens, attention_mask=mask)
    assert torch.equal(eager.sequences, ours.sequences)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits(dtype):
    model = model_of("llama").to(dtype)
    prompt = torch.randint(2, 128, (2, 30), generator=torch.Generator().manual_seed(3))
    logits = {}
    for implementation in ("eager", "headway"):
        model.set_attn_implementation(implementation)
        with torch.no_grad():
            logits[implementation] = model(prompt).logits.float()
    exact = model.float()
    exact.set_attn_implementation("eager")
    with torch.no_grad():
        exact = exact(prompt).logits
    error = {name: (value - exact).abs().max() for name, value in logits.items()}
    assert error["headway"] <= 2 * error["eager"]


def test_prefill_in_chunks():
    model = model_of("qwen3")
    prompt = torch.randint(2, 128, (2, 24), generator=torch.Generator().manual_seed(4))
    model.set_attn_implementation("eager")
    with torch.no_grad():
        whole = model(prompt).logits
        model.set_attn_implementation("headway")
        cache = transformers.DynamicCache()
        parts = [model(part, past_key_values=cache).logits for part in prompt.split([10, 1, 13], dim=1)]
    assert torch.allclose(whole, torch.cat(parts, dim=1), atol=1e-3 * whole.abs().max().item())


def test_encoder_sees_both_sides():
    torch.manual_seed(7)
    config = transformers.BertConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=96)
    model = transformers.BertModel._from_config(config, attn_implementation="eager").eval()
    tokens = torch.randint(2, 128, (2, 15))
    mask = torch.ones_like(tokens)
    mask[1, 9:] = 0
    states = {}
    for implementation in ("eager", "headway"):
        model.set_attn_implementation(implementation)
        with torch.no_grad():
            states[implementation] = model(tokens, attention_mask=mask).last_hidden_state[mask.bool()]
    assert torch.allclose(states["eager"], states["headway"], atol=1e-5)


def test_static_cache():
    model = model_of("llama")
    prompt = torch.randint(2, 128, (1, 9), generator=torch.Generator().manual_seed(5))
    sequences = []
    for implementation in ("eager", "headway"):
        model.set_attn_implementation(implementation)
        with torch.no_grad():
            sequences.append(model.generate(prompt, max_new_tokens=16, do_sample=False, cache_implementation="static",
                                            disable_compile=True))
    assert torch.equal(*sequences)


def test_training_is_refused():
    model = model_of("llama")
    model.set_attn_implementation("headway")
    with pytest.raises(headway.Error, match="requires a gradient"):
        model(torch.tensor([[3, 4, 5]]))
    model.config.attention_dropout = 0.1
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.1
    with torch.no_grad(), pytest.raises(headway.Error, match="dropout is 0.1"):
        model.train()(torch.tensor([[3, 4, 5]]))


@pytest.mark.parametrize("name", ["cu_seq_lens_q", "block_indices", "of_tomorrow"])
def test_unknown_arguments_are_refused(name):
    states = torch.ones(1, 2, 3, 8)
    with pytest.raises(headway.Error, match=name):
        headway.transformers.attention_forward(torch.nn.Module(), states, states, states, None, **{name: 1})


def test_attention_weights_are_refused():
    model = model_of("llama")
    model.set_attn_implementation("headway")
    with torch.no_grad(), pytest.raises(ValueError):
        model(torch.tensor([[3, 4, 5]]), output_attentions=True)


def test_position_bias_is_added():
    generator = torch.Generator().manual_seed(6)
    query, bias = torch.randn(2, 4, 5, 8, generator=generator), torch.randn(1, 4, 5, 5, generator=generator)
    mask = torch.rand(2, 1, 5, 5, generator=generator) < 0.8
    mask[..., 0] = True
    for causal, given in [(True, None), (False, None), (False, mask)]:
        out, _ = headway.transformers.attention_forward(torch.nn.Module(), query, query, query, given,
                                                        is_causal=causal, position_bias=bias)
        shown = torch.ones(5, 5, dtype=torch.bool).tril() if causal else torch.ones(5, 5, dtype=torch.bool)
        total = torch.where(shown if given is None else given, bias, -torch.inf)
        expected = torch.nn.functional.scaled_dot_product_attention(query, query, query, total)
        assert torch.allclose(out, expected.transpose(1, 2), atol=1e-5)


def test_inputs_are_not_copied(monkeypatch):
    """Grouped keys arrive as the cache holds them."""
    seen = []
    core = headway.transformers._core.attention
    monkeypatch.setattr(headway.transformers._core, "attention", lambda *a: (seen.append(a[1]), core(*a))[1])
    query, key = torch.randn(1, 4, 3, 8), torch.randn(1, 2, 3, 8)
    headway.transformers.attention_forward(torch.nn.Module(), query, key, key)
    assert seen[0].data_ptr() == key.data_ptr() and seen[0].shape[1] == 2


def masks_seen(monkeypatch, name, **inputs):
    """mask, key mask, alignment and left window of each call of the core in a prefill."""
    seen = []
    core = headway.transformers._core.attention
    monkeypatch.setattr(headway.transformers._core, "attention", lambda *a: (seen.append((*a[4:7], a[9])), core(*a)))
    model = model_of(name)
    model.set_attn_implementation("headway")
    with torch.no_grad():
        model(torch.full((2, 30), 5), **inputs)
    return seen


def test_masks_of_plain_prefills_become_rules(monkeypatch):
    assert masks_seen(monkeypatch, "llama") == [(None, None, "top_left", -1)] * 2
    assert masks_seen(monkeypatch, "mistral") == [(None, None, "bottom_right", 11)] * 2


def test_padding_becomes_a_mask_of_keys(monkeypatch):
    padding = torch.ones(2, 30, dtype=torch.int64)
    padding[1, :8] = 0
    for mask, keys, alignment, left in masks_seen(monkeypatch, "mistral", attention_mask=padding):
        assert mask is None and (alignment, left) == ("bottom_right", 11)
        assert torch.equal(keys, padding.bool())


def test_bands_of_random_masks_hide_nothing_that_is_shown():
    generator = torch.Generator().manual_seed(8)
    exact = 0
    for number in range(300):
        queries, keys = (int(n) for n in torch.randint(2, 9, (2,), generator=generator))
        keys += queries * (number % 2)
        mask = torch.rand((2, 1, queries, keys), generator=generator) < 0.5
        distance = torch.arange(queries)[:, None] + keys - queries - torch.arange(keys)[None, :]
        if number % 3:
            mask &= distance >= 0
        if number % 5 == 0:
            mask[:] = (distance >= 0) & (distance <= 2)
        if number % 7 == 0:
            mask[:] = torch.rand((2, 1, 1, keys), generator=generator) < 0.7
        if number % 35 == 0:
            mask &= (distance >= 0) & (distance <= 2)
        band = headway.transformers._band_of(mask)
        if band is None:
            assert not mask.any() or (mask & (distance < 0)).any()
            continue
        inside = (distance >= 0) & (distance <= band.left) if band.causal else torch.ones_like(distance, dtype=torch.bool)
        assert not (mask & ~inside).any()
        if band.exact:
            shown = inside if band.keys is None else inside & band.keys[:, None, None]
            assert torch.equal(mask, shown.expand_as(mask))
            exact += 1
    assert exact > 50


def test_a_mask_that_was_changed_is_read_again():
    query = torch.randn(1, 2, 6, 8, generator=torch.Generator().manual_seed(9))
    mask = headway.transformers.attention_mask_of(1, 6, 6, allow_is_causal_skip=False)
    assert mask.headway_band.exact
    mask[..., 0, 5] = True
    out, _ = headway.transformers.attention_forward(torch.nn.Module(), query, query, query, mask)
    expected = torch.nn.functional.scaled_dot_product_attention(query, query, query, mask)
    assert torch.allclose(out, expected.transpose(1, 2), atol=1e-5)


@pytest.mark.parametrize("queries", [1, 5])
def test_learned_queries_serve_the_whole_batch(queries):
    query, key = torch.randn(1, 4, queries, 8), torch.randn(3, 2, 7, 8)
    out, _ = headway.transformers.attention_forward(torch.nn.Module(), query, key, key, is_causal=False)
    expected = torch.nn.functional.scaled_dot_product_attention(query.expand(3, -1, -1, -1), key, key, enable_gqa=True)
    assert torch.allclose(out, expected.transpose(1, 2), atol=1e-5)


def test_masks_that_do_not_fit_are_refused():
    states = torch.ones(1, 2, 3, 8)
    for mask in (torch.ones(1, 1, 3, 4, dtype=torch.bool), torch.ones(3, 3), torch.ones(1, 1, 2, 3)):
        with pytest.raises(headway.Error, match="expected .batch, heads, 3, 3"):
            headway.transformers.attention_forward(torch.nn.Module(), states, states, states, mask)
