#include "host/device/kernel_choices.h"

#include <algorithm>

#include "codegen/compile/sha256.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Increase this number when the meaning of stored choices changes.
constexpr int kVersion = 1;

// Returns the description of the device. For a GPU, leaves out the prefix with its number, such as
// "cuda:0 ", because equal GPUs share choices.
std::string modelOf(const Device& device) {
  const std::string text = device.description();
  return device.kind() == DeviceKind::Cuda ? text.substr(text.find(' ') + 1) : text;
}

}  // namespace

std::string identityOf(const Device& device) {
  const codegen::KernelCompiler* const compiler = device.compiler();
  return fmt::format("{}\n{}\n{}\n", modelOf(device), device.driver(),
                     compiler == nullptr ? "" : compiler->identity());
}

std::string choiceKey(const std::vector<codegen::Candidate>& all,
                      const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs,
                      const Device& device) {
  std::string text = fmt::format("{}\n{}", kVersion, identityOf(device));
  for (const auto* descs : {&inputs, &outputs}) {
    for (const TensorDesc& desc : *descs) {
      text += fmt::format("{}{}{}\n", name(desc.dtype), str(desc.sizes), str(desc.strides));
    }
  }
  for (const codegen::Candidate& each : all) {
    text += fmt::format("{}\n{}\n", codegen::print(each.choice), each.plan.source.text);
  }
  return codegen::sha256(text);
}

size_t chosenCandidate(const std::vector<codegen::Candidate>& all, const KernelChoices& choices,
                       const std::string& key, const std::string& kernel) {
  const auto found = choices.by_key.find(key);
  for (size_t i = 0; found != choices.by_key.end() && i < all.size(); ++i) {
    if (codegen::print(all[i].choice) == found->second) return i;
  }
  HEDDLE_USER_CHECK(!choices.only,
                    "kernel {} has no choice for these sizes on this device; `heddle tune` makes "
                    "one; its key is {}",
                    kernel, key);
  return 0;
}

std::string algorithmKey(const std::string& question, const Device& device) {
  return codegen::sha256(
      fmt::format("{}\n{}{}{}", kVersion, identityOf(device), kAlgorithm, question));
}

std::optional<std::string> chosenAlgorithm(const std::string& question,
                                           const KernelChoices& choices, const Device& device) {
  const auto isAlgorithm = [](const auto& entry) { return entry.second.starts_with(kAlgorithm); };
  if (std::ranges::none_of(choices.by_key, isAlgorithm)) return std::nullopt;
  const auto found = choices.by_key.find(algorithmKey(question, device));
  if (found != choices.by_key.end() && isAlgorithm(*found)) {
    return found->second.substr(kAlgorithm.size());
  }
  HEDDLE_USER_CHECK(!choices.only,
                    "a library call has no choice on this device; `heddle run --tune=auto "
                    "--export` makes one; the call is: {}",
                    question);
  return std::nullopt;
}

}  // namespace heddle::host
