#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "host/program/program.h"

namespace heddle::host {

// Rules for host programs that must be checked while a program is built, because a finished Program
// would not show the error or its position. The parser and ProgramBuilder
// (host/builder/program_builder.h) share them, so both report an error in the same words. A
// function that checks a rule returns "" if the rule holds. Otherwise it returns the text of the
// error, without a position. noInput(), twoPrograms() and repeatedAttribute() always return an
// error. ir/text/declaration_rules.h contains the rules that hold for fusions too.

// The slots, kernels and size defaults that a program has declared so far. Each function declares
// one more, and checks that its name is new. addSizeDefault() also limits the number of defaults.
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

// Returns the error that `found` stands where the name of an input is expected. `found` is, for
// example, the quoted name of another slot ('%x').
std::string noInput(std::string_view found);
// Checks that no size in the kernel's segment is written `n?`. The `?` says that the size may be 1
// in a run, and that its axes are then broadcast. Only a fusion may contain such a size. heddle
// decides whether it is 1 before it creates a program.
std::string kernelSizesViolation(const Kernel& kernel);
// Checks that `candidate` has the form of Kernel::candidate: an index or a list of parameters. Does
// not check that the kernel has this candidate.
std::string candidateViolation(const std::string& candidate);
// Checks that no size of a slot is written `n?` (see kernelSizesViolation()).
std::string slotSizesViolation(const TensorView& type);
// Checks the list of allocated sizes that the declaration of a slot contains (`alloc=`). A tensor
// needs one allocated size per axis. A scalar must not have this list. Requires that the
// declaration contains a list.
std::string allocViolation(const Slot& slot);
// Checks the default of a size symbol. It must not be negative, unless the symbol stands for the
// value of an input (`%n`).
std::string defaultSizeViolation(const std::string& symbol, int64_t value);
// Checks that the program may also call `callee`. Limits the number of programs that are called
// directly or indirectly, plus `program` itself. A program counts once per path of calls that leads
// to it.
std::string calleeViolation(const Program& program, const Program& callee);
// Returns the error that two different programs of a file have this name.
std::string twoPrograms(std::string_view name);

// Checks that the number of a stream is in 0 .. kMaxStream (host/program/visit.h).
std::string streamViolation(int64_t stream);
// Checks that the value of `ctas=`, `lane=` or `spare_sms=` is in 1 .. `most`.
std::string countViolation(std::string_view key, int64_t count, int64_t most);
// Checks that the instruction `evaluate` may apply this op. Only pointwise ops are allowed.
std::string pointwiseViolation(std::string_view op_name);
// Returns the error that a library call has an attribute twice.
std::string repeatedAttribute(std::string_view name);

}  // namespace heddle::host
