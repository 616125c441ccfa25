"""What the scripts about caches share: the types of a cache, and what storing a number in one may change it by."""
import torch

EPSILON = 2.0**-23
UNDERFLOW = 1.7e-38  # per key and unit of |v|: weights below e^-87 may be 0
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
STEP_BITS = {"f32": None, "bf16": (8, -126), "f16": (11, -14)}  # half of a step of 1 is 2^-bits; smallest exponent


def half_step(exact, type_name):
    """What storing a number in this type may change it by."""
    if STEP_BITS[type_name] is None:
        return torch.zeros_like(exact)
    bits, smallest = STEP_BITS[type_name]
    exponent = torch.frexp(exact).exponent - 1
    return 1.01 * 2.0**(exponent.clamp(min=smallest) - bits).double()
