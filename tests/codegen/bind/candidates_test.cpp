// Tests the lists of candidates, without running them.
#include "codegen/bind/candidates.h"

#include <gtest/gtest.h>

#include <set>

#include "codegen/bind/segment_planner.h"
#include "codegen/emit/plan_kernel.h"
#include "ir/base/error.h"
#include "tests/codegen/candidate_cases.h"

namespace heddle::codegen::candidates_test {
namespace {

using testing::CandidateCase;
using testing::candidateCases;
using testing::CandidateTensors;

class Candidates : public ::testing::TestWithParam<Target> {};

bool areEqual(const KernelPlan& a, const KernelPlan& b) {
  return a.source == b.source && a.stages == b.stages && a.workspace_bytes == b.workspace_bytes &&
         a.candidate == b.candidate;
}

// Returns the operands to which the launches of a plan point, without the workspace and the
// counters.
std::set<int32_t> operandsOf(const KernelPlan& plan) {
  std::set<int32_t> operands;
  for (const LaunchStage& stage : plan.stages) {
    for (const LaunchStage::PointerPatch& patch : stage.pointers) operands.insert(patch.operand);
    for (const LaunchStage::ScalarPatch& patch : stage.scalars) operands.insert(patch.operand);
  }
  operands.erase(LaunchStage::kWorkspace);
  operands.erase(LaunchStage::kCounters);
  return operands;
}

TEST_P(Candidates, FirstIsThatOfTheModelAndAllDiffer) {
  for (const CandidateCase& each : candidateCases()) {
    CandidateTensors tensors(each);
    const std::vector<TensorDesc> in = CandidateTensors::descsOf(tensors.inputs);
    const std::vector<TensorDesc> out = CandidateTensors::descsOf(tensors.outputs);
    const std::vector<Candidate> all = tensors.candidatesFor(GetParam());
    const KernelPlan plain = planKernel(tensors.fusion, in, out, GetParam(), tensors.alignments());
    ASSERT_TRUE(areEqual(all.at(0).plan, plain)) << each.text;
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(print(all[i].choice), all[i].plan.candidate) << each.text;
      for (size_t j = 0; j < i; ++j) {
        const bool merged =
            all[i].plan.source == all[j].plan.source && all[i].plan.stages == all[j].plan.stages;
        EXPECT_FALSE(merged) << each.text << print(all[i].choice);
      }
    }
  }
}

// planKernel() gives the same kernel again for the parameters of a candidate. A SegmentPlanner,
// which needs no text, binds the same launches.
TEST_P(Candidates, ParametersGiveTheSameKernelAgain) {
  for (const CandidateCase& each : candidateCases()) {
    CandidateTensors tensors(each);
    const std::vector<TensorDesc> in = CandidateTensors::descsOf(tensors.inputs);
    const std::vector<TensorDesc> out = CandidateTensors::descsOf(tensors.outputs);
    const RunSizes run = unshardedSizes(tensors.fusion, in, out);
    const std::vector<int32_t> alignments = tensors.alignments();
    SegmentPlanner planner(tensors.fusion, GetParam());
    const std::vector<Candidate> all = tensors.candidatesFor(GetParam());
    for (const Candidate& candidate : all) {
      std::vector<StageLayout> layouts;
      const KernelPlan again = planKernel(tensors.fusion, in, out, GetParam(), alignments, run,
                                          nullptr, &layouts, &candidate.choice);
      EXPECT_TRUE(areEqual(candidate.plan, again))
          << each.text << candidate.plan.candidate << " became " << again.candidate;
      const SegmentPlanner::Operands operands{in, out, alignments, run, &candidate.choice};
      EXPECT_FALSE(planner.bind(operands).has_value()) << candidate.plan.candidate;
      ASSERT_TRUE(planner.add(operands, again, std::move(layouts)).has_value());
      const auto bound = planner.bind(operands);
      ASSERT_TRUE(bound.has_value()) << candidate.plan.candidate;
      EXPECT_EQ(bound->plan.stages, again.stages) << candidate.plan.candidate;
    }
  }
}

// All candidates of a segment take the same list of operands: the operands of the segment.
TEST_P(Candidates, AllTakeTheSameArguments) {
  for (const CandidateCase& each : candidateCases()) {
    CandidateTensors tensors(each);
    const size_t count = tensors.inputs.size() + tensors.outputs.size();
    std::set<int32_t> every;
    for (size_t i = 0; i < count; ++i) every.insert(static_cast<int32_t>(i));
    for (const Candidate& candidate : tensors.candidatesFor(GetParam())) {
      EXPECT_EQ(operandsOf(candidate.plan), every) << each.text << candidate.plan.candidate;
    }
  }
}

TEST_P(Candidates, EveryFamilyOccurs) {
  std::set<std::string> families;
  for (const CandidateCase& each : candidateCases()) {
    for (const Candidate& one : CandidateTensors(each).candidatesFor(GetParam())) {
      families.insert(one.choice.family);
    }
  }
  std::set<std::string> expected = {"columns", "loops", "parts", "sweeps", "rows", "squares"};
  if (GetParam() == Target::Cuda) expected.insert("divided");
  EXPECT_EQ(families, expected);
}

// Returns the candidates of a softmax in f32.
std::vector<Candidate> candidatesOfSoftmax(int64_t rows, int64_t elements, bool clusters = true) {
  const Fusion fusion =
      parseFusion("heddle 1 fusion f(%x: f32[n, m]) { %y = softmax(%x, axis=1) return %y }", "f");
  const std::vector<TensorDesc> x{denseDesc(DType::F32, {rows, elements})};
  RunSizes run = unshardedSizes(fusion, x, x);
  run.clusters = clusters;
  return candidates(fusion, x, x, Target::Cuda, {}, run);
}
bool hasFamily(const std::vector<Candidate>& all, const char* family) {
  return std::any_of(all.begin(), all.end(),
                     [&](const Candidate& each) { return each.choice.family == family; });
}

TEST(CandidatesOfLongRows, ClustersShareRowsThatTheyCanHold) {
  for (const auto& [rows, elements, blocks] :
       {std::tuple<int64_t, int64_t, int64_t>{4096, 30000, 2}, {1000, 60000, 4}, {50, 200000, 8}}) {
    const std::vector<Candidate> all = candidatesOfSoftmax(rows, elements);
    EXPECT_EQ(all[0].choice.find("cluster"), blocks) << rows << " " << elements;
    EXPECT_EQ(all[0].plan.stages.at(0).grid, rows * blocks);
    EXPECT_EQ(hasFamily(all, "divided"), true) << rows << " " << elements;
  }
  // Shorter rows have one block each. A few rows do not occupy all multiprocessors.
  EXPECT_FALSE(candidatesOfSoftmax(4096, 24000)[0].choice.find("cluster"));
  EXPECT_FALSE(candidatesOfSoftmax(10, 100000)[0].choice.find("cluster"));
}

// If a cluster is the first candidate, one block per row is another one.
TEST(CandidatesOfLongRows, OneBlockPerRowIsAlsoACandidate) {
  for (const int64_t elements : {26000, 52000}) {
    const std::vector<Candidate> all = candidatesOfSoftmax(300, elements);
    ASSERT_TRUE(all[0].choice.find("cluster")) << elements;
    const Candidate alone = candidatesOfSoftmax(300, elements, false)[0];
    EXPECT_TRUE(std::ranges::any_of(all, [&](const Candidate& each) {
      return each.choice == alone.choice || alone.choice.family == "divided";
    })) << elements;
    std::set<int64_t> blocks;
    for (const Candidate& each : all) {
      if (each.choice.family == "rows") blocks.insert(each.choice.find("cluster").value_or(1));
    }
    EXPECT_EQ(blocks, (std::set<int64_t>{1, 2, 4, 8})) << elements;
  }
}

// Such kernels have nothing to exchange. Their rows begin at unaligned addresses.
TEST(CandidatesOfLongRows, PointwiseKernelsHaveNoClusters) {
  for (const char* body : {"%b = broadcast(%w, axes=[0]) %y = mul(%x, %b) return %y",
                           "%f = flip(%x, axes=[1]) %b = broadcast(%w, axes=[0]) %y = add(%f, %b) "
                           "return %y"}) {
    for (const int64_t elements : {40001, 70001, 999999}) {
      const Fusion fusion = parseFusion(
          fmt::format("heddle 1 fusion f(%x: bf16[n, m], %w: bf16[m]) {{ {} }}", body), "f");
      const std::vector<TensorDesc> in{denseDesc(DType::BF16, {300, elements}),
                                       denseDesc(DType::BF16, {elements})};
      const std::vector<TensorDesc> out{in[0]};
      for (const Candidate& each :
           candidates(fusion, in, out, Target::Cuda, {}, unshardedSizes(fusion, in, out))) {
        EXPECT_FALSE(each.choice.find("cluster")) << body << elements;
      }
    }
  }
}

TEST(CandidatesOfLongRows, AGpuWithoutClustersHasNoCandidatesWithThem) {
  for (const int64_t elements : {30000, 60000, 200000}) {
    for (const Candidate& each : candidatesOfSoftmax(1000, elements, false)) {
      EXPECT_FALSE(each.choice.find("cluster")) << elements;
    }
  }
}

TEST(CandidatesOfLongRows, BlocksShareRowsThatNoClusterCanHold) {
  for (const auto& [rows, elements, clusters] :
       {std::tuple<int64_t, int64_t, bool>{128, 1 << 20, true},
        {50, 400000, true},
        {40, 999999, true},
        {1000, 100000, false}}) {
    const std::vector<Candidate> all = candidatesOfSoftmax(rows, elements, clusters);
    EXPECT_EQ(all[0].choice.family, "divided") << rows << " " << elements;
    EXPECT_EQ(all[0].plan.stages.size(), 1u);
    EXPECT_GT(all[0].plan.stages[0].cleared_bytes, 0);
    EXPECT_EQ(all[0].plan.workspace_bytes, all[0].plan.stages[0].cleared_bytes);
    EXPECT_EQ(hasFamily(all, "sweeps"), true) << rows << " " << elements;
  }
}

TEST(CandidatesOfLongRows, BlocksDoNotShareOtherRows) {
  for (const int64_t elements : {3, 1024, 12000}) {
    EXPECT_FALSE(hasFamily(candidatesOfSoftmax(4096, elements), "divided")) << elements;
  }
  // Other candidates come first: the row fits in shared memory, the tensor fits in the cache, or
  // one row does not fit in the cache.
  EXPECT_NE(candidatesOfSoftmax(4096, 25000)[0].choice.family, "divided");
  EXPECT_NE(candidatesOfSoftmax(3, 100000)[0].choice.family, "divided");
  EXPECT_NE(candidatesOfSoftmax(4, 100 << 20)[0].choice.family, "divided");
}

INSTANTIATE_TEST_SUITE_P(Targets, Candidates, ::testing::Values(Target::Cpp, Target::Cuda),
                         [](const auto& info) {
                           return info.param == Target::Cpp ? "Cpp" : "Cuda";
                         });

TEST(CandidatesByName, IndexAndParametersNameACandidate) {
  std::vector<Candidate> all(3);
  all[0].choice = {"loops", {{"lanes", 4}, {"unroll", 2}}};
  all[1].choice = {"loops", {{"lanes", 4}, {"unroll", 1}}};
  all[2].choice = {"rows", {{"threads", 64}}};
  EXPECT_EQ(findCandidate(all, "0", "k0"), 0u);
  EXPECT_EQ(findCandidate(all, "2", "k0"), 2u);
  EXPECT_EQ(findCandidate(all, "loops", "k0"), 0u);
  EXPECT_EQ(findCandidate(all, "loops unroll=1", "k0"), 1u);
  EXPECT_EQ(findCandidate(all, "unroll=1,lanes=4", "k0"), 1u);
  EXPECT_EQ(findCandidate(all, "threads=64", "k0"), 2u);
  const std::string list =
      "; the candidates are\n  0: loops lanes=4 unroll=2\n  1: loops lanes=4 unroll=1\n  2: rows "
      "threads=64";
  for (const std::string asked : {"3", "sweeps", "unroll=4", "loops threads=64", "?", ""}) {
    try {
      findCandidate(all, asked, "k0");
      ADD_FAILURE() << asked;
    } catch (const UserError& error) {
      EXPECT_EQ(error.what(), "kernel k0 has no candidate '" + asked + "' for these sizes" + list);
    }
  }
}

}  // namespace
}  // namespace heddle::codegen::candidates_test
