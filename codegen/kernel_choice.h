#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::codegen {

// The parameters of a kernel candidate (codegen/bind/candidates.h). A choice that a caller passes
// may name only some of the parameters. The *model* is the set of rules by which planKernel()
// (codegen/emit/plan_kernel.h) chooses a kernel for the sizes of a run. If a choice does not name a
// parameter, the model decides it.
struct KernelChoice {
  std::string family;  // such as "loops" or "rows"; empty: the model decides
  std::vector<std::pair<std::string, int64_t>> parameters;

  std::optional<int64_t> find(std::string_view name) const;
  void set(std::string_view name, int64_t value);
  // Returns whether this choice has the family and all parameters of `asked`. If `asked` has no
  // family, only the parameters count.
  bool includes(const KernelChoice& asked) const;
  bool operator==(const KernelChoice&) const = default;
};

// Returns the text form, for example "loops lanes=4 unroll=2".
std::string print(const KernelChoice& choice);
// Parses the text form. The words may also be separated by commas. Returns nullopt for any other
// text, such as an empty one.
std::optional<KernelChoice> parseKernelChoice(std::string_view text);

// The functions below accept nullptr, which stands for a choice that names nothing.

inline bool isFamily(const KernelChoice* choice, std::string_view family) {
  return choice != nullptr && choice->family == family;
}
// Limits the parameter to [1, most] and returns it, rounded down to a power of two. Returns
// `otherwise` if the choice does not name the parameter.
int64_t powerOf(const KernelChoice* choice, std::string_view name, int64_t most, int64_t otherwise);
// Limits the parameter to [1, most] and returns it. Returns `otherwise` if the choice does not name
// the parameter.
int64_t numberOf(const KernelChoice* choice, std::string_view name, int64_t most,
                 int64_t otherwise);

}  // namespace heddle::codegen
