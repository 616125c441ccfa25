// The functions of the C API, each with a call that is right until CCall::make() spoils it.
#pragma once

#include "headway/headway.h"
#include "tests/fuzz/c_call.h"
#include "tests/fuzz/dice.h"

namespace headway::fuzz {

headway_status call_attention(Dice* dice, CCall* call);
headway_status call_multi_head_attention(Dice* dice, CCall* call);
headway_status call_cached_attention(Dice* dice, CCall* call);
headway_status call_append(Dice* dice, CCall* call);
headway_status call_merge(Dice* dice, CCall* call);
headway_status call_packed_matmul(Dice* dice, CCall* call);
headway_status call_cached_layer(Dice* dice, CCall* call);

}  // namespace headway::fuzz
