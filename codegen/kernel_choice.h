#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::codegen {

// The parameters of a kernel candidate (codegen/bind/candidates.h). A choice that a caller passes
// may name a part of the parameters. The *model* decides the others: the rules by which
// planKernel() (codegen/emit/plan_kernel.h) chooses a kernel for the sizes of a run.
struct KernelChoice {
  std::string family;  // such as "loops" or "rows"; empty: the model decides
  std::vector<std::pair<std::string, int64_t>> parameters;

  std::optional<int64_t> find(std::string_view name) const;
  void set(std::string_view name, int64_t value);
  // Returns whether this choice has the family and all parameters of `asked`.
  bool includes(const KernelChoice& asked) const;
  bool operator==(const KernelChoice&) const = default;
};

// Returns the text form, for example "loops lanes=4 unroll=2".
std::string print(const KernelChoice& choice);
// Parses the text form. Commas may separate the words too. Returns nullopt for any other text.
std::optional<KernelChoice> parseKernelChoice(std::string_view text);

// The functions below accept nullptr, which stands for a choice of the model.

inline bool isFamily(const KernelChoice* choice, std::string_view family) {
  return choice != nullptr && choice->family == family;
}
// Returns the power of two in [1, most] that is nearest below the parameter, or `otherwise` if the
// choice does not name the parameter.
int64_t powerOf(const KernelChoice* choice, std::string_view name, int64_t most, int64_t otherwise);
// Returns the parameter, limited to [1, most], or `otherwise`.
int64_t numberOf(const KernelChoice* choice, std::string_view name, int64_t most,
                 int64_t otherwise);

}  // namespace heddle::codegen
