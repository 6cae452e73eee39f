// Runs every CUDA candidate of every family on the host, and compares the results with the
// reference evaluator. Candidates with the same order of reductions must also give the same bits.
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
  std::deque<testing::BitsByOrder> bits;
  // Per kernel: its case, the index of the candidate, and its parameters.
  std::vector<std::tuple<size_t, size_t, std::string>> added;
  for (const CandidateCase& each : candidateCases()) {
    CandidateTensors& own = tensors.emplace_back(each);
    const std::vector<Candidate> all = own.candidatesFor(Target::Cuda);
    bits.emplace_back(own.numbersOf(all, Target::Cuda), Target::Cuda);
    for (size_t c = 0; c < all.size(); ++c) {
      kernels.add(own.fusion, CandidateTensors::pointersTo(own.inputs),
                  CandidateTensors::pointersTo(own.outputs), {}, &all[c].choice);
      added.emplace_back(tensors.size() - 1, c, each.text + all[c].plan.candidate);
    }
  }
  kernels.compile();
  for (size_t i = 0; i < added.size(); ++i) {
    const auto& [number, candidate, text] = added[i];
    CandidateTensors& own = tensors[number];
    for (Buffer& output : own.outputs) std::fill(output.bytes.begin(), output.bytes.end(), 7);
    EXPECT_EQ(kernels.run(i, i), "") << text;
    EXPECT_EQ(own.difference(), "") << text;
    EXPECT_TRUE(bits[number].agree(candidate, own.outputs)) << text;
  }
  int same = 0;
  for (const testing::BitsByOrder& each : bits) same += each.compared();
  EXPECT_GE(same, 15);
}

}  // namespace
}  // namespace heddle::codegen::candidates_simt_test
