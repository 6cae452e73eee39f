#pragma once

#include "tools/heddle/options.h"

namespace CLI {
class App;
}

namespace heddle::tools {

// Adds the options that only `heddle bench` has, and the text that explains its output.
void addBench(CLI::App& bench, Options& options);
// Runs a program, measures each instruction that does work on the device, and prints the results.
// Returns the exit code. Throws UserError for a fault of the caller.
int benchCommand(const Options& options);

}  // namespace heddle::tools
