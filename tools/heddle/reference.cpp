#include "tools/heddle/reference.h"

#include <algorithm>

#include "host/executable.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/graph/size_scalars.h"

namespace heddle::tools {
namespace {

class ReferenceFitter {
 public:
  ReferenceFitter(const std::string& path, const host::Program& program, Inputs& inputs, int ranks)
      : path_(path), program_(program), given_(inputs), ranks_(ranks) {
    reference_.inputs.seed = inputs.seed;
  }

  Reference run() {
    const Source source = readSource(path_);
    HEDDLE_USER_CHECK(std::holds_alternative<Fusion>(source),
                      "--reference {}: it is a host program, expected a fusion", path_);
    reference_.fusion = std::get<Fusion>(source);
    countsFit();
    // The sizes of an input may contain the value of an input that comes after it.
    for (ValueId id : reference_.fusion.inputs()) bindValue(id);
    for (ValueId id : reference_.fusion.inputs()) addInput(id);
    for (const auto& [symbol, size] : reference_.fusion.size_defaults) {
      const auto said =
          given_.sizes.find(symbol);  // the value for a symbol that no input determines
      reference_.inputs.sizes.emplace(symbol, said == given_.sizes.end() ? size : said->second);
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) outputFits(i);
    return std::move(reference_);
  }

 private:
  const host::Slot& slot(host::SlotId id) const { return program_.slots[id]; }

  void countsFit() const {
    const size_t inputs = reference_.fusion.inputs().size();
    HEDDLE_USER_CHECK(inputs == program_.inputs.size(),
                      "--reference {}: it has {} inputs, the program has {}", path_, inputs,
                      program_.inputs.size());
    const size_t outputs = reference_.fusion.outputs().size();
    HEDDLE_USER_CHECK(outputs == program_.outputs.size(),
                      "--reference {}: it has {} outputs, the program has {}", path_, outputs,
                      program_.outputs.size());
  }

  size_t positionOf(const std::string& name) const {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      if (slot(program_.inputs[i]).name == name) return i;
    }
    std::string names;
    for (host::SlotId id : program_.inputs) names += fmt::format(" %{}", slot(id).name);
    userError("--reference {}: the program has no input %{}; it has{}", path_, name, names);
  }

  static std::string typeText(bool is_scalar, const TensorView& type) {
    if (is_scalar) return fmt::format("a scalar {}", name(type.dtype));
    return fmt::format("a tensor {} of {} axes", name(type.dtype), type.rank());
  }

  void typeFits(const Value& wanted, const host::Slot& slot, std::string_view what) const {
    const std::string here = typeText(slot.is_scalar, slot.tensor);
    const std::string there = typeText(wanted.is_scalar, wanted.tensor);
    HEDDLE_USER_CHECK(here == there, "--reference {}: {} %{} is {} there and {} in the program",
                      path_, what, wanted.name, there, here);
  }

  // If the value of an input may decide sizes, sets its symbol (`%n`) to the value that the run of
  // the program uses.
  void bindValue(ValueId id) {
    const Value& value = reference_.fusion.value(id);
    if (!mayDecideSizes(value.tensor)) return;
    const size_t position = positionOf(value.name);
    const host::Slot& input = slot(program_.inputs[position]);
    typeFits(value, input, "input");
    const HostTensor& whole = given_.tensors[position];
    Scalar number = given_.scalars[position];
    if (!value.is_scalar) {
      number = whole.data ? whole.at(0)
                          : randomTensor(input.tensor.dtype, {}, given_.seed, input.name).at(0);
    }
    reference_.inputs.sizes.emplace(scalarSymbol(value.name), toInt(number));
  }

  void addInput(ValueId id) {
    const Value& value = reference_.fusion.value(id);
    const size_t position = positionOf(value.name);
    const host::Slot& input = slot(program_.inputs[position]);
    typeFits(value, input, "input");
    Inputs& inputs = reference_.inputs;
    inputs.scalars.push_back(given_.scalars[position]);
    inputs.tensors.emplace_back();
    if (value.is_scalar) return;
    HostTensor& whole = given_.tensors[position];
    if (!whole.data) {
      const TensorDesc desc = host::inputDesc(program_, position, given_.sizes, 0, ranks_);
      whole.dtype = desc.dtype;
      whole.sizes = desc.global;
    }
    for (size_t axis = 0; axis < whole.sizes.size(); ++axis) {
      bind(value, axis, whole.sizes[axis]);
    }
    inputs.tensors.back() = whole;
  }

  // If the extent of the axis is a symbol without a value, sets the symbol to `got`, the size of
  // this axis in the program. Throws UserError if the extent then is not `got`.
  void bind(const Value& value, size_t axis, int64_t got) {
    const Size& extent = value.tensor.domain[axis].extent;
    SizeBindings& sizes = reference_.inputs.sizes;
    if (extent.kind() == Size::Kind::Symbol) sizes.emplace(extent.symbolName(), got);
    const int64_t expected = extent.evaluate(lookupIn(sizes));
    HEDDLE_USER_CHECK(got == expected,
                      "--reference {}: axis {} of input %{} is {} = {} there and {} in the program",
                      path_, axis, value.name, extent.str(), expected, got);
  }

  void outputFits(size_t position) const {
    const host::Slot& output = slot(program_.outputs[position]);
    const Value& value = reference_.fusion.value(reference_.fusion.outputs()[position]);
    typeFits(value, output, "output");
    if (value.is_scalar) return;
    const TensorDesc desc = host::outputDesc(program_, position, given_.sizes, 0, ranks_);
    std::vector<int64_t> sizes;
    for (const Size& size : value.tensor.sizes()) {
      sizes.push_back(size.evaluate(lookupIn(reference_.inputs.sizes)));
    }
    HEDDLE_USER_CHECK(sizes == desc.global,
                      "--reference {}: output %{} has the sizes {} there and {} in the program",
                      path_, value.name, str(sizes), str(desc.global));
  }

  const std::string& path_;
  const host::Program& program_;
  Inputs& given_;
  const int ranks_;
  Reference reference_;
};

}  // namespace

Reference readReference(const std::string& path, const host::Program& program, Inputs& inputs,
                        int ranks) {
  return ReferenceFitter(path, program, inputs, ranks).run();
}

}  // namespace heddle::tools
