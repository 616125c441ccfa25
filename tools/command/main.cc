// Compiled alone: headway_fuzz has the other files without it.
// The headway command: parses the line, runs the subcommand, turns errors into one line and an exit code. Knows nothing
// of what subcommands do.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string>

#include "headway/error.h"
#include "headway/version.h"
#include "runtime/base/printable.h"
#include "tools/command/commands.h"
#include "tools/command/output.h"
#include "tools/command/process.h"

namespace {

using headway::tools::Action;

int report(const std::string& message) {
  headway::tools::write_text(stderr, "headway: " + headway::one_line(message) + '\n');
  return headway::tools::kExitBadUse;
}

int report_no_memory() {
  // What follows allocates nothing.
  headway::tools::write_text(stderr, "headway: out of memory\n");
  return headway::tools::kExitBadUse;
}

/// What the work returns, unless what it printed did not arrive.
int finish(int code) {
  const std::string failure = headway::tools::flush_output();
  return failure.empty() ? code : report(failure);
}

int run(const Action& action) {
  try {
    return finish(action());
  } catch (const std::bad_alloc&) {
    return report_no_memory();
  } catch (const std::exception& error) {
    return report(error.what());
  } catch (...) {
    return report("stopped by an error of an unknown kind");
  }
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("Multi-head attention: measure it, look into it, run it, check it.", "headway");
  app.footer(
      "Exit codes: 0 good; 1 a check did not hold; 2 bad use, bad input, or a failure of the system (files, memory); "
      "128 + n stopped by signal n.");
  app.set_version_flag("--version", headway::version());
  app.require_subcommand(0, 1);  // none at all is reported below, after words that are not one
  Action chosen;
  headway::tools::add_info(&app, &chosen);
  headway::tools::add_sweep(&app, &chosen);
  headway::tools::add_profile(&app, &chosen);
  headway::tools::add_attend(&app, &chosen);
  headway::tools::add_heads(&app, &chosen);
  headway::tools::add_run(&app, &chosen);
  headway::tools::add_view(&app, &chosen);
  headway::tools::add_explain(&app, &chosen);
  headway::tools::add_conformance(&app, &chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    std::ostringstream text;
    const int code = app.exit(help, text, text);
    headway::tools::write_text(stdout, text.str());
    return finish(code);
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return report(headway::printable(message, 250) + " (--help tells more)");
  }
  if (!chosen)
    return report(
        "no subcommand, expected info, sweep, profile, attend, heads, view, run, explain or conformance (--help tells "
        "more)");
  return run(chosen);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    headway::tools::prepare_process();
    headway::tools::keep_command_line(argc, argv);
    return parse_and_run(argc, argv);
  } catch (...) {
    return report_no_memory();  // nothing else leaves parsing
  }
}
