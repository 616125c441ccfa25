// What the process does about its descriptors and signals, and how it was called. Knows no subcommand.
#pragma once

#include <string>

namespace headway::tools {

/// To be called first, once.
///   descriptors  0, 1 and 2 that are closed are opened on nothing, so that no file takes their place; writing to one
///                fails as before
///   SIGPIPE      is ignored: a broken pipe is a write that fails
///   SIGINT, SIGTERM, SIGHUP, SIGXFSZ, SIGXCPU   remove the temporary files, say so in a line and exit with 128 + the
///                signal's number; one that was ignored stays ignored
void prepare_process();

/// The command line as a shell would take it again. The program is headway, wherever it lies.
void keep_command_line(int argc, const char* const* argv);
const std::string& command_line();

}  // namespace headway::tools
