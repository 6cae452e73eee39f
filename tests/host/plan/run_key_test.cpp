// Tests that every property of a tensor on which a plan depends is part of the key of a run.
#include "host/plan/run_key.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace heddle::host::run_key_test {
namespace {

alignas(16) std::byte memory[64];

const std::vector<Tensor> kNone;
const std::vector<size_t> kNotDonated;

Tensor tensorOf(std::vector<int64_t> sizes) {
  return {memory, denseDesc(DType::F32, std::move(sizes)), nullptr};
}

// Expects that the change gives a key that differs from that of the unchanged arguments.
void expectAnotherKey(
    const std::function<void(std::vector<Argument>&, std::vector<Tensor>&)>& change,
    const char* what) {
  std::vector<Argument> inputs = {tensorOf({2, 3}), Scalar(int64_t{4}), tensorOf({3})};
  std::vector<Tensor> preallocated = {tensorOf({2, 3}), Tensor()};
  const std::vector<size_t> donated;
  const RunTensors tensors{inputs, preallocated, donated};
  const RunKey key(tensors);
  EXPECT_TRUE(key.matches(tensors));
  change(inputs, preallocated);
  EXPECT_FALSE(key.matches(tensors)) << what;
  EXPECT_TRUE(RunKey(tensors).matches(tensors)) << what;
}

TEST(RunKey, EveryPropertyOfATensorCounts) {
  const std::pair<const char*, std::function<void(Tensor&)>> kChanges[] = {
      {"dtype", [](Tensor& t) { t.desc.dtype = DType::I32; }},
      {"sizes", [](Tensor& t) { t.desc.sizes[0] += 1; }},
      {"strides", [](Tensor& t) { t.desc.strides[0] += 1; }},
      {"alloc", [](Tensor& t) { t.desc.alloc[0] += 1; }},
      {"global", [](Tensor& t) { t.desc.global[0] += 1; }},
      {"offset", [](Tensor& t) { t.desc.offset[0] += 1; }},
      {"held", [](Tensor& t) { t.desc.held = false; }},
      {"empty list", [](Tensor& t) { t.desc.global.clear(); }},
      {"longer list", [](Tensor& t) { t.desc.offset.push_back(0); }},
      {"alignment", [](Tensor& t) { t.data = memory + 4; }},
      {"host memory", [](Tensor& t) { t.in_host_memory = true; }}};
  for (const auto& each : kChanges) {
    const char* const what = each.first;
    const std::function<void(Tensor&)>& change = each.second;
    expectAnotherKey([&](auto& inputs, auto&) { change(std::get<Tensor>(inputs[0])); }, what);
    expectAnotherKey([&](auto& inputs, auto&) { change(std::get<Tensor>(inputs[2])); }, what);
    expectAnotherKey([&](auto&, auto& preallocated) { change(preallocated[0]); }, what);
  }
}

TEST(RunKey, KindsAndNumbersOfArgumentsCount) {
  expectAnotherKey([](auto& inputs, auto&) { inputs.pop_back(); }, "fewer inputs");
  expectAnotherKey([](auto& inputs, auto&) { inputs.push_back(Scalar(1.0)); }, "more inputs");
  expectAnotherKey([](auto& inputs, auto&) { inputs[1] = tensorOf({}); }, "tensor, not a scalar");
  expectAnotherKey([](auto& inputs, auto&) { inputs[0] = Scalar(1.0); }, "scalar, not a tensor");
  expectAnotherKey([](auto&, auto& preallocated) { preallocated.clear(); }, "no outputs");
  expectAnotherKey([](auto&, auto& preallocated) { preallocated[1] = tensorOf({3}); }, "output 1");
  expectAnotherKey([](auto&, auto& preallocated) { preallocated[0].data = nullptr; }, "output 0");
}

TEST(RunKey, AddressesAndScalarsDoNotCount) {
  std::vector<Argument> inputs = {tensorOf({2, 3}), Scalar(int64_t{4})};
  const std::vector<Argument> others = {tensorOf({2, 3}), Scalar(true)};
  const RunTensors tensors{inputs, kNone, kNotDonated};
  const RunKey key(tensors);
  std::get<Tensor>(inputs[0]).data = memory + 16;
  inputs[1] = Scalar(5.0);
  EXPECT_TRUE(key.matches(tensors));
  EXPECT_EQ(RunKey::hashOf(tensors), RunKey::hashOf({others, kNone, kNotDonated}));
}

TEST(RunKey, DonatedInputsCount) {
  const std::vector<Argument> inputs = {tensorOf({2, 3}), tensorOf({3})};
  const std::vector<size_t> none, first = {0}, second = {1}, both = {0, 1};
  const std::vector<Tensor> preallocated;
  const std::vector<const std::vector<size_t>*> lists = {&none, &first, &second, &both};
  for (const auto* a : lists) {
    const RunKey key({inputs, preallocated, *a});
    for (const auto* b : lists) {
      EXPECT_EQ(key.matches({inputs, preallocated, *b}), a == b);
    }
  }
}

// A list of 5,000 numbers does not fit into a key. It must never match a shorter list.
TEST(RunKey, VeryLongListsMatchNothing) {
  std::vector<Argument> inputs = {tensorOf(std::vector<int64_t>(5000, 1))};
  const RunTensors tensors{inputs, kNone, kNotDonated};
  EXPECT_FALSE(RunKey(tensors).matches(tensors));
}

}  // namespace
}  // namespace heddle::host::run_key_test
