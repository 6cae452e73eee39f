#include "host/text/program_rules.h"

#include <algorithm>

#include "codegen/kernel_choice.h"
#include "host/program/visit.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// The largest number of programs that a program may contain. A program contains itself and a copy
// of each program that it calls, directly or indirectly. Without a limit, a few lines of text could
// expand to very many programs.
constexpr size_t kMaxCallees = 200;
constexpr size_t kMaxDefaults = 10'000;

size_t countPrograms(const Program& program) {
  size_t count = 1;
  for (const Program& callee : program.callees) count += countPrograms(callee);
  return count;
}

}  // namespace

std::string DeclaredNames::addSlot(const std::string& name) {
  return slots_.insert(name).second ? "" : fmt::format("%{} is declared twice", name);
}

std::string DeclaredNames::addKernel(const std::string& name) {
  return kernels_.insert(name).second ? "" : fmt::format("kernel @{} is defined twice", name);
}

std::string DeclaredNames::addSizeDefault(const std::string& symbol) {
  if (!size_defaults_.insert(symbol).second) return fmt::format("size {} has two defaults", symbol);
  if (size_defaults_.size() <= kMaxDefaults) return "";
  return fmt::format("the default of size {} is number {}, and at most {} are allowed", symbol,
                     kMaxDefaults + 1, kMaxDefaults);
}

std::string noInput(std::string_view found) {
  return fmt::format("found {}, expected an input of the program", found);
}

std::string kernelSizesViolation(const Kernel& kernel) {
  if (kernel.segment.symbolic_sizes.empty()) return "";
  return fmt::format("kernel @{} has a size with '?': sizes of a host program are decided",
                     kernel.name);
}

std::string slotSizesViolation(const TensorView& type) {
  const bool is_symbolic =
      std::any_of(type.domain.begin(), type.domain.end(),
                  [](const IterDomain& axis) { return axis.kind == IterKind::Symbolic; });
  return is_symbolic ? "sizes of a host program have no '?'" : "";
}

std::string allocViolation(const Slot& slot) {
  if (slot.is_scalar) return "a scalar has no allocation";
  if (slot.alloc.size() == slot.tensor.rank()) return "";
  return fmt::format("alloc has {} sizes for a tensor of rank {}", slot.alloc.size(),
                     slot.tensor.rank());
}

std::string defaultSizeViolation(const std::string& symbol, int64_t value) {
  return value >= 0 || isScalarSymbol(symbol) ? "" : fmt::format("the size {} is negative", value);
}

std::string candidateViolation(const std::string& candidate) {
  const bool is_index =
      !candidate.empty() && candidate.find_first_not_of("0123456789") == std::string::npos;
  if (is_index || codegen::parseKernelChoice(candidate)) return "";
  return fmt::format(
      "candidate=\"{}\": expected an index, or parameters such as \"loops unroll=2\"", candidate);
}

std::string calleeViolation(const Program& program, const Program& callee) {
  const bool fits = countPrograms(program) + countPrograms(callee) <= kMaxCallees;
  return fits ? "" : fmt::format("calls reach more than {} programs", kMaxCallees);
}

std::string twoPrograms(std::string_view name) {
  return fmt::format("two programs are called {}", name);
}

std::string streamViolation(int64_t stream) {
  if (stream >= 0 && stream <= kMaxStream.number()) return "";
  return fmt::format("stream {} is not in 0 .. {}", stream, kMaxStream);
}

std::string countViolation(std::string_view key, int64_t count, int64_t most) {
  if (count >= 1 && count <= most) return "";
  return fmt::format("{}={} is not in 1 .. {}", key, count, most);
}

std::string pointwiseViolation(std::string_view op_name) {
  const OpDef* op = findOp(op_name);
  if (op != nullptr && op->kind == OpKind::Pointwise) return "";
  return fmt::format("found '{}', expected a pointwise op", op_name);
}

std::string repeatedAttribute(std::string_view name) {
  return fmt::format("found '{}', expected {}= once", name, name);
}

}  // namespace heddle::host
