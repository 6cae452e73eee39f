#include "host/plan/size_inputs.h"

#include "host/program/visit.h"
#include "ir/base/check.h"
#include "ir/graph/size_scalars.h"
#include "ir/types/host_tensor.h"

namespace heddle::host {
namespace {

// The symbols of the inputs that occur in sizes, by the kind of the size.
struct DecidedSizes {
  std::set<std::string> extents;  // of tensors, and of their allocations
  std::set<std::string> offsets;  // attributes of ops and of instructions, such as starts of slices

  // Returns what the input decides. An input that occurs only in guards counts as a size.
  const char* by(const std::string& symbol) const {
    return offsets.contains(symbol) && !extents.contains(symbol) ? "an offset" : "a size";
  }
};

DecidedSizes decidedSizes(const Fusion& fusion) {
  DecidedSizes decided;
  for (const Value& value : fusion.values()) {
    for (const IterDomain& axis : value.tensor.domain) {
      addScalarSymbols(axis.extent, decided.extents);
    }
  }
  for (const Expression& expr : fusion.exprs()) {
    for (const auto& [name, attr] : expr.attrs) {
      // Only attributes of the type std::vector<Size> contain sizes.
      const auto* sizes = std::get_if<std::vector<Size>>(&attr);
      for (size_t i = 0; sizes != nullptr && i < sizes->size(); ++i) {
        addScalarSymbols((*sizes)[i], decided.offsets);
      }
    }
  }
  return decided;
}

DecidedSizes decidedSizes(const Program& program) {
  DecidedSizes decided;
  for (const Slot& slot : program.slots) {
    for (const IterDomain& axis : slot.tensor.domain) {
      addScalarSymbols(axis.extent, decided.extents);
    }
    for (const Size& size : slot.alloc) addScalarSymbols(size, decided.extents);
  }
  for (const Kernel& kernel : program.kernels) {
    const DecidedSizes inside = decidedSizes(kernel.segment);
    decided.extents.insert(inside.extents.begin(), inside.extents.end());
    decided.offsets.insert(inside.offsets.begin(), inside.offsets.end());
  }
  forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
    for (const Size& size : sizesOf(x.op)) addScalarSymbols(size, decided.offsets);
  });
  return decided;
}

}  // namespace

SizeInputs::SizeInputs(const Fusion& fusion) {
  const std::set<std::string> symbols = heddle::scalarSymbols(fusion);
  if (symbols.empty()) return;
  const DecidedSizes decided = decidedSizes(fusion);
  for (size_t i = 0; i < fusion.inputs().size(); ++i) {
    const Value& value = fusion.value(fusion.inputs()[i]);
    const std::string symbol = scalarSymbol(value.name);
    if (!symbols.contains(symbol)) continue;
    inputs_.push_back({i, value.name, value.tensor.dtype, value.is_scalar, value.default_value,
                       decided.by(symbol)});
  }
}

SizeInputs::SizeInputs(const Program& program) {
  const std::set<std::string> symbols = scalarSymbolsOf(program);
  if (symbols.empty()) return;
  const DecidedSizes decided = decidedSizes(program);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Slot& slot = program.slots.at(program.inputs[i]);
    const std::string symbol = scalarSymbol(slot.name);
    if (!symbols.contains(symbol)) continue;
    inputs_.push_back(
        {i, slot.name, slot.tensor.dtype, slot.is_scalar, slot.default_value, decided.by(symbol)});
  }
}

int64_t SizeInputs::value(size_t i, const std::vector<Argument>& arguments) const {
  const Input& input = inputs_[i];
  if (input.position < arguments.size()) return valueOf(input, arguments[input.position]);
  HEDDLE_USER_CHECK(input.default_value, "input {} (%{}) decides {}, but the run has {} input(s)",
                    input.position, input.name, input.decides, arguments.size());
  return toInt(*input.default_value);
}

int64_t SizeInputs::valueOf(const Input& input, const Argument& argument) {
  if (const auto* tensor = std::get_if<Tensor>(&argument)) {
    if (input.is_scalar || tensor->desc.rank() != 0 || tensor->data == nullptr) return 0;
    HEDDLE_USER_CHECK(tensor->in_host_memory,
                      "input {} (%{}) decides {}, so it must be in host memory", input.position,
                      input.name, input.decides);
    return toInt(loadElement(tensor->data, input.dtype, 0));
  }
  if (!input.is_scalar) return 0;
  const auto* value = std::get_if<int64_t>(&std::get<Scalar>(argument));
  HEDDLE_USER_CHECK_CODE(
      Type, value != nullptr, "input {} (%{}) decides {}, so it must be an integer, got {}",
      input.position, input.name, input.decides, toDouble(std::get<Scalar>(argument)));
  HEDDLE_USER_CHECK_CODE(Type, roundTo(input.dtype, *value) == Scalar(*value),
                         "input {} (%{}) decides {}, but its value {} is outside the range of {}",
                         input.position, input.name, input.decides, *value,
                         heddle::name(input.dtype));
  return *value;
}

std::vector<LateRange> SizeInputs::ranges(const std::vector<Argument>& arguments,
                                          const std::map<int32_t, LateRange>& late) const {
  std::vector<LateRange> ranges;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto found = late.find(static_cast<int32_t>(inputs_[i].position));
    const int64_t now = value(i, arguments);
    ranges.push_back(found == late.end() ? LateRange{now, now} : found->second);
  }
  return ranges;
}

bool SizeInputs::areWithin(const std::vector<LateRange>& ranges,
                           const std::vector<Argument>& arguments) const {
  if (ranges.size() != inputs_.size()) return false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const int64_t now = value(i, arguments);
    if (now < ranges[i].least || now > ranges[i].most) return false;
  }
  return true;
}

void SizeInputs::checkWithin(const std::vector<LateRange>& ranges,
                             const std::vector<Argument>& arguments) const {
  HEDDLE_CHECK(ranges.size() == inputs_.size(), "{} ranges for {} inputs", ranges.size(),
               inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    checkRange(inputs_[i], ranges[i], value(i, arguments));
  }
}

void SizeInputs::checkWithin(const std::vector<LateRange>& ranges, size_t position,
                             const Argument& argument) const {
  HEDDLE_CHECK(ranges.size() == inputs_.size(), "{} ranges for {} inputs", ranges.size(),
               inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].position != position) continue;
    checkRange(inputs_[i], ranges[i], valueOf(inputs_[i], argument));
  }
}

void SizeInputs::checkRange(const Input& input, const LateRange& range, int64_t value) {
  if (value >= range.least && value <= range.most) return;
  const std::string expected = range.least == range.most
                                   ? fmt::format("the value {}", range.least)
                                   : fmt::format("the values {} to {}", range.least, range.most);
  userError("input {} (%{}) decides {}, and the run was prepared for {}, got {}", input.position,
            input.name, input.decides, expected, value);
}

void SizeInputs::bind(const std::vector<Argument>& arguments, SizeBindings& sizes) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    sizes.insert_or_assign(scalarSymbol(inputs_[i].name), value(i, arguments));
  }
}

void SizeInputs::addSources(SizeSources& sources) const {
  for (const Input& input : inputs_) {
    sources.insert_or_assign(scalarSymbol(input.name),
                             fmt::format("input {} (%{})", input.position, input.name));
  }
}

std::set<std::string> SizeInputs::symbols() const {
  std::set<std::string> symbols;
  for (const Input& input : inputs_) symbols.insert(scalarSymbol(input.name));
  return symbols;
}

}  // namespace heddle::host
