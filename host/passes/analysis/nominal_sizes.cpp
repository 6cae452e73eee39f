#include "host/passes/analysis/nominal_sizes.h"

#include "ir/base/error.h"

namespace heddle::host {
namespace {

// The value of symbols without a known size. The number is typical for a batch of text tokens, and
// is not measured.
constexpr int64_t kNominalExtent = 4096;

}  // namespace

NominalSizes::NominalSizes(const Program& program, const PassOptions& options) {
  for (const auto& [symbol, value] : program.size_defaults) sizes_[symbol] = value;
  for (const auto& [symbol, value] : options.chunk_sizes) sizes_[symbol] = value;
}

double NominalSizes::value(const Size& size) const {
  const auto lookup = [&](const std::string& symbol) {
    const auto found = sizes_.find(symbol);
    return found == sizes_.end() ? std::optional<int64_t>(kNominalExtent) : found->second;
  };
  try {
    return static_cast<double>(size.evaluate(lookup));
  } catch (const UserError&) {
    return static_cast<double>(kNominalExtent);  // the size overflows or divides by 0
  }
}

double NominalSizes::elements(const Program& program, const Slot& slot) const {
  double n = 1;
  for (size_t i = 0; i < slot.tensor.rank(); ++i) n *= value(evenExtent(program, slot, i));
  return n;
}

double NominalSizes::bytes(const Program& program, const Slot& slot) const {
  return elements(program, slot) * static_cast<double>(sizeOf(slot.tensor.dtype));
}

int64_t devicesOf(const Program& program, const Slot& slot, size_t axis) {
  if (!slot.tensor.sharding || !slot.tensor.sharding->isSharded(axis)) return 1;
  const DeviceMesh& mesh = program.meshes[slot.tensor.sharding->mesh];
  int64_t devices = 1;
  for (MeshAxis each : slot.tensor.sharding->axes[axis]) devices *= mesh.size(each);
  return devices;
}

Size evenExtent(const Program& program, const Slot& slot, size_t axis) {
  const int64_t devices = devicesOf(program, slot, axis);
  const Size& extent = slot.tensor.domain[axis].extent;
  return devices == 1 ? extent : Size::floorDiv(extent, Size(devices));
}

}  // namespace heddle::host
