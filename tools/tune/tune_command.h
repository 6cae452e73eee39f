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

// addTune() adds the command `heddle tune`. tuneCommand() runs the command and returns the exit
// code.
void addTune(CLI::App& app, Options& options);
int tuneCommand(const Options& options);

// Adds --tune, --choices, --choices-only and --export.
void addChoices(CLI::App& command, Options& options);
// Returns the choices in the file of --choices, or no choices without --choices. Throws UserError
// if the options of addChoices() contradict each other or the device, or if the file cannot be read
// or parsed.
Choices givenChoices(const Options& options);

// Returns the choices for a rank, that is, the candidates that its kernels must use, by key
// (host::choiceKey()). A kernel whose key is missing uses its first candidate; with --choices-only,
// this is an error. With --tune=off, returns `given`. With --tune=auto or --tune=full, rank 0 tunes
// the kernels of all ranks, stores the new choices, and sends all choices to the other ranks. A
// rank with another device than rank 0 then tunes again, but chooses only among candidates whose
// results are bitwise equal to the results of the choices from rank 0. With --tune=auto, the
// choices in `given` count as stored choices. All ranks must call this function. If --tune is not
// off, the function communicates once. The result also has the algorithms of library calls in
// `given`.
Choices choicesForRun(const Rank& rank, const host::Program& program, const SizeBindings& sizes,
                      const Choices& given, const Options& options, codegen::ImageCache& images);

}  // namespace heddle::tools
