// What the command says, on the standard output and the standard error. A stream that is closed, full or a broken pipe
// stops no work: the failure is remembered, and main reports it when the work is done.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace headway::tools {

/// Writes the text; never throws for the stream's sake.
void write_text(std::FILE* to, std::string_view text);

template <class... Args>
void print(std::FILE* to, fmt::format_string<Args...> format, Args&&... args) {
  write_text(to, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_text(stdout, fmt::format(format, std::forward<Args>(args)...));
}

/// Whether a write to the standard output has failed so far.
bool output_failed();

/// Flushes the standard output. Empty, or why something that was written did not arrive.
std::string flush_output();

}  // namespace headway::tools
