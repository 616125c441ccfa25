// The headway command: parses the line, runs the subcommand, turns errors into one line and an exit code. Knows nothing
// of what subcommands do.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>

#include "headway/error.h"
#include "headway/version.h"
#include "tools/command/commands.h"

namespace {

using headway::tools::Action;

int report(std::string message) {
  // A file name may hold anything; an error is one line all the same.
  std::replace_if(
      message.begin(), message.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  fmt::print(stderr, "headway: {}\n", message);
  return headway::tools::kExitBadUse;
}

int run(const Action& action) {
  try {
    const int code = action();
    if (std::fflush(stdout) != 0) return report("cannot write to the standard output");
    return code;
  } catch (const std::bad_alloc&) {
    return report("out of memory");
  } catch (const std::exception& error) {
    return report(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Multi-head attention: measure it, look into it, run it, check it.", "headway");
  app.footer("Exit codes: 0 good, 1 a check did not hold, 2 bad use or bad input.");
  app.set_version_flag("--version", headway::version());
  app.require_subcommand(0, 1);  // none at all is reported below, after words that are not one
  Action chosen;
  headway::tools::add_info(&app, &chosen);
  headway::tools::add_sweep(&app, &chosen);
  headway::tools::add_profile(&app, &chosen);
  headway::tools::add_attend(&app, &chosen);
  headway::tools::add_run(&app, &chosen);
  headway::tools::add_explain(&app, &chosen);
  headway::tools::add_conformance(&app, &chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return report(std::string(error.what()) + " (--help tells more)");
  }
  if (!chosen)
    return report(
        "no subcommand, expected info, sweep, profile, attend, run, explain or conformance (--help tells more)");
  return run(chosen);
}
