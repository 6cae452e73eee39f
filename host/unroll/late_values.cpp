#include "host/unroll/late_values.h"

#include <fmt/format.h>

#include <set>

#include "ir/base/check.h"
#include "ir/graph/size_scalars.h"

namespace heddle::host {
namespace {

class LateValues {
 public:
  LateValues(const Program& program, const Unrolled& unrolled)
      : program_(program), unrolled_(unrolled), scalars_(scalarSymbolsOf(program)) {}

  std::string text() {
    for (const Buffer& buffer : unrolled_.buffers) {
      // The host reads the value of a tensor that decides sizes or offsets. See addScalar().
      const bool is_read_by_host = scalars_.contains(scalarSymbol(buffer.name));
      if (buffer.origin == Buffer::Origin::Input && !is_read_by_host) {
        line("address", "%" + buffer.name, fmt::format("input {}", buffer.input));
      }
    }
    for (const UnrolledStep& step : unrolled_.steps) {
      for (const auto* views : {&step.inputs, &step.outputs}) {
        for (const View& view : *views) addView(view);
      }
    }
    for (size_t i = 0; i < program_.inputs.size(); ++i) addScalar(i);
    for (size_t i = 0; i < unrolled_.outputs.size(); ++i) addOutput(i);
    return text_;
  }

 private:
  void line(const char* kind, const std::string& name, const std::string& value) {
    text_ += fmt::format("{:<8} {:<20} {}\n", kind, name, value);
  }

  std::string nameOf(int32_t input) const {
    return "%" + program_.slots.at(program_.inputs.at(input)).name;
  }

  // Returns the address of a view, such as "%cache + 12 bytes * %i".
  std::string addressOf(const View& view) const {
    std::string address = "%" + unrolled_.buffers[view.buffer].name;
    if (view.byte_offset > 0) address += fmt::format(" + {} bytes", view.byte_offset);
    for (const View::LateTerm& term : view.late) {
      address += fmt::format(" + {} bytes * {}", term.bytes, nameOf(term.input));
    }
    return address;
  }

  void addView(const View& view) {
    if (view.late.empty()) return;
    const std::string address = addressOf(view);
    if (shown_.insert(address).second) line("address", "view", address);
  }

  // Returns whether an extent or an allocated size of a tensor depends on the scalar.
  bool decidesExtent(const std::string& symbol) const {
    std::set<std::string> found;
    for (const Slot& slot : program_.slots) {
      for (const IterDomain& axis : slot.tensor.domain) addScalarSymbols(axis.extent, found);
      for (const Size& size : slot.alloc) addScalarSymbols(size, found);
    }
    return found.contains(symbol);
  }

  // A plan is valid for one value of each scalar that decides sizes or offsets. Exception: a late
  // scalar (host/unroll/late_scalars.h) decides only where slices begin. The plan is valid for a
  // range of its values. A tensor that decides sizes or offsets counts as a scalar.
  void addScalar(size_t i) {
    const Slot& slot = program_.slots.at(program_.inputs[i]);
    if (!slot.is_scalar && !scalars_.contains(scalarSymbol(slot.name))) return;
    const auto late = unrolled_.late.find(static_cast<int32_t>(i));
    std::string value = fmt::format("input {}", i);
    if (late != unrolled_.late.end()) {
      value += fmt::format(", from {} to {}", late->second.least, late->second.most);
    } else if (scalars_.contains(scalarSymbol(slot.name))) {
      value += decidesExtent(scalarSymbol(slot.name))
                   ? ", decides a size: a new value needs a new plan"
                   : ", decides an offset or an index: a new value needs a new plan";
    }
    line("scalar", "%" + slot.name, value);
  }

  void addOutput(size_t i) {
    const std::string name = "%" + program_.slots.at(program_.outputs[i]).name;
    const View& view = unrolled_.outputs[i];
    if (unrolled_.scalar_outputs[i].valid()) return line("output", name, "scalar");
    if (!view.desc.held) return line("output", name, "on other ranks");
    const Buffer& buffer = unrolled_.buffers[view.buffer];
    const bool is_input = buffer.origin == Buffer::Origin::Input;
    const bool is_view = view.byte_offset != 0 || !view.late.empty();
    line("output", name,
         is_input ? fmt::format("in the memory of input {}: {}", buffer.input, addressOf(view))
                  : fmt::format("allocated, {} bytes{}", buffer.bytes,
                                is_view ? ": " + addressOf(view) : ""));
  }

  const Program& program_;
  const Unrolled& unrolled_;
  const std::set<std::string> scalars_;  // symbols of the inputs that occur in sizes
  std::set<std::string> shown_;
  std::string text_;
};

}  // namespace

std::string describeLateValues(const Program& program, const Unrolled& unrolled) {
  return LateValues(program, unrolled).text();
}

}  // namespace heddle::host
