#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "codegen/compile/image_cache.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tools/random/case_files.h"
#include "tools/random/run_case.h"

namespace heddle::host::testing {

// The seeds of a test. The environment variables HEDDLE_RANDOM_FROM and HEDDLE_RANDOM_COUNT replace
// them.
struct Seeds {
  uint64_t first;
  uint64_t count;
};
inline Seeds seedsOf(uint64_t first, uint64_t count) {
  const char* from = std::getenv("HEDDLE_RANDOM_FROM");
  const char* many = std::getenv("HEDDLE_RANDOM_COUNT");
  return {from != nullptr ? std::strtoull(from, nullptr, 10) : first,
          many != nullptr ? std::strtoull(many, nullptr, 10) : count};
}

// Writes a failed case to a file. Returns a text that says how to reduce the case.
inline std::string keptAs(const random::FusionCase& failed, uint64_t seed) {
  const auto path =
      std::filesystem::temp_directory_path() / ("heddle_random_seed_" + std::to_string(seed));
  random::writeCase(failed, path.string());
  return fmt::format(
      "written to {}.fusion; reduce with: heddle-fuzz --soak --seed {} --count 1\n{}",
      path.string(), seed, print(failed.fusion));
}

// Compares the fusions of the seeds on a device with the reference. Elements without a useful error
// bound are not compared. Requires that most elements are compared.
inline void expectRandomFusions(Device& device, Seeds seeds,
                                const random::GeneratorOptions& options = {}) {
  codegen::ImageCache images;
  random::Comparison total;
  int failures = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count && failures < 5; ++seed) {
    const random::FusionCase made = random::randomCase(seed, options);
    const random::CaseResult result = random::checkOn(device, &images, made);
    total += result.comparison;
    if (result.failure.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ": " << result.failure << "\n" << keptAs(made, seed);
  }
  std::cout << seeds.count << " fusions: " << total.elements << " elements, " << total.compared
            << " compared (" << total.exact << " exactly), " << total.elements - total.compared
            << " excluded\n";
  EXPECT_GE(total.compared * 100, total.elements * 95);
  EXPECT_GE(total.exact * 100, total.elements * 20);
}

}  // namespace heddle::host::testing
