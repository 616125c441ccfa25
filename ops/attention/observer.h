// Tells the thread's observer, if there is one.
#pragma once

#include "headway/attention_observer.h"

namespace headway {

void observe_attention(const AttentionSpec& spec, const AttentionArgs& args);

}  // namespace headway
