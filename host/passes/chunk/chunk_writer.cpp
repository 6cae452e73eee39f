#include "host/passes/chunk/chunk_writer.h"

#include <fmt/format.h>

#include <numeric>

#include "host/passes/analysis/nominal_sizes.h"
#include "host/passes/chunk/remainders.h"
#include "host/passes/chunk/row_cuts.h"
#include "host/passes/chunk/rowwise_kernel.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

// Returns the order in memory of a tensor after `axis` has been split into two axes.
AxisOrder splitOrder(const AxisOrder& order, size_t axis) {
  AxisOrder split;
  for (int64_t each : order) {
    const size_t old = each;
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

void ChunkWriter::clear(const ChunkStage& stage) {
  for (size_t allocate : stage.allocates) instead(allocate);
  for (size_t matmul : stage.matmuls) instead(matmul);
  if (stage.kernel) instead(*stage.kernel);
}

void ChunkWriter::cut(const OverlapMatch& match, const ChunkCut& cut, const ChunkShares& shares) {
  has_cut_ = true;
  clear(match);
  instead(match.wait);
  const bool whole = match.kind == CollectiveKind::Allreduce;
  const Work work{match, cut, shares, false, whole ? 1 : match.team};
  if (match.kind == CollectiveKind::Allgather) return gatherChunks(work);
  reduceChunks(work, {});
}

void ChunkWriter::cutChain(const OverlapMatch& match, const OverlapMatch* gather,
                           const ChunkCut& cut, const ChunkShares& shares) {
  has_cut_ = true;
  clear(match);
  clear(*match.front);
  instead(match.wait);
  const bool whole = match.kind == CollectiveKind::Allreduce;
  MadeByChunk gathered;
  if (gather != nullptr) {
    clear(*gather);
    instead(gather->wait);
    Work work{*gather, cut, shares, true, match.team};
    gathered = postGathers(work);
  }
  reduceChunks({match, cut, shares, true, whole ? 1 : match.team}, gathered);
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
  int& number = next_number_[base];
  for (;;) {
    std::string name = fmt::format("{}_{}", base, number++);
    if (names_.insert(name).second) return name;
  }
}

// Creates a slot with the local sizes `sizes` and the memory order `order`, without gaps. An empty
// `order` means row-major.
SlotId ChunkWriter::newSlot(SlotId like, const std::string& what, const std::vector<Size>& sizes,
                            const AxisOrder& order) {
  Slot made;
  made.name = fresh(slot(like).name + what);
  made.tensor.dtype = slot(like).tensor.dtype;
  for (const Size& size : sizes) made.tensor.domain.push_back({size});
  if (!order.empty() && order != rowMajor(sizes.size())) {
    made.tensor.layout.needed = order;
  }
  return new_.slots.push_back(std::move(made));
}

TokenId ChunkWriter::newToken() { return new_.tokens.push_back(fresh("chunk")); }

std::vector<Size> ChunkWriter::localSizes(SlotId id) const {
  std::vector<Size> sizes;
  for (size_t i = 0; i < slot(id).tensor.rank(); ++i) {
    sizes.push_back(evenExtent(new_, slot(id), i));
  }
  return sizes;
}

// --- writing ------------------------------------------------------------------------------------

// Makes emit() append to the instructions that replace instruction `i`. Returns these instructions.
// If emit() appends nothing, instruction `i` is removed.
std::vector<Instruction>& ChunkWriter::instead(size_t i) {
  if (!instead_[i]) instead_[i].emplace();
  current_ = i;
  return *instead_[i];
}

void ChunkWriter::emit(Op op) {
  const Instruction& old = old_.body[current_];
  instead_[current_]->push_back({std::move(op), old.on, old.line});
}

// Creates the view of tensor `id` whose slices are the chunks. The view has no padding. For a flat
// split (ChunkCut::isFlat()), all axes of rows become one axis. If `blocks` > 1, the split axis
// becomes two axes: the blocks, and the rows of a block.
ChunkWriter::Rows ChunkWriter::rowsIn(const Work& work, SlotId id, int64_t blocks) {
  std::vector<Size> sizes = localSizes(id);
  SlotId view = newSlot(id, "_rows", sizes);
  emit(Alias{view, id, Alias::Unpad{}});
  size_t axis = work.cut.axes.front();
  const Size rows = Size::floorDiv(rowsOf(new_, slot(id), work.cut), Size(blocks));
  if (work.cut.isFlat()) {
    // A reshape keeps the row-major order of the elements. The axes are therefore put in memory
    // order before the axes of rows become one axis.
    if (work.match.order != rowMajor(sizes.size())) {
      std::vector<Size> moved;
      for (int64_t each : work.match.order) moved.push_back(sizes[each]);
      const SlotId ordered = newSlot(id, "_ordered", moved);
      emit(Alias{ordered, view, Alias::Permute{work.match.order}});
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
  return {view, axis + (blocks > 1 ? 1 : 0), Size::floorDiv(rows, Size(unitsOf(work.shares)))};
}

// Creates a view of the current chunk of `rows`, with a name derived from the slot `of`.
SlotId ChunkWriter::chunkOf(const Work& work, const Rows& rows, SlotId of) {
  const auto first = work.shares.begin();
  const int64_t begin = std::accumulate(first, first + work.chunk, int64_t{0});
  const int64_t share = work.shares[work.chunk];
  std::vector<Size> sizes = slot(rows.slot).tensor.sizes();
  Alias::Slice slice{std::vector<Size>(sizes.size(), Size(0)), sizes};
  slice.starts[rows.axis] = rows.unit * Size(begin);
  slice.stops[rows.axis] = rows.unit * Size(begin + share);
  sizes[rows.axis] = rows.unit * Size(share);
  const SlotId view = newSlot(of, "_chunk", sizes);
  emit(Alias{view, rows.slot, std::move(slice)});
  return view;
}

// Allocates the current chunk of the tensor `like`, which is neither the first nor the last tensor
// of the match.
SlotId ChunkWriter::newChunk(Work& work, SlotId like) {
  const Size rows = work.unit * Size(work.shares[work.chunk]);
  std::vector<Size> sizes = localSizes(like);
  AxisOrder order = work.match.order;
  size_t axis = work.cut.axes.front();
  if (work.cut.isFlat()) {
    sizes = {rows, sizes.back()};
    order = {0, 1};
    axis = 0;
  }
  sizes[axis] = rows;
  if (work.blocks > 1) {
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), Size(work.blocks));
    order = splitOrder(order, axis);
  }
  const SlotId made = newSlot(like, "_chunk", sizes, order);
  work.made[like] = made;
  emit(Allocate{made});
  return made;
}

// Creates the views that the launches of a stage's kernel for all chunks share.
ChunkWriter::KernelParts ChunkWriter::kernelParts(const Work& work, const ChunkStage& stage) {
  KernelParts parts{&stage, {}, {}, {}};
  if (!stage.kernel) return parts;
  const auto launch = std::get<LaunchKernel>(old_.body[*stage.kernel].op);
  for (SlotId id : kernelViews(old_, stage)) parts.rows[id] = rowsIn(work, id, work.blocks);
  for (size_t i = 0; i < launch.inputs.size(); ++i) {
    const SlotId id = launch.inputs[i];
    if (stage.kernel_rows[i] || slot(id).is_scalar) continue;
    parts.shared[id] = newSlot(id, "_here", localSizes(id));
    emit(Alias{parts.shared[id], id, Alias::Unpad{}});
  }
  return parts;
}

// Emits the launch of a stage's kernel for the current chunk. Chunks of equal length share a
// kernel.
void ChunkWriter::launchChunk(Work& work, KernelParts& parts) {
  auto launch = std::get<LaunchKernel>(old_.body[*parts.stage->kernel].op);
  const Fusion& segment = old_.kernels[launch.kernel].segment;
  for (SlotId& id : launch.inputs) {
    if (const auto made = work.made.find(id); made != work.made.end()) {
      id = made->second;
    } else if (const auto rows = parts.rows.find(id); rows != parts.rows.end()) {
      id = chunkOf(work, rows->second, id);
    } else if (const auto shared = parts.shared.find(id); shared != parts.shared.end()) {
      id = shared->second;
    }
  }
  launch.outputs[0] = newChunk(work, launch.outputs[0]);
  const int64_t share = work.shares[work.chunk];
  const auto [kernel, is_new] = parts.kernels.emplace(share, new_.kernels.endId());
  if (is_new) {
    std::vector<TensorView> types;
    for (SlotId id : launch.inputs) types.push_back(slot(id).tensor);
    const std::string name = fresh(segment.name + "_chunk");
    new_.kernels.push_back(
        {name,
         kernelOnRows(segment, types, slot(launch.outputs[0]).tensor.allocationOrder(), name)});
  }
  launch.kernel = kernel->second;
  emit(std::move(launch));
}

// Posts the gathers of all chunks, then waits for them in order. Later, the pass sink_waits moves
// each wait down to the first instruction that needs the gathered rows.
ChunkWriter::MadeByChunk ChunkWriter::postGathers(Work& work) {
  const auto x = std::get<Communicate>(old_.body[work.match.post].op);
  instead(work.match.post);
  const Rows rows = rowsIn(work, x.in, 1);
  work.unit = rows.unit;
  const size_t chunks = work.shares.size();
  MadeByChunk made;
  std::vector<TokenId> tokens;
  for (work.chunk = 0; work.chunk < chunks; ++work.chunk) {
    tokens.push_back(newToken());
    Communicate chunk = x;
    chunk.carrier = chunkCarrier(x.kind, work.chunk, chunks);
    chunk.in = chunkOf(work, rows, x.in);
    chunk.out = newChunk(work, x.out);
    chunk.token = tokens.back();
    emit(std::move(chunk));
    made.push_back(work.made);
  }
  for (TokenId token : tokens) emit(Wait{token});
  return made;
}

// Writes the gathers of all chunks. After them, writes all chunks of one matrix product, then all
// chunks of the next matrix product, and so on. If the match has a kernel, its launch for a chunk
// is directly before this chunk of the first matrix product.
void ChunkWriter::gatherChunks(Work work) {
  MadeByChunk made = postGathers(work);
  const size_t chunks = work.shares.size();
  instead(work.match.matmuls.front());
  KernelParts kernel = kernelParts(work, work.match);
  for (size_t matmul : work.match.matmuls) {
    const auto whole = std::get<CallLibrary>(old_.body[matmul].op);
    instead(matmul);
    const Rows results = rowsIn(work, whole.outputs[0], work.blocks);
    for (work.chunk = 0; work.chunk < chunks; ++work.chunk) {
      work.made = made[work.chunk];
      if (work.match.kernel && matmul == work.match.matmuls.front()) {
        launchChunk(work, kernel);
        made[work.chunk] = work.made;
      }
      CallLibrary part = whole;
      part.inputs[0] = work.made.at(whole.inputs[0]);
      part.outputs[0] = chunkOf(work, results, whole.outputs[0]);
      emit(std::move(part));
    }
  }
}

struct ChunkWriter::StageParts {
  // Per unsplit tensor that matrix products of the stage read: the view whose slices are the
  // chunks.
  std::map<SlotId, Rows> rows;
  KernelParts kernel;
};

// Creates the slots that all chunks of a stage share. If `gathered` has the chunks of an operand of
// a matrix product, this operand needs no view.
ChunkWriter::StageParts ChunkWriter::stageParts(Work& work, const ChunkStage& stage,
                                                const MadeByChunk& gathered) {
  StageParts parts{{}, {&stage, {}, {}, {}}};
  for (size_t matmul : stage.matmuls) {
    const SlotId id = std::get<CallLibrary>(old_.body[matmul].op).inputs[0];
    if (parts.rows.count(id) > 0 || (!gathered.empty() && gathered.front().count(id) > 0)) continue;
    parts.rows.emplace(id, rowsIn(work, id, work.blocks));
  }
  parts.kernel = kernelParts(work, stage);
  return parts;
}

// Emits the matrix products of a stage for the current chunk, and then the launch of its kernel.
void ChunkWriter::computeChunk(Work& work, StageParts& parts) {
  for (size_t matmul : parts.kernel.stage->matmuls) {
    auto part = std::get<CallLibrary>(old_.body[matmul].op);
    SlotId& rows = part.inputs[0];
    const auto made = work.made.find(rows);
    rows = made != work.made.end() ? made->second : chunkOf(work, parts.rows.at(rows), rows);
    part.outputs[0] = newChunk(work, part.outputs[0]);
    emit(std::move(part));
  }
  if (parts.kernel.stage->kernel) launchChunk(work, parts.kernel);
}

// Writes the chunks one after another: all stages of a chunk, then its post. All waits follow the
// last post.
void ChunkWriter::reduceChunks(Work work, const MadeByChunk& gathered) {
  const auto x = std::get<Communicate>(old_.body[work.match.post].op);
  instead(work.match.post);
  std::vector<StageParts> stages;
  if (work.is_chain) stages.push_back(stageParts(work, *work.match.front, gathered));
  if (!work.is_chain) stages.push_back(stageParts(work, work.match, {}));
  if (work.is_chain) stages.push_back({{}, kernelParts(work, work.match)});
  const Rows results = rowsIn(work, x.out, 1);
  const std::map<SlotId, Rows>& read = stages.front().rows;
  work.unit = read.empty() ? results.unit : read.begin()->second.unit;
  const size_t chunks = work.shares.size();
  std::vector<TokenId> tokens;
  for (work.chunk = 0; work.chunk < chunks; ++work.chunk) {
    work.made.clear();
    if (!gathered.empty()) work.made = gathered[work.chunk];
    for (StageParts& parts : stages) computeChunk(work, parts);
    Communicate chunk = x;
    chunk.carrier = chunkCarrier(x.kind, work.chunk, chunks, !gathered.empty());
    chunk.in = work.made.at(x.in);
    chunk.out = chunkOf(work, results, x.out);
    chunk.token = newToken();
    tokens.push_back(chunk.token);
    emit(std::move(chunk));
  }
  for (TokenId token : tokens) emit(Wait{token});
}

}  // namespace heddle::host
