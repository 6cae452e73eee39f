#include "host/passes/chunk_writer.h"

#include <fmt/format.h>

#include "host/passes/chunk_cost.h"
#include "host/passes/chunk_rests.h"
#include "host/passes/nominal_sizes.h"

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
  instead_.resize(program.body.size());
}

void ChunkWriter::cut(const ChunkSite& site, const ChunkCut& cut, int64_t chunks) {
  has_cut_ = true;
  instead(site.allocate);
  instead(site.wait);
  const Work work{site, cut, chunks};
  if (site.kind == CollectiveKind::Allgather) return gatherChunks(work);
  reduceChunks(work, site.kind == CollectiveKind::ReduceScatter ? site.team : 1);
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

// Memory for `count` rows of each block.
SlotId ChunkWriter::newChunk(const Work& work, SlotId like, const Size& count, int64_t blocks) {
  std::vector<Size> sizes = localSizes(like);
  AxisOrder order = work.site.order;
  size_t axis = work.cut.axes.front();
  if (work.cut.isFlat()) {
    sizes = {count, sizes.back()};
    order.clear();
    axis = 0;
  }
  sizes[axis] = count;
  if (blocks > 1) {
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), Size(blocks));
    order = splitOrder(order, axis);
  }
  return newSlot(like, "_chunk", sizes, order);
}

void ChunkWriter::gatherChunks(const Work& work) {
  const auto x = std::get<Communicate>(old_.body[work.site.post].op);
  instead(work.site.post);
  const Rows rows = rowsIn(work, x.in, 1);
  std::vector<SlotId> gathered;
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < work.chunks; ++i) {
    const SlotId part = chunkOf(rows, x.in, i);
    gathered.push_back(newChunk(work, x.out, rows.count, work.site.team));
    tokens.push_back(newToken());
    emit(Allocate{gathered.back(), 0});
    Communicate chunk = x;
    chunk.ctas = chunkCtas(x.kind);
    chunk.in = part;
    chunk.out = gathered.back();
    chunk.token = tokens.back();
    emit(std::move(chunk));
  }
  for (TokenId token : tokens) emit(Wait{token, 0});
  for (size_t product : work.site.products) {
    const auto whole = std::get<CallLibrary>(old_.body[product].op);
    instead(product);
    const Rows results = rowsIn(work, whole.outputs[0], work.site.team);
    for (int64_t i = 0; i < work.chunks; ++i) {
      CallLibrary part = whole;
      part.inputs[0] = gathered[static_cast<size_t>(i)];
      part.outputs[0] = chunkOf(results, whole.outputs[0], i);
      // The last part is gathered by then.
      if (i + 1 < work.chunks) part.spare_sms = chunkCtas(x.kind);
      emit(std::move(part));
    }
  }
}

void ChunkWriter::reduceChunks(const Work& work, int64_t blocks) {
  const auto x = std::get<Communicate>(old_.body[work.site.post].op);
  const auto whole = std::get<CallLibrary>(old_.body[work.site.products[0]].op);
  instead(work.site.products[0]);
  instead(work.site.post);
  const Rows rows = rowsIn(work, whole.inputs[0], blocks);
  const Rows results = rowsIn(work, x.out, 1);
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < work.chunks; ++i) {
    CallLibrary part = whole;
    part.inputs[0] = chunkOf(rows, whole.inputs[0], i);
    part.outputs[0] = newChunk(work, x.in, rows.count, blocks);
    if (i > 0) part.spare_sms = chunkCtas(x.kind);  // of the part before
    Communicate chunk = x;
    chunk.ctas = chunkCtas(x.kind);
    chunk.in = part.outputs[0];
    chunk.out = chunkOf(results, x.out, i);
    chunk.token = newToken();
    tokens.push_back(chunk.token);
    emit(Allocate{chunk.in, 0});
    emit(std::move(part));
    emit(std::move(chunk));
  }
  for (TokenId token : tokens) emit(Wait{token, 0});
}

}  // namespace heddle::host
