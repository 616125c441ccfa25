// A stream for making texts that says when it has no memory. Knows nothing of what is written.
#pragma once

#include <sstream>

namespace headway {

/// Lets std::bad_alloc through, where std::ostringstream swallows it and cuts the text short.
class TextStream : public std::ostringstream {
 public:
  TextStream() { exceptions(std::ios_base::badbit); }
};

}  // namespace headway
