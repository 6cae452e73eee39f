#pragma once

#include <set>
#include <string>

#include "codegen/compile/image_cache.h"
#include "host/compile.h"
#include "host/executable.h"
#include "host/tensor.h"
#include "tests/goldens/goldens.h"
#include "tests/sanitized.h"

// Runs the cases of tests/goldens/ on a device.
namespace heddle::host::testing {

using heddle::testing::Golden;

// Cases that share an Executable. For `joined` see fusionOf() in goldens.h.
struct GoldenBatch {
  std::vector<const Golden*> cases;
  bool joined = false;
};

// Returns whether all tensors have one shape, except for operands without axes.
inline bool hasOneShape(const Golden& golden) {
  if (golden.outputs.size() != 1) return false;
  const std::vector<int64_t>& sizes = golden.outputs[0].sizes;
  return std::all_of(golden.inputs.begin(), golden.inputs.end(), [&](const HostTensor& input) {
    return input.sizes == sizes || input.sizes.empty();
  });
}

// Returns the key of a case: its op and the dtypes of its operands. Of all cases with the same key
// only one runs. A matrix product needs no compiler, so each one has its own key.
inline std::string kindOf(const Golden& golden) {
  const OpDef* op = findOp(golden.op());
  if (op != nullptr && op->kind == OpKind::Matmul) return golden.text;
  std::string kind = golden.op();
  for (const HostTensor& input : golden.inputs) kind += " " + std::string(name(input.dtype));
  return kind;
}

// Groups cases, because compiling each kernel takes time. Cases whose tensors all have one shape
// form large joined fusions. Of the other cases, one per key runs, and several share a fusion.
inline std::vector<GoldenBatch> batchesOf(const std::vector<Golden>& goldens) {
  constexpr size_t kJoined = 48;
  constexpr size_t kApart = 16;
  std::vector<GoldenBatch> batches;
  std::map<std::vector<int64_t>, GoldenBatch> open;
  std::set<std::string> seen;
  GoldenBatch apart;
  for (const Golden& golden : goldens) {
    if (hasOneShape(golden)) {
      GoldenBatch& batch = open[golden.outputs[0].sizes];
      batch.joined = true;
      batch.cases.push_back(&golden);
      if (batch.cases.size() == kJoined) batches.push_back(std::exchange(batch, {}));
      continue;
    }
    if (!seen.insert(kindOf(golden)).second) continue;
    apart.cases.push_back(&golden);
    if (apart.cases.size() == kApart) batches.push_back(std::exchange(apart, {}));
  }
  if (!apart.cases.empty()) batches.push_back(std::move(apart));
  for (auto& [sizes, batch] : open) {
    if (!batch.cases.empty()) batches.push_back(std::move(batch));
  }
  return batches;
}

inline void expectBatch(Device& device, codegen::ImageCache& images, const GoldenBatch& batch) {
  const Fusion fusion = heddle::testing::fusionOf(batch.cases, batch.joined);
  Executable executable(compile(fusion, 1), {&device, nullptr, &images});
  std::vector<Argument> arguments;
  for (const Golden* golden : batch.cases) {
    for (const HostTensor& input : golden->inputs) {
      arguments.emplace_back(
          toDevice(device, device.allocator(), input, denseDesc(input.dtype, input.sizes)));
    }
  }
  const Outputs outputs = executable.run(arguments);
  outputs.wait();
  size_t at = 0;
  for (const Golden* golden : batch.cases) {
    for (size_t i = 0; i < golden->outputs.size(); ++i, ++at) {
      const HostTensor got = toHost(device, std::get<Tensor>(outputs[at]));
      EXPECT_EQ(heddle::testing::compare(got, *golden, i), "") << golden->text;
    }
  }
}

// Returns the cases to run on a device. Cases of type promotion test mainly the builder, and the
// test of the reference runs all of them. Only every eighth one runs on a device.
inline std::vector<Golden> goldensToRun(const std::string& family) {
  std::vector<Golden> goldens = heddle::testing::readGoldens(family);
  std::erase_if(goldens, [](const Golden& golden) { return golden.reference; });
  if (family != "promotion") return goldens;
  std::vector<Golden> some;
  for (size_t i = 0; i < goldens.size(); i += 8) some.push_back(std::move(goldens[i]));
  return some;
}

// Runs one part of the batches of a family.
inline void expectGoldens(Device& device, const std::string& family, size_t part = 0,
                          size_t parts = 1) {
  codegen::ImageCache images;
  const std::vector<Golden> goldens = goldensToRun(family);
  const std::vector<GoldenBatch> batches = batchesOf(goldens);
  EXPECT_FALSE(batches.empty());
  constexpr size_t step = heddle::testing::kOneIn;
  for (size_t i = part * step; i < batches.size(); i += parts * step) {
    const GoldenBatch& batch = batches[i];
    try {
      expectBatch(device, images, batch);
    } catch (const std::exception& error) {
      ADD_FAILURE() << batch.cases.front()->text << " and " << batch.cases.size() - 1
                    << " more: " << error.what();
    }
  }
}

inline std::string familyName(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace heddle::host::testing
