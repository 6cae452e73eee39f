#include "tools/random/run_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codegen/compile/image_cache.h"
#include "host/executable.h"
#include "host/fusion_executor.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"

namespace heddle::random {
namespace {

TensorDesc descOf(const HostTensor& values, const InputLayout& layout) {
  TensorDesc desc = denseDesc(values.dtype, values.sizes);
  desc.strides = layout.strides;
  return desc;
}

int64_t spanOf(const TensorDesc& desc) {
  if (desc.numel() == 0) return 0;
  int64_t span = 1;
  for (size_t i = 0; i < desc.rank(); ++i) span += (desc.sizes[i] - 1) * desc.strides[i];
  return span;
}

// Copies a tensor to the device with the given layout. The memory before and between the elements
// is filled with 0x7F bytes, so that a kernel that wrongly reads it gets large values or NaN.
host::Tensor place(host::Device& device, const HostTensor& values, const InputLayout& layout) {
  const TensorDesc desc = descOf(values, layout);
  const int64_t element = sizeOf(values.dtype);
  const int64_t count = layout.offset + spanOf(desc);
  HostTensor whole(values.dtype, {count});
  std::memset(whole.data.get(), 0x7F, count * element);
  packInto(whole.data.get() + layout.offset * element, desc, values);
  host::Tensor tensor =
      host::toDevice(device, device.allocator(), whole, denseDesc(values.dtype, {count}));
  if (desc.numel() > 0)
    tensor.data = static_cast<std::byte*>(tensor.data) + layout.offset * element;
  tensor.desc = desc;
  return tensor;
}

}  // namespace

std::vector<HostTensor> runOn(host::Device& device, codegen::ImageCache* images,
                              const FusionCase& fusion_case) {
  const Fusion& fusion = fusion_case.fusion;
  host::FusionExecutor executor(fusion, {&device, nullptr, images});
  std::vector<host::Argument> arguments;
  for (size_t i = 0; i < fusion.inputs().size(); ++i) {
    const ValueId id = fusion.inputs()[i];
    if (fusion.value(id).is_scalar) {
      arguments.emplace_back(fusion_case.inputs.scalars.at(id));
    } else {
      arguments.emplace_back(
          place(device, fusion_case.inputs.tensors.at(id), fusion_case.layouts[i]));
    }
  }
  const host::Outputs outputs = executor.run(arguments);
  outputs.wait();
  std::vector<HostTensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (const auto* tensor = std::get_if<host::Tensor>(&outputs[i])) {
      results.push_back(host::toHost(device, *tensor));
      continue;
    }
    results.emplace_back(fusion.tensor(fusion.outputs()[i]).dtype, std::vector<int64_t>{});
    results.back().set(0, std::get<Scalar>(outputs[i]));
  }
  return results;
}

CaseResult compareAll(const Fusion& fusion, const std::vector<HostTensor>& got,
                      const std::vector<Bounded>& expected) {
  CaseResult result;
  if (got.size() != expected.size()) {
    result.failure = fmt::format("got {} outputs, expected {}", got.size(), expected.size());
    return result;
  }
  for (size_t i = 0; i < got.size(); ++i) {
    const Comparison one = compare(got[i], expected[i]);
    if (one.wrong > 0 && result.failure.empty()) {
      result.failure = fmt::format("%{}: {} of {} elements are wrong, first {}",
                                   fusion.value(fusion.outputs()[i]).name, one.wrong, one.compared,
                                   one.first_wrong);
    }
    result.comparison += one;
  }
  return result;
}

CaseResult checkOn(host::Device& device, codegen::ImageCache* images,
                   const FusionCase& fusion_case) {
  const std::vector<Bounded> expected =
      evaluateBounded(fusion_case.fusion, fusion_case.inputs, fusion_case.sizes);
  try {
    return compareAll(fusion_case.fusion, runOn(device, images, fusion_case), expected);
  } catch (const std::exception& error) {
    CaseResult result;
    result.failure = error.what();
    return result;
  }
}

}  // namespace heddle::random
