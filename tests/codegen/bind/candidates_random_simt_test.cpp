// Runs all CUDA candidates of random segments on the host, and compares the results with the
// reference evaluator. If an output may have the memory of an input, a second run stores it there.
#include <gtest/gtest.h>

#include <optional>

#include "codegen/plan/in_place.h"
#include "tests/codegen/random_candidate_case.h"
#include "tests/codegen/simt/simt_kernels.h"

namespace heddle::codegen::candidates_random_simt_test {
namespace {

using testing::Buffer;
using testing::CandidateCase;
using testing::CandidateTensors;

// A kernel that the test runs: one candidate of a segment.
struct Added {
  CandidateTensors& tensors;
  std::string text;
  size_t kernel;
  std::optional<std::pair<size_t, size_t>> in_place;  // (input, output)
};

// Returns the first output that the kernel may store in an input, and this input.
std::optional<std::pair<size_t, size_t>> storedInPlace(CandidateTensors& tensors) {
  InPlaceRules rules(tensors.fusion);
  for (size_t output = 0; output < tensors.outputs.size(); ++output) {
    for (size_t input = 0; input < tensors.inputs.size(); ++input) {
      const bool same_view = tensors.inputs[input].desc == tensors.outputs[output].desc;
      if (same_view && rules.whyNot(input, output).empty()) return std::pair(input, output);
    }
  }
  return std::nullopt;
}

class CandidatesRandomSimt : public ::testing::TestWithParam<unsigned> {};

TEST_P(CandidatesRandomSimt, EveryCandidateGivesTheRightNumbers) {
  constexpr unsigned kCases = 8;
  std::deque<CandidateTensors> tensors;
  testing::SimtKernels kernels;
  std::vector<Added> added;
  for (unsigned i = 0; i < kCases; ++i) {
    const unsigned seed = GetParam() * kCases + i;
    const CandidateCase each = testing::RandomCandidateCase(seed).make();
    CandidateTensors& own = tensors.emplace_back(each);
    const auto in_place = storedInPlace(own);
    for (const Candidate& candidate : own.candidatesFor(Target::Cuda)) {
      const std::string text = fmt::format("seed {}: {}{} {}", seed, each.text, str(each.sizes[0]),
                                           candidate.plan.candidate);
      const auto add = [&](const std::vector<Buffer*>& outputs, bool is_in_place) {
        const size_t kernel = kernels.add(own.fusion, CandidateTensors::pointersTo(own.inputs),
                                          outputs, {}, &candidate.choice);
        added.push_back({own, text, kernel, is_in_place ? in_place : std::nullopt});
      };
      std::vector<Buffer*> outputs = CandidateTensors::pointersTo(own.outputs);
      add(outputs, false);
      if (!in_place) continue;
      outputs[in_place->second] = &own.inputs[in_place->first];
      add(outputs, true);
    }
  }
  kernels.compile();
  for (Added& each : added) {
    for (Buffer& output : each.tensors.outputs) {
      std::fill(output.bytes.begin(), output.bytes.end(), 7);
    }
    std::vector<char> before;
    if (each.in_place) before = each.tensors.inputs[each.in_place->first].bytes;
    EXPECT_EQ(kernels.run(each.kernel, GetParam()), "") << each.text;
    if (each.in_place) {
      Buffer& input = each.tensors.inputs[each.in_place->first];
      each.tensors.outputs[each.in_place->second].bytes.swap(input.bytes);
      input.bytes = before;
    }
    EXPECT_EQ(each.tensors.difference(), "") << each.text << (each.in_place ? " in place" : "");
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CandidatesRandomSimt, ::testing::Range(0u, 2u));

}  // namespace
}  // namespace heddle::codegen::candidates_random_simt_test
