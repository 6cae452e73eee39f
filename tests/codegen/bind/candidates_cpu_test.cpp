// Runs every candidate of every family on the CPU, and compares the results with the reference
// evaluator.
#include <gtest/gtest.h>

#include "codegen/plan/in_place.h"
#include "tests/codegen/candidate_cases.h"

namespace heddle::codegen::candidates_cpu_test {
namespace {

using testing::Buffer;
using testing::CandidateCase;
using testing::candidateCases;
using testing::CandidateTensors;
using testing::CpuKernels;

// Candidates with the same order of reductions also give the same bits.
TEST(CandidatesCpu, EveryCandidateGivesTheRightNumbers) {
  int same = 0;
  for (const CandidateCase& each : candidateCases()) {
    CandidateTensors tensors(each);
    const std::vector<Candidate> all = tensors.candidatesFor(Target::Cpp);
    testing::BitsByOrder bits(tensors.numbersOf(all, Target::Cpp), Target::Cpp);
    for (size_t i = 0; i < all.size(); ++i) {
      const Candidate& candidate = all[i];
      for (Buffer& output : tensors.outputs) std::fill(output.bytes.begin(), output.bytes.end(), 7);
      const KernelPlan plan = CpuKernels::shared().run(
          tensors.fusion, CandidateTensors::pointersTo(tensors.inputs),
          CandidateTensors::pointersTo(tensors.outputs), {}, &candidate.choice);
      EXPECT_EQ(plan.candidate, candidate.plan.candidate);
      EXPECT_EQ(tensors.difference(), "") << each.text << candidate.plan.candidate;
      EXPECT_TRUE(bits.agree(i, tensors.outputs)) << each.text << candidate.plan.candidate;
    }
    same += bits.compared();
  }
  EXPECT_GE(same, 15);
}

// If one candidate may store an output in an input, every candidate must be able to do so.
TEST(CandidatesCpu, EveryCandidateMayWriteInPlace) {
  int cases = 0;
  for (const CandidateCase& each : candidateCases()) {
    CandidateTensors tensors(each);
    InPlaceRules rules(tensors.fusion);
    if (!each.strides.empty() || !rules.whyNot(0, 0).empty()) continue;
    ++cases;
    for (const Candidate& candidate : tensors.candidatesFor(Target::Cpp)) {
      tensors.inputs[0].fill(3);
      std::vector<Buffer*> outputs = CandidateTensors::pointersTo(tensors.outputs);
      outputs[0] = &tensors.inputs[0];
      CpuKernels::shared().run(tensors.fusion, CandidateTensors::pointersTo(tensors.inputs),
                               outputs, {}, &candidate.choice);
      EXPECT_EQ(CandidateTensors::differenceOf(tensors.inputs[0], tensors.wanted[0]), "")
          << each.text << candidate.plan.candidate;
    }
  }
  EXPECT_GE(cases, 5);  // sums, squares and columns may not write in place
}

}  // namespace
}  // namespace heddle::codegen::candidates_cpu_test
