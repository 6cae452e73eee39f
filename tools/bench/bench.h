#pragma once

#include "tools/heddle/options.h"

namespace CLI {
class App;
}

namespace heddle::tools {

// Adds --device, --repeat, --roofline, --csv and --json to the command `heddle bench`, and the text
// that explains the output.
void addBench(CLI::App& bench, Options& options);
// Compiles and runs a file, measures each instruction that does work on the device, and prints the
// results. Returns the exit code. Throws UserError for a fault of the caller.
int benchCommand(const Options& options);

}  // namespace heddle::tools
