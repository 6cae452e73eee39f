#include "host/passes/analysis/nominal_sizes.h"

#include "ir/base/error.h"
#include "ir/sizes/size_reads.h"

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

std::optional<int64_t> NominalSizes::find(const std::string& symbol) const {
  const auto found = sizes_.find(symbol);
  return found == sizes_.end() ? kNominalExtent : found->second;
}

double NominalSizes::value(const Size& size) const {
  try {
    const int64_t value = size.evaluate([this](const std::string& symbol) { return find(symbol); });
    SizeReads::note(size, value);
    return static_cast<double>(value);
  } catch (const UserError&) {
    SizeReads::noteOther();
    return static_cast<double>(kNominalExtent);  // the size overflows or divides by 0
  }
}

bool NominalSizes::isAbove(const Size& size, int64_t limit) const {
  try {
    const Size steps = Size::floorDiv(size, Size(limit + 1));
    const Size question = Size::min(steps, Size(1));
    const int64_t answer =
        question.evaluate([this](const std::string& symbol) { return find(symbol); });
    SizeReads::note(question, answer);
    return answer != 0;
  } catch (const UserError&) {
    SizeReads::noteOther();
    return true;  // the size overflows or divides by 0
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

Size evenBytes(const Program& program, const Slot& slot) {
  Size bytes(sizeOf(slot.tensor.dtype));
  for (size_t i = 0; i < slot.tensor.rank(); ++i) bytes = bytes * evenExtent(program, slot, i);
  return bytes;
}

}  // namespace heddle::host
