#include "host/verify/verify.h"

#include <cstdio>

#include "host/compile.h"
#include "host/executable.h"
#include "ir/graph/verify.h"
#include "ir/passes/pipeline.h"
#include "tools/heddle/source.h"

namespace heddle::tools {

namespace {

int verifySource(const Source& source, const Options& options, int ranks) {
  if (const auto* fusion = std::get_if<Fusion>(&source)) {
    const auto& defaults = fusion->size_defaults;
    checkSizes(*fusion, SizeBindings(defaults.begin(), defaults.end()));
    heddle::verify(*fusion);
    const host::Program program = host::compile(*fusion, ranks);
    host::verify(program, {ranks, std::nullopt});
    std::printf("%s: good: %zu expressions, %d instructions on %d rank(s)\n", options.file.c_str(),
                fusion->exprs().size(), host::countInstructions(program.body), ranks);
    return 0;
  }
  const auto& program = std::get<host::Program>(source);
  host::verify(program, options.ranks > 0 ? host::ActualJob{options.ranks, SizeBindings{}}
                                          : host::ActualJob{});
  std::printf("%s: good: %d instructions\n", options.file.c_str(),
              host::countInstructions(program.body));
  return 0;
}

}  // namespace

int verifyCommand(const Options& options) {
  const Source source = readSource(options.file);
  const int ranks = options.ranks > 0 ? options.ranks : 1;
  return inFile(options.file, source, [&] { return verifySource(source, options, ranks); });
}

}  // namespace heddle::tools
