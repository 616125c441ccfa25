// The subcommands: each adds itself to the command line and says what to do when it is chosen.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace headway::tools {

/// Runs the chosen subcommand; returns the exit code. Throws headway::Error for bad input.
using Action = std::function<int()>;

inline constexpr int kExitGood = 0;
inline constexpr int kExitCheckFailed = 1;  ///< ran, and something that was to hold did not
inline constexpr int kExitBadUse = 2;       ///< could not run: bad options, bad input

void add_info(CLI::App* app, Action* chosen);
void add_sweep(CLI::App* app, Action* chosen);
void add_profile(CLI::App* app, Action* chosen);
void add_attend(CLI::App* app, Action* chosen);
void add_heads(CLI::App* app, Action* chosen);
void add_run(CLI::App* app, Action* chosen);
void add_view(CLI::App* app, Action* chosen);
void add_explain(CLI::App* app, Action* chosen);
void add_conformance(CLI::App* app, Action* chosen);

}  // namespace headway::tools
