"""Session on the fixtures of the tree, and what a Profiler says of it."""
import json
import math
import pathlib

import numpy as np
import pytest

import headway

FIXTURES = pathlib.Path(__file__).parents[3] / "tests/fixtures/microsoft_attention"


def cases():
    return sorted(FIXTURES.glob("*.onnx"))


def fixture_tensors():
    """Name to array of the safetensors file beside the models: "000.in.query", "000.out.output", …"""
    data = (FIXTURES / "cases.safetensors").read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            tensors[name] = np.frombuffer(data, {"F32": "<f4", "I32": "<i4"}[entry["dtype"]],
                                          math.prod(entry["shape"]), begin + entry["data_offsets"][0]
                                          ).reshape(entry["shape"])
    return tensors


def test_fixtures_give_the_numbers_of_onnx_runtime():
    tensors = fixture_tensors()
    for path in cases():
        session = headway.Session(path)
        outputs = session.run({spec.name: tensors[f"{path.stem}.in.{spec.name}"] for spec in session.inputs})
        assert outputs.keys() == {name.split(".")[2] for name in tensors if name.startswith(f"{path.stem}.out.")}
        for name, output in outputs.items():
            np.testing.assert_allclose(output, tensors[f"{path.stem}.out.{name}"], rtol=2e-5, atol=2e-5,
                                       err_msg=f"{path.name} {name}")
    assert len(cases()) == 40


def inputs_of(session, rng):
    return {spec.name: rng.standard_normal(spec.dims).astype(np.float32) for spec in session.inputs}


def plain_session():
    """The first fixture whose inputs are all f32 of fixed dims."""
    for path in cases():
        session = headway.Session(path)
        if all(spec.type == "f32" and all(isinstance(dim, int) for dim in spec.dims) for spec in session.inputs):
            return session
    raise AssertionError("no such fixture")


def test_runs_by_name():
    session = plain_session()
    inputs = inputs_of(session, np.random.default_rng(1))
    outputs = session.run(inputs)
    assert list(outputs) == session.outputs
    unfused = headway.Session(cases()[0], fused=False)
    assert unfused.outputs
    again = session.run(dict(reversed(inputs.items())), threads=headway.Threads(2))
    for name, output in outputs.items():
        assert isinstance(output, np.ndarray) and np.isfinite(output).all()
        np.testing.assert_array_equal(output, again[name])
    assert session.explain(inputs)


def test_torch_in_torch_out():
    torch = pytest.importorskip("torch")
    session = plain_session()
    inputs = inputs_of(session, np.random.default_rng(1))
    outputs = session.run({name: torch.from_numpy(array) for name, array in inputs.items()})
    for name, output in session.run(inputs).items():
        assert torch.equal(outputs[name], torch.from_numpy(output))


def test_wrong_inputs():
    session = plain_session()
    inputs = inputs_of(session, np.random.default_rng(1))
    name = next(iter(inputs))
    with pytest.raises(headway.Error, match=f"input {name} is missing"):
        session.run({other: array for other, array in inputs.items() if other != name})
    with pytest.raises(headway.Error, match="nobody"):
        session.run({**inputs, "nobody": inputs[name]})
    with pytest.raises(headway.Error, match=name):
        session.run({**inputs, name: inputs[name].astype(np.float64)})


def test_file_that_is_not_there():
    with pytest.raises(headway.Error) as error:
        headway.Session("no/such.onnx")
    assert error.value.code == "io" and "no/such.onnx" in str(error.value)


def test_profiler(tmp_path):
    session = plain_session()
    profiler = headway.Profiler(trace_events_per_worker=100)
    session.run(inputs_of(session, np.random.default_rng(1)), profiler=profiler)
    zones = profiler.as_dict()["zones"]
    assert zones and sum(zone["flops_nominal"] for zone in zones) > 0
    assert {"name", "category", "count", "seconds", "bytes"} <= set(zones[0])
    profiler.save_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert zones[0]["name"] in profiler.table()
    profiler.clear()
    assert not profiler.as_dict()["zones"]


def test_profiler_of_attention():
    profiler = headway.Profiler()
    query = np.ones((1, 2, 30, 16), np.float32)
    headway.scaled_dot_product_attention(query, query, query, profiler=profiler)
    assert sum(zone["flops_nominal"] for zone in profiler.as_dict()["zones"]) == 2 * 2 * 30 * 30 * 32
