#pragma once

#include "host/executable.h"
#include "tools/heddle/job.h"
#include "tools/heddle/options.h"
#include "tools/heddle/source.h"
#include "tools/tune/choices_file.h"

namespace CLI {
class App;
}

namespace heddle::tools {

// `heddle tune`.
void addTune(CLI::App& app, Options& options);
int tuneCommand(const Options& options);

// Adds --tune, --choices and --choices-only.
void addChoices(CLI::App& command, Options& options);
// Throws UserError if these options contradict each other, or if the file of --choices is wrong.
// Returns the choices of the file.
Choices givenChoices(const Options& options);

// Returns the choices with which a rank must run the program. With --tune=off, returns `given`.
// With --tune, rank 0 measures the kernels of all ranks, stores the choices, and sends them to all
// ranks. A rank whose device differs from the device of rank 0 then measures the candidates that
// give the same bits as these choices. The function communicates once. All ranks must call it.
Choices choicesForRun(const Rank& rank, const host::Program& program, const SizeBindings& sizes,
                      const Choices& given, const Options& options, codegen::ImageCache& images);

}  // namespace heddle::tools
