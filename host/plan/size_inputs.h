#pragma once

#include <set>
#include <string>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/program/program.h"
#include "host/unroll/late_scalars.h"
#include "ir/sizes/size_guard.h"

namespace heddle::host {

// The inputs of a fusion or a program whose values decide sizes or offsets: integer scalars, and
// integer tensors without axes in host memory. An offset is any other number in an op or an
// instruction that may depend on inputs, such as the position where a slice begins. A plan is valid
// for one value of each of these inputs, so every cache of plans compares the values. Exception:
// for a late input of a program, which decides only where slices begin
// (host/unroll/late_scalars.h), a plan is valid for a range of values. All code that chooses or
// creates a plan reads the values through this class.
class SizeInputs {
 public:
  SizeInputs() = default;  // the list is empty
  explicit SizeInputs(const Fusion& fusion);
  explicit SizeInputs(const Program& program);

  size_t size() const { return inputs_.size(); }
  // Returns the value of input `i` of this list. A missing argument has its default value. Returns
  // 0 for arguments that bindInputs() rejects later: a scalar in place of a tensor, a tensor in
  // place of a scalar, and a tensor that has axes or no data. Throws UserError in these cases:
  // - The argument is missing, and the input has no default.
  // - The argument is a scalar that is not an integer, or is outside of the range of the input's
  //   type.
  // - The argument is a tensor in device memory.
  int64_t value(size_t i, const std::vector<Argument>& arguments) const;
  // Returns, for each input of this list, the range of values for which a plan for these arguments
  // is valid. `late` has the ranges of the late inputs (Plan::late).
  std::vector<LateRange> ranges(const std::vector<Argument>& arguments,
                                const std::map<int32_t, LateRange>& late) const;
  // Returns whether the values of the arguments are within these ranges. Throws the errors of
  // value().
  bool areWithin(const std::vector<LateRange>& ranges,
                 const std::vector<Argument>& arguments) const;
  // Throws UserError if the value of an argument is not within its range, or for an error of
  // value(). The message names the input, its range and the value.
  void checkWithin(const std::vector<LateRange>& ranges,
                   const std::vector<Argument>& arguments) const;
  // Does the same for the argument at `position` alone. Does nothing if this argument decides
  // neither a size nor an offset.
  void checkWithin(const std::vector<LateRange>& ranges, size_t position,
                   const Argument& argument) const;
  // Stores the value of each input in `sizes`, under the symbol of the input (`%n`).
  void bind(const std::vector<Argument>& arguments, SizeBindings& sizes) const;
  // Adds a text that names the input of each symbol, for error messages.
  void addSources(SizeSources& sources) const;
  // Returns the symbols of the inputs.
  std::set<std::string> symbols() const;

 private:
  struct Input {
    size_t position;  // among the arguments
    std::string name;
    DType dtype;
    bool is_scalar;
    std::optional<Scalar> default_value;
    const char* decides;  // "a size" or "an offset", for error messages
  };
  static int64_t valueOf(const Input& input, const Argument& argument);
  static void checkRange(const Input& input, const LateRange& range, int64_t value);
  std::vector<Input> inputs_;
};

}  // namespace heddle::host
