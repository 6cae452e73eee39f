// Tests all pairs of shardings of a small tensor, on meshes of one and two axes and between meshes.
// Resharding must not change the values.
#include <gtest/gtest.h>

#include <cstdlib>

#include "host/compile.h"
#include "ir/graph/builder.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"
#include "tests/sanitized.h"

namespace heddle::host::all_reshardings_cpu_test {
namespace {

constexpr auto kX = MeshAxis::X;
constexpr auto kY = MeshAxis::Y;

// How a tensor of two axes uses a mesh axis: not at all, to shard axis 0 or 1, or for partial sums.
enum class Use { Nothing, Axis0, Axis1, Partial };

void use(Sharding& state, MeshAxis axis, Use how, bool first) {
  if (how == Use::Nothing) return;
  if (how == Use::Partial) return state.partial.push_back({axis, ReduceOp::Max});
  std::vector<MeshAxis>& list = state.axes[how == Use::Axis0 ? 0 : 1];
  list.insert(first ? list.begin() : list.end(), axis);
}

// Returns all shardings of a tensor of two axes. If both mesh axes shard one tensor axis, the
// result has both orders of them.
std::vector<Sharding> allStates(const DeviceMesh& mesh, MeshId mesh_id, bool with_partial) {
  std::vector<Use> uses{Use::Nothing, Use::Axis0, Use::Axis1};
  if (with_partial) uses.push_back(Use::Partial);
  std::vector<Sharding> states;
  for (Use of_x : uses) {
    for (Use of_y : mesh.has(kY) ? uses : std::vector<Use>{Use::Nothing}) {
      const bool shared = of_x == of_y && (of_x == Use::Axis0 || of_x == Use::Axis1);
      for (bool first : shared ? std::vector<bool>{false, true} : std::vector<bool>{false}) {
        Sharding state;
        state.mesh = mesh_id;
        state.axes.resize(2);
        use(state, kX, of_x, false);
        use(state, kY, of_y, first);
        states.push_back(std::move(state));
      }
    }
  }
  return states;
}

struct Sizes {
  int64_t rows;
  int64_t columns;
};

std::vector<Size> extentsOf(FusionBuilder& b, const Sizes& sizes, bool constants) {
  if (constants) return {Size(sizes.rows), Size(sizes.columns)};
  b.sizeDefault("r", sizes.rows);
  b.sizeDefault("c", sizes.columns);
  return {Size::symbol("r"), Size::symbol("c")};
}

// Checks the moves from one sharding to each target. If `constants` is true and `from` is not
// partial, the source is the result of an op; otherwise it is an input.
void checkFrom(const Meshes& meshes, int ranks, const Sharding& from,
               const std::vector<Sharding>& targets, const Sizes& sizes, bool constants) {
  FusionBuilder b("reshardings");
  for (const DeviceMesh& mesh : meshes) b.mesh(mesh);
  const ValueId x = b.input("x", DType::F32, extentsOf(b, sizes, constants));
  b.shard(x, from);
  const bool computed = !from.isPartial() && constants;
  const ValueId value = computed ? b.pointwise("neg", {x}) : x;
  if (computed) b.shard(value, from);
  for (const Sharding& target : targets) {
    const ValueId moved = b.set(value);
    b.shard(moved, target);
    b.output(moved);
  }
  const Fusion fusion = std::move(b).build();
  testing::HarnessOptions options;
  options.ranks = ranks;
  options.sizes = testing::defaultSizes(fusion.size_defaults);
  options.cpu.adversarial_seed = 7;
  try {
    const std::vector<HostTensor> got = testing::runProgram(compile(fusion, ranks), options);
    const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(testing::relativeError(got[i], expected[i]), 0)
          << targets[i].str(meshes[targets[i].mesh]) << " of\n"
          << print(fusion);
    }
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what() << "\n" << print(fusion);
  }
}

// The reference evaluator runs the kernels, because the test is about the positions of data.
class AllReshardings : public ::testing::Test {
 protected:
  void SetUp() override { setenv("HEDDLE_CXX", "/nonexistent/compiler", 1); }
  void TearDown() override { unsetenv("HEDDLE_CXX"); }
};

constexpr Sizes kSizes[] = {{5, 3}, {8, 4}, {1, 2}};

TEST_F(AllReshardings, MovesOnAMeshOfOneAxisKeepValues) {
  int number = 0;
  for (int64_t devices : {1, 2, 3}) {
    const DeviceMesh mesh{"m", {{kX, devices}}, {}};
    const std::vector<Sharding> targets = allStates(mesh, MeshId(0), false);
    for (const Sharding& from : allStates(mesh, MeshId(0), true)) {
      for (const Sizes& sizes : kSizes) {
        for (bool constants : {false, true}) {
          if (number++ % heddle::testing::kOneIn != 0) continue;
          checkFrom({mesh}, static_cast<int>(devices), from, targets, sizes, constants);
        }
      }
    }
  }
}

TEST_F(AllReshardings, MovesOnAMeshOfTwoAxesKeepValues) {
  const DeviceMesh mesh{"m", {{kY, 2}, {kX, 2}}, {3, 1, 0, 2}};
  const std::vector<Sharding> targets = allStates(mesh, MeshId(0), false);
  int number = 0;
  for (const Sharding& from : allStates(mesh, MeshId(0), true)) {
    if (number++ % heddle::testing::kOneIn != 0) continue;
    for (const Sizes& sizes : kSizes) {
      checkFrom({mesh}, 4, from, targets, sizes, sizes.rows != 5);
    }
  }
}

// The pairs of meshes are disjoint, overlap, contain each other, or include a mesh of one rank.
TEST_F(AllReshardings, MovesBetweenMeshesKeepValues) {
  const DeviceMesh all{"all", {{kY, 2}, {kX, 2}}, {}};
  const DeviceMesh front{"front", {{kX, 2}}, {0, 1}};
  const DeviceMesh back{"back", {{kX, 2}}, {2, 3}};
  const DeviceMesh middle{"middle", {{kX, 3}}, {1, 2, 3}};
  const DeviceMesh one{"one", {{kX, 1}}, {1}};
  const std::vector<std::pair<DeviceMesh, DeviceMesh>> pairs = {
      {front, back}, {front, middle}, {front, one},  {back, one},   {one, front},
      {one, back},   {all, front},    {middle, all}, {middle, one}, {one, all}};
  int number = 0;
  for (const auto& [a, b] : pairs) {
    const std::vector<Sharding> targets = allStates(b, MeshId(1), false);
    for (const Sharding& from : allStates(a, MeshId(0), true)) {
      if (number++ % heddle::testing::kOneIn != 0) continue;
      checkFrom({a, b}, 4, from, targets, kSizes[0], false);
      checkFrom({a, b}, 4, from, targets, kSizes[1], true);
    }
  }
}

}  // namespace
}  // namespace heddle::host::all_reshardings_cpu_test
