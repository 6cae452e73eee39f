// Runs every CUDA candidate of every family on the host, and compares the results with the
// reference evaluator.
#include <gtest/gtest.h>

#include "tests/codegen/candidate_cases.h"
#include "tests/codegen/simt/simt_kernels.h"

namespace heddle::codegen::candidates_simt_test {
namespace {

using testing::Buffer;
using testing::CandidateCase;
using testing::candidateCases;
using testing::CandidateTensors;

TEST(CandidatesSimt, EveryCandidateGivesTheRightNumbers) {
  std::deque<CandidateTensors> tensors;
  testing::SimtKernels kernels;
  std::vector<std::pair<size_t, std::string>> added;  // per kernel: its case and its parameters
  for (const CandidateCase& each : candidateCases()) {
    CandidateTensors& own = tensors.emplace_back(each);
    for (const Candidate& candidate : own.candidatesFor(Target::Cuda)) {
      kernels.add(own.fusion, CandidateTensors::pointersTo(own.inputs),
                  CandidateTensors::pointersTo(own.outputs), {}, &candidate.choice);
      added.emplace_back(tensors.size() - 1, each.text + candidate.plan.candidate);
    }
  }
  kernels.compile();
  for (size_t i = 0; i < added.size(); ++i) {
    CandidateTensors& own = tensors[added[i].first];
    for (Buffer& output : own.outputs) std::fill(output.bytes.begin(), output.bytes.end(), 7);
    EXPECT_EQ(kernels.run(i, i), "") << added[i].second;
    EXPECT_EQ(own.difference(), "") << added[i].second;
  }
}

}  // namespace
}  // namespace heddle::codegen::candidates_simt_test
