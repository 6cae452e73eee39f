#pragma once

#include "host/program/pass_options.h"
#include "host/program/program.h"

namespace heddle::host {

// Runs the passes of host/passes/pipeline.cpp in order through one door that skips, times, dumps
// and verifies. The result passes verify(). Where sizes decide whether products are cut in chunks
// it is one `if` with both versions, whose passes have run on each. UserError: a name to skip that
// is no pass, chunks outside 0 .. kMostChunks, a stream split that nothing here can follow.
Program runPasses(Program program, const PassOptions& options = {});

// runPasses() without the verification at the end, for a caller that verifies the result itself or
// already holds an equal verified program.
Program runPassesAgain(Program program, const PassOptions& options);

}  // namespace heddle::host
