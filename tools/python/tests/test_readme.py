"""The examples of README.md, but for those that need a file or a network."""
import pathlib
import re

import pytest

pytest.importorskip("torch")
README = pathlib.Path(__file__).parents[1] / "README.md"
EXAMPLES = [code for code in re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
            if "from_pretrained" not in code and "model.onnx" not in code]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, README.name, "exec"), {})  # pylint: disable=exec-used


def test_there_are_examples():
    assert len(EXAMPLES) == 3
