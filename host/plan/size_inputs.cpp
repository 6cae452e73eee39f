#include "host/plan/size_inputs.h"

#include "ir/base/check.h"
#include "ir/graph/size_scalars.h"
#include "ir/types/host_tensor.h"

namespace heddle::host {

SizeInputs::SizeInputs(const Fusion& fusion) {
  const std::set<std::string> symbols = heddle::scalarSymbols(fusion);
  for (size_t i = 0; i < fusion.inputs().size(); ++i) {
    const Value& value = fusion.value(fusion.inputs()[i]);
    if (!symbols.contains(scalarSymbol(value.name))) continue;
    inputs_.push_back({i, value.name, value.tensor.dtype, value.is_scalar, value.default_value});
  }
}

SizeInputs::SizeInputs(const Program& program) {
  const std::set<std::string> symbols = scalarSymbolsOf(program);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Slot& slot = program.slots.at(program.inputs[i]);
    if (!symbols.contains(scalarSymbol(slot.name))) continue;
    inputs_.push_back({i, slot.name, slot.tensor.dtype, slot.is_scalar, slot.default_value});
  }
}

int64_t SizeInputs::value(size_t i, const std::vector<Argument>& arguments) const {
  const Input& input = inputs_[i];
  if (input.position >= arguments.size()) {
    HEDDLE_USER_CHECK(input.default_value,
                      "input {} (%{}) decides a size, but the run has {} input(s)", input.position,
                      input.name, arguments.size());
    return toInt(*input.default_value);
  }
  const Argument& argument = arguments[input.position];
  if (const auto* tensor = std::get_if<Tensor>(&argument)) {
    if (input.is_scalar || tensor->desc.rank() != 0 || tensor->data == nullptr) return 0;
    HEDDLE_USER_CHECK(tensor->in_host_memory,
                      "input {} (%{}) decides a size, so it must be in host memory", input.position,
                      input.name);
    return toInt(loadElement(tensor->data, input.dtype, 0));
  }
  if (!input.is_scalar) return 0;
  const auto* value = std::get_if<int64_t>(&std::get<Scalar>(argument));
  HEDDLE_USER_CHECK_CODE(Type, value != nullptr,
                         "input {} (%{}) decides a size, so it must be an integer, got {}",
                         input.position, input.name, toDouble(std::get<Scalar>(argument)));
  HEDDLE_USER_CHECK_CODE(
      Type, roundTo(input.dtype, *value) == Scalar(*value),
      "input {} (%{}) decides a size, but its value {} is outside the range of {}", input.position,
      input.name, *value, heddle::name(input.dtype));
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
