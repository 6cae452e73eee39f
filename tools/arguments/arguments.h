#pragma once

#include "tools/heddle/options.h"

namespace CLI {
class App;
}

namespace heddle::tools {

// Each of these functions adds some arguments to a command. Parsing the command line fills
// `options`.
void addCompilation(CLI::App& command, Options& options);  // sizes, and how a file is compiled
void addSource(CLI::App& command, Options& options);       // FILE, and how it is compiled
void addRanks(CLI::App& command, Options& options);        // --ranks
void addFile(CLI::App& command, Options& options);         // FILE, how it is compiled, and --ranks
void addInputs(CLI::App& command, Options& options);       // values of the inputs
void addPassChecks(CLI::App& command, Options& options);  // checks and times of the compiler passes

// Add the command `run` or `dump` to `app`, with all of its arguments.
void addRun(CLI::App& app, Options& options);
void addDump(CLI::App& app, Options& options);

}  // namespace heddle::tools
