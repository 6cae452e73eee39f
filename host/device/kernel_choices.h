#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/bind/candidates.h"
#include "host/device/device.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// The chosen candidates of kernels. A candidate is one of several ways to compute a kernel
// (codegen/bind/candidates.h). The choices apply only to kernels for which the host program names
// no candidate (Kernel::candidate).
struct KernelChoices {
  std::map<std::string, std::string> by_key;  // maps choiceKey() to the parameters of a candidate
  bool only = false;                          // true: a kernel without a choice is an error
};

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

}  // namespace heddle::host
