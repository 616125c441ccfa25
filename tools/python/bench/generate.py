#!/usr/bin/env python3
"""Time of transformers' generate with attn_implementation "headway" against "sdpa".

    generate.py [--threads 1 2] [--models llama gpt2 …] [--prompt 512] [--tokens 64] [--batch 1] [--repeats 7]

Models are random, of the shapes of small released ones with fewer layers. The contestants take turns, repeat for
repeat; what is reported is the median of each, and the ratio sdpa / headway, above 1 where headway is faster. Prefill is
one call of the model on the prompt; decode is a generated token after it. Needs torch and transformers, and a machine
with nothing else to do.
"""
import argparse
import os
import statistics
import time

import torch
import transformers

import headway
import headway.transformers

COMMON = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0, "vocab_size": 8000}


def wide(hidden, inner, heads, kv_heads, width, **options):
    return {**COMMON, "hidden_size": hidden, "intermediate_size": inner, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "head_dim": width, "num_hidden_layers": 6,
            "max_position_embeddings": 16384, **options}


CONFIGS = {
    "gpt2": lambda: transformers.GPT2Config(**COMMON, n_embd=768, n_head=12, n_layer=6, n_positions=16384),
    "llama": lambda: transformers.LlamaConfig(**wide(2048, 5632, 32, 8, 64)),
    "qwen3": lambda: transformers.Qwen3Config(**wide(1024, 3072, 16, 8, 128)),
    "gemma3": lambda: transformers.Gemma3TextConfig(**wide(1152, 6912, 4, 1, 256), query_pre_attn_scalar=256,
                                                    sliding_window=512),
    "mistral": lambda: transformers.MistralConfig(**wide(2048, 5632, 32, 8, 64), sliding_window=1024),
}


def seconds_of(model, prompt, tokens):
    """Of the prefill, and of a token after it."""
    with torch.no_grad():
        begin = time.perf_counter()
        model(prompt, logits_to_keep=1)
        prefill = time.perf_counter() - begin
        begin = time.perf_counter()
        model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, min_new_tokens=tokens,
                       do_sample=False)
        return prefill, (time.perf_counter() - begin - prefill) / max(tokens - 1, 1)


def measure(name, threads, options):
    torch.set_num_threads(threads)
    headway.set_num_threads(threads)
    torch.manual_seed(0)
    dtype = getattr(torch, options.dtype)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS[name](), dtype=dtype).eval()
    prompt = torch.randint(2, 8000, (options.batch, options.prompt))
    times = {"sdpa": [], "headway": []}
    for repeat in range(options.repeats + 1):
        for implementation in sorted(times, reverse=repeat % 2 == 0):
            model.set_attn_implementation(implementation)
            measured = seconds_of(model, prompt, options.tokens)
            if repeat > 0:  # the first warms caches and plans
                times[implementation].append(measured)
    for part, what in enumerate(["prefill", "decode"]):
        rows = {key: [value[part] for value in values] for key, values in times.items()}
        medians = {key: statistics.median(values) for key, values in rows.items()}
        spread = max((max(values) - min(values)) / medians[key] for key, values in rows.items())
        print(f"{name:8} {threads:7} {what:8} {medians['sdpa'] * 1e3:10.2f} {medians['headway'] * 1e3:10.2f} "
              f"{medians['sdpa'] / medians['headway']:7.3f} {spread:7.1%}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--models", nargs="+", choices=CONFIGS, default=list(CONFIGS))
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options = parser.parse_args()
    headway.transformers.register()
    print(f"headway {headway.__version__}, torch {torch.__version__}, transformers {transformers.__version__}, "
          f"{os.cpu_count()} CPUs, batch {options.batch}, prompt {options.prompt}, {options.tokens} tokens, "
          f"{options.dtype}, medians of {options.repeats}")
    print("model    threads part        sdpa ms headway ms   ratio  spread")
    for name in options.models:
        for threads in options.threads:
            measure(name, threads, options)


if __name__ == "__main__":
    main()
