#include "host/passes/chunk_writer.h"

#include <fmt/format.h>

#include "host/passes/chunk_cost.h"
#include "host/passes/chunk_rests.h"
#include "host/passes/nominal_sizes.h"
#include "host/passes/row_kernel.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

// The order of a tensor of which `axis` has become two axes.
AxisOrder splitOrder(const AxisOrder& order, size_t axis) {
  AxisOrder split;
  for (int64_t each : order) {
    const auto old = static_cast<size_t>(each);
    split.push_back(old > axis ? each + 1 : each);
    if (old == axis) split.push_back(each + 1);
  }
  return split;
}

}  // namespace

ChunkWriter::ChunkWriter(const Program& program) : old_(program), new_(program) {
  for (const Slot& slot : program.slots) names_.insert(slot.name);
  names_.insert(program.tokens.begin(), program.tokens.end());
  for (const Kernel& kernel : program.kernels) names_.insert(kernel.name);
  instead_.resize(program.body.size());
}

void ChunkWriter::cut(const ChunkSite& site, const ChunkCut& cut, int64_t chunks) {
  has_cut_ = true;
  for (size_t allocate : site.allocates) instead(allocate);
  for (size_t product : site.products) instead(product);
  if (site.kernel) instead(*site.kernel);
  instead(site.wait);
  const bool whole = site.kind == CollectiveKind::Allreduce;
  const Work work{site, cut, chunks, whole ? 1 : site.team};
  if (site.kind == CollectiveKind::Allgather) return gatherChunks(work);
  reduceChunks(work);
}

Program ChunkWriter::result() && {
  std::vector<Instruction> body;
  for (size_t i = 0; i < old_.body.size(); ++i) {
    if (!instead_[i]) {
      body.push_back(old_.body[i]);
      continue;
    }
    for (Instruction& x : *instead_[i]) body.push_back(std::move(x));
  }
  new_.body = std::move(body);
  return std::move(new_);
}

// --- new names ----------------------------------------------------------------------------------

std::string ChunkWriter::fresh(const std::string& base) {
  for (int i = 0;; ++i) {
    std::string name = fmt::format("{}_{}", base, i);
    if (names_.insert(name).second) return name;
  }
}

// A slot with these local sizes, dense in this order (none: row-major).
SlotId ChunkWriter::newSlot(SlotId like, const std::string& what, const std::vector<Size>& sizes,
                            const AxisOrder& order) {
  Slot made;
  made.name = fresh(slot(like).name + what);
  made.tensor.dtype = slot(like).tensor.dtype;
  for (const Size& size : sizes) made.tensor.domain.push_back({size});
  if (!order.empty() && order != rowMajor(sizes.size())) {
    made.tensor.layout.allocation_order = order;
  }
  new_.slots.push_back(std::move(made));
  return static_cast<SlotId>(new_.slots.size()) - 1;
}

TokenId ChunkWriter::newToken() {
  new_.tokens.push_back(fresh("chunk"));
  return static_cast<TokenId>(new_.tokens.size()) - 1;
}

std::vector<Size> ChunkWriter::localSizes(SlotId id) const {
  std::vector<Size> sizes;
  for (size_t i = 0; i < slot(id).tensor.rank(); ++i) {
    sizes.push_back(evenExtent(new_, slot(id), i));
  }
  return sizes;
}

// --- writing ------------------------------------------------------------------------------------

// The instructions that stand for those at `i`, emptied on the first call.
std::vector<Instruction>& ChunkWriter::instead(size_t i) {
  if (!instead_[i]) instead_[i].emplace();
  current_ = i;
  return *instead_[i];
}

void ChunkWriter::emit(Op op) {
  const Instruction& old = old_.body[current_];
  instead_[current_]->push_back({std::move(op), old.on, old.line});
}

ChunkWriter::Rows ChunkWriter::rowsIn(const Work& work, SlotId id, int64_t blocks) {
  std::vector<Size> sizes = localSizes(id);
  SlotId view = newSlot(id, "_rows", sizes);
  emit(Alias{view, id, Alias::Unpad{}});
  size_t axis = work.cut.axes.front();
  const Size rows = Size::floorDiv(rowsOf(new_, slot(id), work.cut), Size(blocks));
  if (work.cut.isFlat()) {
    if (work.site.order != rowMajor(sizes.size())) {
      std::vector<Size> moved;
      for (int64_t each : work.site.order) moved.push_back(sizes[static_cast<size_t>(each)]);
      const SlotId ordered = newSlot(id, "_ordered", moved);
      emit(Alias{ordered, view, Alias::Permute{work.site.order}});
      view = ordered;
    }
    sizes = {rows, sizes.back()};
    axis = 0;
  } else {
    sizes[axis] = rows;
  }
  const auto at = [&] { return sizes.begin() + static_cast<std::ptrdiff_t>(axis); };
  if (blocks > 1) sizes.insert(at(), Size(blocks));
  if (blocks > 1 || work.cut.isFlat()) {
    const SlotId regrouped = newSlot(id, blocks > 1 ? "_blocks" : "_flat", sizes);
    emit(Alias{regrouped, view, Alias::Reshape{}});
    view = regrouped;
  }
  return {view, axis + (blocks > 1 ? 1 : 0), Size::floorDiv(rows, Size(work.chunks))};
}

SlotId ChunkWriter::chunkOf(const Rows& rows, SlotId of, int64_t chunk) {
  std::vector<Size> sizes = slot(rows.slot).tensor.sizes();
  Alias::Slice slice{std::vector<Size>(sizes.size(), Size(0)), sizes};
  slice.starts[rows.axis] = rows.count * Size(chunk);
  slice.stops[rows.axis] = rows.count * Size(chunk + 1);
  sizes[rows.axis] = rows.count;
  const SlotId view = newSlot(of, "_chunk", sizes);
  emit(Alias{view, rows.slot, std::move(slice)});
  return view;
}

// Memory for the rows of a chunk of what is between product and collective.
SlotId ChunkWriter::newChunk(Work& work, SlotId like) {
  std::vector<Size> sizes = localSizes(like);
  AxisOrder order = work.site.order;
  size_t axis = work.cut.axes.front();
  if (work.cut.isFlat()) {
    sizes = {work.count, sizes.back()};
    order = {0, 1};
    axis = 0;
  }
  sizes[axis] = work.count;
  if (work.blocks > 1) {
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), Size(work.blocks));
    order = splitOrder(order, axis);
  }
  const SlotId made = newSlot(like, "_chunk", sizes, order);
  work.made[like] = made;
  emit(Allocate{made, 0});
  return made;
}

ChunkWriter::KernelParts ChunkWriter::kernelParts(const Work& work) {
  KernelParts parts;
  if (!work.site.kernel) return parts;
  const auto launch = std::get<LaunchKernel>(old_.body[*work.site.kernel].op);
  for (SlotId id : kernelViews(old_, work.site)) parts.rows[id] = rowsIn(work, id, work.blocks);
  for (size_t i = 0; i < launch.inputs.size(); ++i) {
    const SlotId id = launch.inputs[i];
    if (work.site.kernel_rows[i] || slot(id).is_scalar) continue;
    parts.shared[id] = newSlot(id, "_here", localSizes(id));
    emit(Alias{parts.shared[id], id, Alias::Unpad{}});
  }
  return parts;
}

void ChunkWriter::launchChunk(Work& work, KernelParts& parts, int64_t chunk) {
  auto launch = std::get<LaunchKernel>(old_.body[*work.site.kernel].op);
  const Fusion& segment = old_.kernels[static_cast<size_t>(launch.kernel)].segment;
  for (SlotId& id : launch.inputs) {
    if (const auto made = work.made.find(id); made != work.made.end()) {
      id = made->second;
    } else if (const auto rows = parts.rows.find(id); rows != parts.rows.end()) {
      id = chunkOf(rows->second, id, chunk);
    } else if (const auto shared = parts.shared.find(id); shared != parts.shared.end()) {
      id = shared->second;
    }
  }
  launch.outputs[0] = newChunk(work, launch.outputs[0]);
  if (parts.kernel < 0) {
    std::vector<TensorView> types;
    for (SlotId id : launch.inputs) types.push_back(slot(id).tensor);
    parts.kernel = static_cast<KernelId>(new_.kernels.size());
    const std::string name = fresh(segment.name + "_chunk");
    new_.kernels.push_back(
        {name,
         kernelOnRows(segment, types, slot(launch.outputs[0]).tensor.allocationOrder(), name)});
  }
  launch.kernel = parts.kernel;
  emit(std::move(launch));
}

void ChunkWriter::gatherChunks(Work work) {
  const auto x = std::get<Communicate>(old_.body[work.site.post].op);
  instead(work.site.post);
  const Rows rows = rowsIn(work, x.in, 1);
  work.count = rows.count;
  std::vector<std::map<SlotId, SlotId>> made;
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < work.chunks; ++i) {
    tokens.push_back(newToken());
    Communicate chunk = x;
    chunk.carrier = chunkCarrier(x.kind, i);
    chunk.in = chunkOf(rows, x.in, i);
    chunk.out = newChunk(work, x.out);
    chunk.token = tokens.back();
    emit(std::move(chunk));
    made.push_back(work.made);
  }
  for (TokenId token : tokens) emit(Wait{token, 0});
  instead(work.site.products.front());
  KernelParts kernel = kernelParts(work);
  for (size_t product : work.site.products) {
    const auto whole = std::get<CallLibrary>(old_.body[product].op);
    instead(product);
    const Rows results = rowsIn(work, whole.outputs[0], work.blocks);
    for (int64_t i = 0; i < work.chunks; ++i) {
      work.made = made[static_cast<size_t>(i)];
      if (work.site.kernel && product == work.site.products.front()) {
        launchChunk(work, kernel, i);
        made[static_cast<size_t>(i)] = work.made;
      }
      CallLibrary part = whole;
      part.inputs[0] = work.made.at(whole.inputs[0]);
      part.outputs[0] = chunkOf(results, whole.outputs[0], i);
      emit(std::move(part));
    }
  }
}

void ChunkWriter::reduceChunks(Work work) {
  const auto x = std::get<Communicate>(old_.body[work.site.post].op);
  instead(work.site.post);
  std::vector<Rows> rows;
  for (size_t product : work.site.products) {
    rows.push_back(
        rowsIn(work, std::get<CallLibrary>(old_.body[product].op).inputs[0], work.blocks));
  }
  work.count = rows.front().count;
  KernelParts kernel = kernelParts(work);
  const Rows results = rowsIn(work, x.out, 1);
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < work.chunks; ++i) {
    for (size_t j = 0; j < rows.size(); ++j) {
      auto part = std::get<CallLibrary>(old_.body[work.site.products[j]].op);
      part.inputs[0] = chunkOf(rows[j], part.inputs[0], i);
      part.outputs[0] = newChunk(work, part.outputs[0]);
      emit(std::move(part));
    }
    if (work.site.kernel) launchChunk(work, kernel, i);
    Communicate chunk = x;
    chunk.carrier = chunkCarrier(x.kind, i);
    chunk.in = work.made.at(x.in);
    chunk.out = chunkOf(results, x.out, i);
    chunk.token = newToken();
    tokens.push_back(chunk.token);
    emit(std::move(chunk));
  }
  for (TokenId token : tokens) emit(Wait{token, 0});
}

}  // namespace heddle::host
