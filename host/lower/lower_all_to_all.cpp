#include "host/lower/lower_all_to_all.h"

#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "ir/types/mesh_relations.h"

namespace heddle::host {
namespace {

class ExchangeWriter {
 public:
  ExchangeWriter(Program& program, UniqueNames& names, const Exchange& exchange)
      : program_(program), names_(names), x_(exchange), out_(slot(exchange.post.out)) {
    const size_t joined = x_.step.joined;
    block_ = blockAllocation(out_.tensor, program_.meshes);
    block_[joined] = blockAllocation(slot(x_.post.in).tensor, program_.meshes)[joined];
  }

  // Emits the instructions. Each of the slots below differs from the previous slot in one property:
  // - tiles: the order of the elements in memory
  // - apart: the order of the axes
  // - padded: the axis of the ranks and the joined axis are one axis
  // - the result: there is no padding
  void run() {
    const SlotId parts = addSlot("_parts", partSizes(), partOrder());
    const SlotId tiles = addSlot("_tiles", partSizes(), tileOrder());
    const SlotId apart = addSlot("_apart", apartSizes(), {});
    const SlotId padded = addSlot("_padded", paddedSizes(), {});
    Communicate post = x_.post;
    post.out = parts;
    emit(Allocate{parts});
    emit(post);
    emit(Wait{post.token});
    emit(Allocate{tiles});
    emit(LaunchKernel{addKernel(parts, tiles), {parts}, {tiles}});
    emit(Alias{apart, tiles, Alias::Permute{apartAxes()}});
    emit(Alias{padded, apart, Alias::Reshape{}});
    emit(Alias{x_.post.out, padded, Alias::Unpad{}});
  }

 private:
  const Slot& slot(SlotId id) const { return program_.slots[id]; }
  void emit(Op op) { program_.body.push_back({std::move(op), x_.on, x_.line}); }

  Size ranks() const { return Size(devicesOf(x_.step.mesh, x_.step.team)); }

  // Returns the sizes of the received parts: the number of ranks, then the sizes of one part.
  std::vector<Size> partSizes() const {
    std::vector<Size> sizes{ranks()};
    sizes.insert(sizes.end(), block_.begin(), block_.end());
    return sizes;
  }

  // Returns the memory order of the received parts. The parts are stored one after another, each in
  // the memory order of the input.
  AxisOrder partOrder() const {
    AxisOrder order{0};
    for (int64_t axis : x_.order) order.push_back(axis + 1);
    return order;
  }

  // Returns the memory order of the result plus the axis of the ranks, which is directly outside of
  // the joined axis.
  AxisOrder tileOrder() const {
    AxisOrder order;
    for (int64_t axis : out_.tensor.allocationOrder()) {
      if (axis == x_.step.joined) order.push_back(0);
      order.push_back(axis + 1);
    }
    return order;
  }

  // Returns the axes in logical order, with the axis of the ranks directly before the joined axis.
  std::vector<int64_t> apartAxes() const {
    std::vector<int64_t> axes;
    for (int64_t axis = 0; axis < static_cast<int64_t>(block_.size()); ++axis) {
      if (axis == x_.step.joined) axes.push_back(0);
      axes.push_back(axis + 1);
    }
    return axes;
  }

  std::vector<Size> apartSizes() const {
    std::vector<Size> sizes;
    for (int64_t axis : apartAxes()) sizes.push_back(partSizes()[axis]);
    return sizes;
  }

  std::vector<Size> paddedSizes() const {
    std::vector<Size> sizes = block_;
    const size_t joined = x_.step.joined;
    sizes[joined] = sizes[joined] * ranks();
    return sizes;
  }

  TensorView typeOf(const std::vector<Size>& sizes, const AxisOrder& order) const {
    TensorView type;
    type.dtype = out_.tensor.dtype;
    for (const Size& size : sizes) type.domain.push_back({size, IterKind::Iteration});
    if (!order.empty()) type.layout.needed = order;
    return type;
  }

  SlotId addSlot(const std::string& suffix, const std::vector<Size>& sizes,
                 const AxisOrder& order) {
    return program_.slots.push_back(
        {names_.fresh(out_.name + suffix), false, typeOf(sizes, order), {}, std::nullopt});
  }

  // Adds the kernel that copies the parts to the tiles.
  KernelId addKernel(SlotId parts, SlotId tiles) {
    const std::string name = fmt::format("k{}", program_.kernels.endId());
    FusionBuilder b(name);
    const ValueId in = b.input(slot(parts).name, typeOf(partSizes(), {}));
    b.name(slot(tiles).name);
    const ValueId out = b.set(in);
    b.mutableFusion().layout(out).needed = tileOrder();
    b.output(out);
    return program_.kernels.push_back({name, std::move(b).build()});
  }

  Program& program_;
  UniqueNames& names_;
  const Exchange& x_;
  const Slot out_;           // a copy, because adding slots moves the slots of the program
  std::vector<Size> block_;  // allocated sizes of a part, per axis
};

}  // namespace

std::vector<Size> blockAllocation(const TensorView& tensor, const Meshes& meshes) {
  std::vector<Size> alloc;
  for (size_t axis = 0; axis < tensor.rank(); ++axis) {
    const Size& extent = tensor.domain[axis].extent;
    const std::optional<Sharding>& sharding = tensor.sharding;
    alloc.push_back(sharding && sharding->isSharded(axis)
                        ? allocBlock(extent, meshes.at(sharding->mesh), sharding->axes[axis])
                        : extent);
  }
  return alloc;
}

void appendExchange(Program& program, UniqueNames& names, const Exchange& exchange) {
  ExchangeWriter(program, names, exchange).run();
}

}  // namespace heddle::host
