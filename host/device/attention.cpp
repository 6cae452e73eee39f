#include "host/device/attention.h"

#include <algorithm>
#include <optional>

#include "host/device/load_module.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Limits of cuDNN (host/device/attention.h). Versions have the form that cudnnGetVersion() returns.
constexpr int64_t kVectorBytes = 16;
constexpr int64_t kWidthStep = 8;
constexpr int64_t kMostWidth = 128;
constexpr int64_t kKeyTile = 128;
constexpr int64_t kVersionOfBackward = 91400;      // the first version that was tested
constexpr int64_t kVersionOfPartialTiles = 91501;  // the first that reads no memory after the keys

// Returns the value of a size, or nullopt if `sizes` lacks one of its symbols.
std::optional<int64_t> valueOf(const Size& size, const SizeBindings& sizes) {
  std::vector<std::string> symbols;
  size.collectSymbols(symbols);
  for (const std::string& symbol : symbols) {
    if (!sizes.contains(symbol)) return std::nullopt;
  }
  return size.evaluate(lookupIn(sizes));
}

std::string whyNotWidth(int64_t width) {
  if (width >= kWidthStep && width <= kMostWidth && width % kWidthStep == 0) return {};
  return fmt::format("cuDNN supports widths of {}, {}, ... {}, found {}", kWidthStep,
                     2 * kWidthStep, kMostWidth, width);
}

const Size& widthOf(const Fusion& fusion, ValueId id) {
  return fusion.tensor(id).domain.back().extent;
}

const Size& tokensOf(const Fusion& fusion, ValueId id) {
  const TensorView& tensor = fusion.tensor(id);
  return tensor.domain[tensor.rank() - 2].extent;
}

// Returns "" if heddle uses the backward pass of this version of cuDNN, otherwise the reason why it
// does not.
std::string whyNotVersion(int64_t version) {
  if (version >= kVersionOfBackward) return {};
  return fmt::format("the backward needs cuDNN {}, found {}", cudnnVersionText(kVersionOfBackward),
                     cudnnVersionText(version));
}

// Returns "" if the sizes of the attention allow a cuDNN call, otherwise the reason why they do
// not. Ignores sizes with a symbol for which `sizes` has no value.
std::string whyNotSizes(const Fusion& fusion, const Attention& attention, const SizeBindings& sizes,
                        int64_t version) {
  for (ValueId id : {attention.q, attention.v}) {
    const std::optional<int64_t> width = valueOf(widthOf(fusion, id), sizes);
    std::string why = width ? whyNotWidth(*width) : "";
    if (!why.empty()) return why;
  }
  const std::optional<int64_t> keys = valueOf(tokensOf(fusion, attention.k), sizes);
  if (keys == 0) return "there are no keys";
  const std::optional<int64_t> queries = valueOf(tokensOf(fusion, attention.q), sizes);
  if (!attention.backward || !keys || !queries) return {};
  return whyNotTokens(attention.causal, *queries, *keys, version);
}

// Returns "" if `sizes` determines all sizes that must be known for a cuDNN call. Otherwise returns
// a message that names the first unknown size.
std::string missingSize(const Fusion& fusion, const Attention& attention,
                        const SizeBindings& sizes) {
  for (ValueId id : {attention.q, attention.v}) {
    const Size& width = widthOf(fusion, id);
    if (!valueOf(width, sizes)) return fmt::format("the width {} is not known", width.str());
  }
  for (ValueId id : {attention.q, attention.k}) {
    const Size& tokens = tokensOf(fusion, id);
    if (attention.backward && !valueOf(tokens, sizes)) {
      return fmt::format("the number of tokens {} is not known", tokens.str());
    }
  }
  return {};
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

bool areReadableLogSums(const TensorDesc& desc, int64_t byte_offset) {
  if (byte_offset % kVectorBytes != 0) return false;
  int64_t dense = 1;  // the stride that the axis has in dense memory
  for (size_t i = desc.rank(); i-- > 0;) {
    if (desc.sizes[i] != 1 && desc.strides[i] != dense) return false;
    dense *= desc.sizes[i];
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
  options.attention = [missing, version](const Fusion& fusion, const Attention& attention) {
    if (!missing.empty()) return missing;
    const std::string why = attention.backward ? whyNotVersion(version) : "";
    return why.empty() ? whyNotSizes(fusion, attention, {}, version) : why;
  };
  options.attention_for_sizes = [version, sizes = std::move(sizes)](const Fusion& fusion,
                                                                    const Attention& attention) {
    const std::string why = missingSize(fusion, attention, sizes);
    return why.empty() ? whyNotSizes(fusion, attention, sizes, version) : why;
  };
  return options;
}

bool isAttentionQuestion(const std::string& question) {
  return question.rfind("attention", 0) == 0;
}

std::string cudnnVersionText(int64_t version) {
  const int64_t major = version < 90000 ? 1000 : 10000;  // the factor changed with version 9
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

std::string whyNotTokens(bool causal, int64_t queries, int64_t keys, int64_t cudnn_version) {
  const std::string why = whyNotVersion(cudnn_version);
  if (!why.empty()) return why;
  if (queries == 0) return "there are no queries";
  if (keys == 0) return "there are no keys";
  if (queries == 1) return "cuDNN's backward returns wrong results for a single query";
  if (keys % kKeyTile == 0) return {};
  if (!causal || queries > keys) {
    return fmt::format(
        "cuDNN's backward needs a multiple of {} keys, found {}; other numbers need a causal mask "
        "and no more queries than keys",
        kKeyTile, keys);
  }
  if (cudnn_version >= kVersionOfPartialTiles) return {};
  return fmt::format(
      "before cuDNN {} the backward needs a multiple of {} keys, found {} keys and cuDNN {}",
      cudnnVersionText(kVersionOfPartialTiles), kKeyTile, keys, cudnnVersionText(cudnn_version));
}

std::vector<int64_t> decidingSizes(const Fusion& fusion, const Attention& attention,
                                   const SizeBindings& sizes) {
  std::vector<int64_t> result;
  if (attention.q == kNoValue || attention.v == kNoValue) return result;
  const auto value = [&](const Size& size) { return size.evaluate(lookupIn(sizes)); };
  // The result contains only what the conditions of whyNotSizes() need, for example whether the
  // number of keys is a multiple of kKeyTile. Most new sizes therefore do not change it.
  for (ValueId id : {attention.q, attention.v}) {
    result.push_back(whyNotWidth(value(widthOf(fusion, id))).empty() ? 1 : 0);
  }
  const int64_t keys = value(tokensOf(fusion, attention.k));
  result.push_back(std::min<int64_t>(keys, 1));
  if (!attention.backward) return result;
  const int64_t queries = value(tokensOf(fusion, attention.q));
  result.push_back(std::min<int64_t>(queries, 2));
  result.push_back(keys % kKeyTile == 0 ? 1 : 0);
  result.push_back(queries <= keys ? 1 : 0);
  return result;
}

}  // namespace heddle::host
