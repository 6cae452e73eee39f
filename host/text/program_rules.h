#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "host/program/program.h"

namespace heddle::host {

// Rules for host programs that must be checked while a program is built, because a finished Program
// would not show the error or its position. The parser and ProgramBuilder
// (host/builder/program_builder.h) share them, so both report an error in the same words. Each
// function returns "" if the rule holds. Otherwise it returns the text of the error, without a
// position. ir/text/declaration_rules.h contains the rules that hold for fusions too.

// The names that a program has declared so far. Each function declares one more name.
class DeclaredNames {
 public:
  std::string addSlot(const std::string& name);
  std::string addKernel(const std::string& name);
  std::string addSizeDefault(const std::string& symbol);

 private:
  std::set<std::string> slots_;
  std::set<std::string> kernels_;
  std::set<std::string> size_defaults_;
};

// Returns the error that `found` is not an input. `found` is a quoted name, such as '%x'.
std::string noInput(std::string_view found);
// Checks that no size in the segment of the kernel is symbolic (`n?`).
std::string kernelSizesViolation(const Kernel& kernel);
// Checks Kernel::candidate.
std::string candidateViolation(const std::string& candidate);
// Checks that no size of a slot is symbolic (`n?`).
std::string slotSizesViolation(const TensorView& type);
// Checks the allocated sizes that the user has given. There must be one size per axis. A scalar
// must have no list.
std::string allocViolation(const Slot& slot);
// Checks that a default is not negative, unless the symbol is the value of an input (`%n`).
std::string defaultSizeViolation(const std::string& symbol, int64_t value);
// Checks whether the program may call one more program.
std::string calleeViolation(const Program& program, const Program& callee);
// Returns the error that two different programs of a file have this name.
std::string twoPrograms(std::string_view name);

// Checks the number of a stream.
std::string streamViolation(int64_t stream);
// Checks the value of `ctas=`, `lane=` or `spare_sms=`.
std::string countViolation(std::string_view key, int64_t count, int64_t most);
// Checks that evaluate may apply the op with this name.
std::string pointwiseViolation(std::string_view op_name);
// Returns the error that a library call has an attribute twice.
std::string repeatedAttribute(std::string_view name);

}  // namespace heddle::host
