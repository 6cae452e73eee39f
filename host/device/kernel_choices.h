#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/bind/candidates.h"
#include "host/device/device.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// The chosen candidates of kernels. A candidate is one of several ways to compute a kernel
// (codegen/bind/candidates.h). The choices apply only to kernels for which the host program names
// no candidate (Kernel::candidate).
//
// The same map contains the chosen algorithms of library calls (AlgorithmChoices in
// host/device/device.h), as kAlgorithm followed by the choice.
struct KernelChoices {
  // Maps choiceKey() to the parameters of a candidate, and algorithmKey() to an algorithm.
  std::map<std::string, std::string> by_key;
  // true: a kernel without a choice is an error. If the map contains algorithms, so is a library
  // call without one.
  bool only = false;
};
inline constexpr std::string_view kAlgorithm = "algorithm ";

// Returns a text of three lines with the model and the driver of the device, and its compiler.
// Equal GPUs of one machine have equal texts.
std::string identityOf(const Device& device);

// Returns the key under which the choice for a kernel is stored. `all` contains all candidates of
// the kernel. The key is a SHA-256 hash of
// - the parameters and sources of the candidates,
// - the model and the driver of the device, and its compiler,
// - the dtypes, sizes and strides of the inputs and outputs,
// - a version number of the stored choices.
// Each set of sizes has its own choice, because the fastest candidate may depend on the sizes.
std::string choiceKey(const std::vector<codegen::Candidate>& all,
                      const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs,
                      const Device& device);

// Returns the index in `all` of the candidate that `choices` names for `key`. If `choices` names no
// candidate, or one that is not in `all`, the function returns 0. If KernelChoices::only is true,
// it throws UserError instead. `kernel` is a name for messages.
size_t chosenCandidate(const std::vector<codegen::Candidate>& all, const KernelChoices& choices,
                       const std::string& key, const std::string& kernel);

// Returns the key under which the choice for a question about a library call is stored: a SHA-256
// hash of the question, the model and the driver of the device, and its compiler.
std::string algorithmKey(const std::string& question, const Device& device);

// Returns the choice that `choices` contains for a question, or nullopt. Throws UserError if there
// is none although KernelChoices::only requires one.
std::optional<std::string> chosenAlgorithm(const std::string& question,
                                           const KernelChoices& choices, const Device& device);

}  // namespace heddle::host
