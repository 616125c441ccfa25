#!/usr/bin/env python3
"""Random configurations against other implementations: PyTorch's attention in float64, and ONNX's own evaluator.

    differential.py torch --headway build/ci/bin/headway --first 0 --count 1000
    differential.py onnx  --headway build/ci/bin/headway --fuzz build/ci/bin/headway_fuzz --first 0 --count 1000

A case is a number; what is printed beside a finding runs that case alone. A failing torch case is made smaller before
it is shown, a failing model is cut to the first node whose result differs. Needs numpy, safetensors and torch or onnx
(pip install numpy safetensors onnx torch==2.13.0); nothing that Headway builds or tests needs this script.
"""
import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from safetensors.numpy import load_file, save_file

TOLERANCE = 1e-3  # of the largest entry: models chain exps and divisions; an error of meaning is far larger


def headway(program, *arguments, **variables):
    return subprocess.run([program, *arguments], capture_output=True, text=True, env={**os.environ, **variables},
                          check=False, timeout=120)


# ---- torch ---------------------------------------------------------------------------------------------------------

def random_config(number):
    """Sizes and options of case `number`, as plain data so that they can be made smaller."""
    rng = random.Random(number)
    heads = rng.choice([1, 2, 3, 8])
    config = {
        "batch": rng.choice([1, 1, 2, 3]), "heads": heads, "group": 1,
        "query": rng.choice([0, 1, 2, 3, 7, 8, 9, 16, 17, 33, 64, 100]),
        "keys": rng.choice([0, 1, 2, 5, 8, 15, 16, 17, 48, 65, 130]),
        "dim": rng.choice([1, 3, 8, 16, 32, 48, 64, 80, 128]), "seed": number,
        "causal": False, "mask": None, "mask_form": "QK", "scale": None,
    }
    config["value_dim"] = config["dim"] if rng.random() < 0.7 else rng.choice([1, 5, 16, 64])
    option = rng.random()
    if option < 0.25:
        config["causal"] = True
    elif option < 0.8:
        config["mask"] = rng.choice(["bool", "float"])
        config["mask_form"] = rng.choice(["QK", "1K", "Q1", "H1K", "B11K", "BHQK", "11QK", "B1QK", "1HQK"])
    if rng.random() < 0.3:
        config["group"] = rng.choice([group for group in (1, 2, 4, 8) if heads % group == 0])
    if rng.random() < 0.3:
        config["scale"] = rng.choice([1.0, 0.05, 0.3])
    return config


def torch_case(config):
    """Tensors of a configuration and what torch makes of them in float64."""
    import torch  # pylint: disable=import-outside-toplevel
    rng = np.random.default_rng(config["seed"])
    sizes = {"B": config["batch"], "H": config["heads"], "Q": config["query"], "K": config["keys"], "1": 1}

    def normal(*dims):
        return rng.standard_normal(dims).astype(np.float32)

    tensors = {"query": normal(sizes["B"], sizes["H"], sizes["Q"], config["dim"]),
               "key": normal(sizes["B"], sizes["H"] // config["group"], sizes["K"], config["dim"]),
               "value": normal(sizes["B"], sizes["H"] // config["group"], sizes["K"], config["value_dim"])}
    mask = None
    if config["mask"]:
        dims = [sizes[letter] for letter in config["mask_form"]]
        shown = rng.random(dims) < 0.7
        mask = shown if config["mask"] == "bool" else np.where(shown, normal(*dims), -np.inf).astype(np.float32)
        tensors["attn_mask"] = mask
    wide = {name: torch.from_numpy(value.astype(np.float64)) for name, value in tensors.items() if name != "attn_mask"}
    attn_mask = None
    if mask is not None:
        attn_mask = torch.from_numpy(mask if config["mask"] == "bool" else mask.astype(np.float64))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        out = torch.nn.functional.scaled_dot_product_attention(
            wide["query"], wide["key"], wide["value"], attn_mask=attn_mask, is_causal=config["causal"],
            scale=config["scale"], enable_gqa=config["group"] > 1)
    tensors["output"] = out.numpy().astype(np.float32)
    return tensors


def failing_torch_cases(program, configs, variables):
    """Indices of the configurations that `headway conformance` does not pass, with its line on each."""
    tensors, listed = {}, []
    for index, config in enumerate(configs):
        for name, value in torch_case(config).items():
            tensors[f"{index:03d}.{name}"] = np.ascontiguousarray(value)
        listed.append({"id": index, "query": list(tensors[f"{index:03d}.query"].shape), "is_causal": config["causal"],
                       "scale": config["scale"]})
    with tempfile.TemporaryDirectory() as folder:
        save_file(tensors, f"{folder}/sdpa.safetensors")
        pathlib.Path(folder, "configs.json").write_text(json.dumps({
            "what": "torch.nn.functional.scaled_dot_product_attention: random configurations, float32",
            "file": "sdpa.safetensors", "configs": listed}), encoding="utf-8")
        result = headway(program, "conformance", folder, **variables)
    if result.returncode == 0:
        return {}
    lines = {int(m.group(1)): m.group(0) for m in re.finditer(r"^(\d{3,})  .*  FAIL.*$", result.stdout, re.M)}
    passed = re.search(r"^\d+ passed, (\d+) failed$", result.stdout, re.M)
    refused = re.search(r"^\d+ refused by the forced implementation$", result.stdout, re.M)
    if result.returncode == 1 and passed and int(passed.group(1)) == len(lines) and (lines or refused):
        return lines
    # The program ended before it had judged all: halves, until one configuration stands for it.
    if len(configs) == 1:
        said = (result.stderr or result.stdout).strip().splitlines()
        return {0: f"exit code {result.returncode}: {said[-1] if said else 'nothing said'}"}
    half = len(configs) // 2
    found = failing_torch_cases(program, configs[:half], variables)
    found.update({half + at: line for at, line in failing_torch_cases(program, configs[half:], variables).items()})
    return found


def smaller(config):
    """Configurations with one thing less."""
    for key in ("batch", "heads", "query", "keys", "dim", "value_dim"):
        for size in {1, config[key] // 2, config[key] - 1}:
            if 0 < size < config[key] and (key != "heads" or size % config["group"] == 0):
                yield {**config, key: size}
    if config["group"] > 1:
        yield {**config, "group": 1}
    for key, plain in (("mask", None), ("causal", False), ("scale", None)):
        if config[key] != plain:
            yield {**config, key: plain}


def minimise(program, config, variables):
    found = True
    while found:
        found = False
        for less in smaller(config):
            if failing_torch_cases(program, [less], variables):
                config, found = less, True
                break
    return config


def run_torch(options):
    variables = {key: value for key, value in (("HEADWAY_ATTENTION", options.implementation),
                                               ("HEADWAY_SIMD", options.simd)) if value}
    findings = 0
    for first in range(options.first, options.first + options.count, 500):
        numbers = range(first, min(first + 500, options.first + options.count))
        failed = failing_torch_cases(options.headway, [random_config(n) for n in numbers], variables)
        for index, line in failed.items():
            number = numbers[index]
            small = minimise(options.headway, random_config(number), variables)
            print(f"differential.py torch --headway {options.headway} --first {number} --count 1: {line}\n  smallest: {small}")
            findings += 1
        if options.progress:
            print(f"{numbers[-1] + 1 - options.first} cases, {findings} findings", file=sys.stderr)
    return findings


# ---- onnx ----------------------------------------------------------------------------------------------------------

def random_inputs(model, seed):
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.input:
        # Named dims of generated models are "n" and their size.
        dims = [dim.dim_value or int(dim.dim_param.lstrip("n") or 0) for dim in value.type.tensor_type.shape.dim]
        feeds[value.name] = np.asarray(rng.integers(-512, 513, dims) / 512, dtype=np.float32)
    return feeds


def differing(got, expected, fused):
    """Where two results differ by more than rounding; None when they do not. Fused, a number may stand for NaN: rows of
    attention that see no key are 0 by rule, and what overflows between the nodes of a pattern need not overflow."""
    if got.shape != expected.shape:
        return f"dims {got.shape}, expected {expected.shape}"
    if got.size == 0:
        return None
    finite = np.isfinite(got) & np.isfinite(expected)
    scale = max(np.abs(expected[np.isfinite(expected)]).max(initial=0), 1e-3)
    with np.errstate(invalid="ignore"):
        apart = np.abs(got.astype(np.float64) - expected)
    same = (got == expected) | (np.isnan(expected) & (np.isnan(got) | (fused & np.isfinite(got))))
    wrong = np.where(finite, apart > TOLERANCE * scale, ~same)
    if not wrong.any():
        return None
    place = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
    return f"element {list(place)} is {got[place]}, expected {expected[place]}"


def compare_model(options, model, feeds, folder, *extra):
    """Names of outputs that differ, in the model's order, with the difference."""
    import onnx  # pylint: disable=import-outside-toplevel
    from onnx.reference import ReferenceEvaluator  # pylint: disable=import-outside-toplevel
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # means over nothing
        expected = ReferenceEvaluator(model).run(None, feeds)
    onnx.save(model, f"{folder}/m.onnx")
    arguments = ["run", f"{folder}/m.onnx", "--out", f"{folder}/out.safetensors", *extra]
    if feeds:
        save_file(feeds, f"{folder}/in.safetensors")
        arguments += ["--inputs", f"{folder}/in.safetensors"]
    result = headway(options.headway, *arguments)
    if result.returncode != 0:
        return {"": f"refused: {result.stderr.strip()}"}
    got = load_file(f"{folder}/out.safetensors")
    found = {}
    for output, value in zip(model.graph.output, expected):
        difference = differing(got[output.name], np.asarray(value), "--unfused" not in extra)
        if difference:
            found[output.name] = difference
    return found


def first_differing_node(options, model, feeds, folder):
    """The model with every value an output, unfused: the first node whose result differs from the evaluator's."""
    import onnx  # pylint: disable=import-outside-toplevel
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.output[:]
    for node in whole.graph.node:
        for name in node.output:
            whole.graph.output.append(onnx.ValueInfoProto(name=name))
    found = compare_model(options, whole, feeds, folder, "--unfused")
    for node in whole.graph.node:
        if any(name in found for name in node.output):
            return f"{node.op_type} '{node.name}' as it stands: {found[node.output[0]]}"
    return "every node as it stands is right: fusion"


def run_onnx(options):
    import onnx  # pylint: disable=import-outside-toplevel
    findings = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.first, options.first + options.count):
            subprocess.run([options.fuzz, "graphs", "--first", str(number), "--write", f"{folder}/case.onnx"], check=True)
            model = onnx.load(f"{folder}/case.onnx")
            if any(node.domain for node in model.graph.node):
                skipped += 1  # the evaluator knows ai.onnx only
                continue
            feeds = random_inputs(model, number)
            try:
                found = compare_model(options, model, feeds, folder) or compare_model(options, model, feeds, folder, "--unfused")
            except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError, AttributeError) as error:
                skipped += 1  # of the evaluator's own
                if options.progress:
                    print(f"case {number}: the evaluator fails: {str(error)[:100]}", file=sys.stderr)
                continue
            if found:
                findings += 1
                name, difference = next(iter(found.items()))
                print(f"differential.py onnx --headway {options.headway} --fuzz {options.fuzz} --first {number} "
                      f"--count 1: {name} {difference}\n  smallest: {first_differing_node(options, model, feeds, folder)}")
    print(f"{skipped} skipped", file=sys.stderr)
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("against", choices=["torch", "onnx"])
    parser.add_argument("--headway", required=True, help="the command")
    parser.add_argument("--fuzz", help="headway_fuzz, which makes the models")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--implementation", help="force one implementation of attention")
    parser.add_argument("--simd", help="cap the SIMD target")
    parser.add_argument("--progress", action="store_true")
    options = parser.parse_args()
    if options.against == "onnx" and not options.fuzz:
        parser.error("--fuzz is missing")
    findings = run_torch(options) if options.against == "torch" else run_onnx(options)
    print(f"{options.count} cases, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
