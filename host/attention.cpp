#include "host/attention.h"

#include <optional>

#include "host/module.h"
#include "ir/error.h"

namespace heddle::host {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kWidthStep = 8;
constexpr int64_t kMostWidth = 128;

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

std::string whyNotSizes(const Fusion& fusion, const Attention& attention,
                        const SizeBindings& sizes) {
  for (ValueId id : {attention.q, attention.v}) {
    std::string why = whyNotWidth(fusion, id, sizes);
    if (!why.empty()) return why;
  }
  const TensorView& k = fusion.tensor(attention.k);
  return valueOf(k.domain[k.rank() - 2].extent, sizes) == 0 ? "there are no keys" : "";
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
  if (findCudnnModule(missing) == nullptr) missing = "no cuDNN: " + missing;
  options.attention = [missing, sizes = std::move(sizes)](const Fusion& fusion,
                                                          const Attention& attention) {
    if (!missing.empty()) return missing;
    return whyNotSizes(fusion, attention, sizes);
  };
  return options;
}

}  // namespace heddle::host
