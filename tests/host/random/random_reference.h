#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "host/compile.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::testing {

// Compares a random fusion with the reference. Streams run in adversarial order. `seed` is the seed
// of the text.
inline void expectReference(const std::string& text, uint64_t seed, int ranks, DeviceKind kind,
                            SizeBindings sizes = {}) {
  SCOPED_TRACE(fmt::format("seed {}, {} rank(s)\n{}", seed, ranks, text));
  const Fusion fusion = parseFusion(text, "random");
  HarnessOptions options;
  options.ranks = ranks;
  options.kind = kind;
  options.sizes = std::move(sizes);
  options.cpu.adversarial_seed = seed;
  CompileOptions compile_options;
  compile_options.passes.verify_each = true;
  Program program;
  ASSERT_NO_THROW(program = compile(fusion, ranks, compile_options));
  EXPECT_EQ(print(parseProgram(print(program), "again")), print(program));
  const std::vector<HostTensor> expected = expectedOf(fusion, options);
  const std::vector<HostTensor> got = runProgram(program, options);
  for (size_t i = 0; i < expected.size(); ++i) {
    // A fusion rounds at most four results in a row to bf16.
    const double tolerance = expected[i].dtype == DType::BF16 ? 2e-2 : 1e-4;
    EXPECT_LT(relativeError(got[i], expected[i]), tolerance) << "output " << i;
  }
}

}  // namespace heddle::host::testing
