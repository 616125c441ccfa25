"""That the package imports and computes: what the build checks where numpy is, without pytest. Exit code 77: skipped."""
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy for", sys.executable)
    sys.exit(77)

import headway

rng = np.random.default_rng(0)
query, key, value = (rng.standard_normal((2, 3, length, 16)).astype(np.float32) for length in (5, 9, 9))
out = headway.scaled_dot_product_attention(query, key, value)
weights = np.exp(np.einsum("bhqd,bhkd->bhqk", query, key) / 4)
expected = np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), value)
np.testing.assert_allclose(out, expected, atol=1e-5)

cached = headway.CachedAttention(3, 16)(query[:, :, 0], headway.KvCache(key, value), [9, 9])
np.testing.assert_allclose(cached, expected[:, :, 0], atol=1e-5)

try:
    headway.scaled_dot_product_attention(query, key, value[:, :, 1:])
except headway.Error as error:
    assert str(error) == "value has 8 keys, key has 9", error
else:
    raise AssertionError("a value of fewer keys was taken")

try:
    headway.Session("no/such.onnx")
except headway.Error as error:
    assert error.code == "io", error.code
print("headway", headway.__version__, "from", headway.__file__)
