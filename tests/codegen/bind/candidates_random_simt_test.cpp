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
  std::optional<std::pair<size_t, size_t>> in_place;  // the input, and the output stored in it
};

using Pair = std::pair<size_t, size_t>;  // (input, output)

// Returns all outputs that the kernel may store in an input, with this input.
std::vector<Pair> pairsInPlace(CandidateTensors& tensors) {
  InPlaceRules rules(tensors.fusion);
  std::vector<Pair> pairs;
  for (size_t output = 0; output < tensors.outputs.size(); ++output) {
    for (size_t input = 0; input < tensors.inputs.size(); ++input) {
      const bool same_view = tensors.inputs[input].desc == tensors.outputs[output].desc;
      if (same_view && rules.whyNot(input, output).empty()) pairs.emplace_back(input, output);
    }
  }
  return pairs;
}

class CandidatesRandomSimt : public ::testing::TestWithParam<unsigned> {};

TEST_P(CandidatesRandomSimt, EveryCandidateGivesTheRightNumbers) {
  constexpr unsigned kCases = testing::RandomCandidateCase::kKinds;
  std::deque<CandidateTensors> tensors;
  testing::SimtKernels kernels;
  std::vector<Added> added;
  for (unsigned i = 0; i < kCases; ++i) {
    const unsigned seed = GetParam() * kCases + i;
    const CandidateCase each = testing::RandomCandidateCase(seed).make();
    CandidateTensors& own = tensors.emplace_back(each);
    const std::vector<Pair> pairs = pairsInPlace(own);
    for (const Candidate& candidate : own.candidatesFor(Target::Cuda)) {
      const std::string text = fmt::format("seed {}: {}{} {}", seed, each.text, str(each.sizes[0]),
                                           candidate.plan.candidate);
      const auto add = [&](const std::optional<Pair>& in_place) {
        std::vector<Buffer*> outputs = CandidateTensors::pointersTo(own.outputs);
        if (in_place) outputs[in_place->second] = &own.inputs[in_place->first];
        const size_t kernel = kernels.add(own.fusion, CandidateTensors::pointersTo(own.inputs),
                                          outputs, {}, &candidate.choice);
        added.push_back({own, text, kernel, in_place});
      };
      add(std::nullopt);
      for (const Pair& pair : pairs) add(pair);
    }
  }
  const auto count = [&](auto is_one) { return std::count_if(added.begin(), added.end(), is_one); };
  EXPECT_GE(count([](const Added& each) { return each.in_place.has_value(); }), 3);
  EXPECT_GE(count([](const Added& each) { return each.text.ends_with("sweeps"); }), 1);
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
