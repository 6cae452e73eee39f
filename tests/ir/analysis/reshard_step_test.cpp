#include "ir/analysis/reshard_step.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace heddle::reshard_step_test {
namespace {

TEST(ReshardStep, EachKindIsRecognized) {
  Meshes meshes(1);
  meshes.front().axes = {{MeshAxis::Y, 2}, {MeshAxis::X, 2}};
  auto state = [](std::vector<std::vector<MeshAxis>> axes, std::vector<Sharding::Partial> partial) {
    Sharding sharding;
    sharding.axes = std::move(axes);
    sharding.partial = std::move(partial);
    return std::optional(sharding);
  };
  using enum MeshAxis;
  TensorView tensor;
  tensor.domain = {{Size::symbol("t")}, {Size(8)}};
  auto whole = state({{}, {}}, {});
  auto kindOf = [&](const auto& from, const auto& to) {
    return stepBetween(from, to, tensor, meshes).kind;
  };
  EXPECT_EQ(kindOf(whole, std::optional<Sharding>()), ReshardStep::Kind::Same);
  EXPECT_EQ(kindOf(whole, state({{X}, {Y}}, {})), ReshardStep::Kind::Slice);
  EXPECT_EQ(kindOf(state({{Y, X}, {}}, {}), state({{Y}, {}}, {})), ReshardStep::Kind::Gather);
  EXPECT_EQ(kindOf(state({{Y, X}, {}}, {}), state({{X}, {}}, {})), ReshardStep::Kind::Compound);
  EXPECT_EQ(kindOf(state({{X}, {}}, {}), state({{}, {X}}, {})), ReshardStep::Kind::AllToAll);
  // Axis 0 has t elements, so its blocks may be uneven. The blocks of axis 1 (8 elements) are even.
  EXPECT_EQ(kindOf(state({{Y, X}, {}}, {}), whole), ReshardStep::Kind::Compound);
  EXPECT_EQ(kindOf(state({{}, {Y, X}}, {}), whole), ReshardStep::Kind::Gather);
  auto partial = state({{Y}, {}}, {{X, ReduceOp::Max}});
  EXPECT_EQ(kindOf(partial, state({{Y}, {}}, {})), ReshardStep::Kind::AllReduce);
  EXPECT_EQ(kindOf(partial, state({{Y}, {X}}, {})), ReshardStep::Kind::ReduceScatter);
  EXPECT_EQ(stepBetween(partial, state({{Y, X}, {}}, {}), tensor, meshes),
            (ReshardStep{
                ReshardStep::Kind::ReduceScatter, 0, {X}, ReduceOp::Max, -1, -1, meshes.front()}));
}

}  // namespace
}  // namespace heddle::reshard_step_test
