#include "host/attention.h"

#include <algorithm>
#include <optional>

#include "host/module.h"
#include "ir/error.h"

namespace heddle::host {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kWidthStep = 8;
constexpr int64_t kMostWidth = 128;
// Earlier ones read keys past the end of a length that is no multiple of 128.
constexpr int64_t kVersionOfBackward = 91600;

std::optional<int64_t> valueOf(const Size& size, const SizeBindings& sizes) {
  std::vector<std::string> symbols;
  size.collectSymbols(symbols);
  for (const std::string& symbol : symbols) {
    if (!sizes.contains(symbol)) return std::nullopt;
  }
  return size.evaluate(lookupIn(sizes));
}

std::string whyNotWidth(const Fusion& fusion, ValueId id, const SizeBindings& sizes) {
  const Size& size = fusion.tensor(id).domain.back().extent;
  const std::optional<int64_t> width = valueOf(size, sizes);
  if (!width) return fmt::format("the width {} is not known", size.str());
  if (*width >= kWidthStep && *width <= kMostWidth && *width % kWidthStep == 0) return {};
  return fmt::format("cuDNN takes widths of {}, {}, ... {}, not {}", kWidthStep, 2 * kWidthStep,
                     kMostWidth, *width);
}

const Size& tokensOf(const Fusion& fusion, ValueId id) {
  const TensorView& tensor = fusion.tensor(id);
  return tensor.domain[tensor.rank() - 2].extent;
}

std::string whyNotSizes(const Fusion& fusion, const Attention& attention,
                        const SizeBindings& sizes) {
  for (ValueId id : {attention.q, attention.v}) {
    std::string why = whyNotWidth(fusion, id, sizes);
    if (!why.empty()) return why;
  }
  const std::optional<int64_t> keys = valueOf(tokensOf(fusion, attention.k), sizes);
  if (keys == 0) return "there are no keys";
  if (!attention.backward) return {};
  const std::optional<int64_t> queries = valueOf(tokensOf(fusion, attention.q), sizes);
  if (queries == 0) return "there are no queries";
  return queries == 1 && keys == 1 ? "cuDNN takes no single query with a single key" : "";
}

}  // namespace

bool isReadable(const TensorDesc& desc, int64_t byte_offset) {
  const int64_t vector = kVectorBytes / sizeOf(desc.dtype);
  if (byte_offset % kVectorBytes != 0) return false;
  for (size_t i = 0; i < desc.rank(); ++i) {
    if (desc.sizes[i] == 1) continue;
    const bool last = i + 1 == desc.rank();
    if (last ? desc.strides[i] != 1 : desc.strides[i] == 0 || desc.strides[i] % vector != 0) {
      return false;
    }
  }
  return true;
}

const CudnnModule* findCudnnModule(std::string& why) {
  void* entry = findModuleEntry("libheddle_cudnn.so", "heddleCudnnModule", why);
  return entry == nullptr ? nullptr : reinterpret_cast<const CudnnModule* (*)()>(entry)();
}

SegmentOptions attentionOptions(DeviceKind kind, SizeBindings sizes) {
  SegmentOptions options;
  if (kind != DeviceKind::Cuda) return options;
  std::string missing;
  const CudnnModule* module = findCudnnModule(missing);
  if (module == nullptr) missing = "no cuDNN: " + missing;
  const int64_t version = module == nullptr ? 0 : module->version();
  options.attention = [missing, version, sizes = std::move(sizes)](const Fusion& fusion,
                                                                   const Attention& attention) {
    if (!missing.empty()) return missing;
    if (attention.backward && version < kVersionOfBackward) {
      return fmt::format("its backward needs cuDNN {}, found {}", kVersionOfBackward, version);
    }
    return whyNotSizes(fusion, attention, sizes);
  };
  return options;
}

std::vector<int64_t> decidingSizes(const Fusion& fusion, const Attention& attention,
                                   const SizeBindings& sizes) {
  std::vector<int64_t> result;
  if (attention.q == kNoValue || attention.v == kNoValue) return result;
  const auto value = [&](const Size& size) { return size.evaluate(lookupIn(sizes)); };
  for (ValueId id : {attention.q, attention.v}) {
    result.push_back(value(fusion.tensor(id).domain.back().extent));
  }
  const int64_t several = attention.backward ? 2 : 1;
  result.push_back(std::min(value(tokensOf(fusion, attention.v)), several));
  if (attention.backward) result.push_back(std::min(value(tokensOf(fusion, attention.q)), several));
  return result;
}

}  // namespace heddle::host
