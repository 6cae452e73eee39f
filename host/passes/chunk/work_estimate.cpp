#include "host/passes/chunk/work_estimate.h"

#include <algorithm>

#include "host/passes/chunk/remainders.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

// Computes ChunkedWork::rows, and multiplies ChunkedWork::calls by the number of library calls per
// matrix product. A library call takes at most one batch axis, so it computes all matrices along
// the longest batch axis. Rows that are contiguous in memory form one matrix:
// - Flat split (ChunkCut::isFlat()): a chunk is one matrix per rank's block. One call computes
//   them all.
// - Other splits: the rows of the matrix are along the split axis. In row-major tensors, the matrix
//   also contains the axes of rows after the split axis. All other axes of rows are batch axes. In
//   an allgather or a reduce-scatter, the blocks of the ranks form one more batch axis.
void countMatrices(const Program& program, const NominalSizes& sizes, const OverlapMatch& match,
                   const ChunkCut& cut, ChunkedWork& work) {
  const auto& x = std::get<Communicate>(program.body[match.post].op);
  const bool gathers = match.kind == CollectiveKind::Allgather;
  const Slot& part = program.slots[gathers ? x.in : x.out];
  work.rows = sizes.value(rowsOf(program, part, cut));
  if (cut.isFlat()) return;
  const size_t axis = cut.axes.front();
  const size_t rank = part.tensor.rank();
  const bool in_order = match.order == rowMajor(rank);
  double batches = 1;
  double longest = match.kind == CollectiveKind::Allreduce ? 1 : static_cast<double>(match.team);
  for (size_t other = 0; other + 1 < rank; ++other) {
    if (other == axis) continue;
    const double extent = sizes.value(evenExtent(program, part, other));
    if (in_order && other > axis) {
      work.rows *= extent;
    } else {
      batches *= extent;
      longest = std::max(longest, extent);
    }
  }
  if (match.kind != CollectiveKind::Allreduce) batches *= static_cast<double>(match.team);
  work.calls *= std::max<int64_t>(1, static_cast<int64_t>(batches / longest));
}

double gatheredBytes(const Program& program, const NominalSizes& sizes, const Communicate& x,
                     const Slot& whole, int64_t team) {
  const Slot& in = program.slots[x.in];
  const double share = 1 - 1 / static_cast<double>(team);
  return sizes.elements(program, whole) * static_cast<double>(sizeOf(in.tensor.dtype)) * share;
}

void addStage(const Program& program, const NominalSizes& sizes, const ChunkStage& stage,
              ChunkedWork& work) {
  const auto slot = [&](SlotId id) -> const Slot& { return program.slots[id]; };
  for (size_t matmul : stage.matmuls) {
    const auto& call = std::get<CallLibrary>(program.body[matmul].op);
    const Slot& a = slot(call.inputs[0]);
    work.flops += 2 * sizes.elements(program, slot(call.outputs[0])) *
                  sizes.value(evenExtent(program, a, a.tensor.rank() - 1));
  }
  if (!stage.kernel) return;
  const auto& launch = std::get<LaunchKernel>(program.body[*stage.kernel].op);
  work.moved += sizes.bytes(program, slot(launch.outputs[0]));
  for (size_t i = 0; i < launch.inputs.size(); ++i) {
    if (stage.kernel_rows[i]) work.moved += sizes.bytes(program, slot(launch.inputs[i]));
  }
}

bool isHalfRate(const Program& program, const ChunkStage& stage) {
  const auto& call = std::get<CallLibrary>(program.body[stage.matmuls.front()].op);
  return sizeOf(program.slots[call.outputs[0]].tensor.dtype) >= 4;
}

}  // namespace

ChunkedWork chunkedWork(const Program& program, const NominalSizes& sizes,
                        const OverlapMatch& match, const ChunkCut& cut) {
  const auto slot = [&](SlotId id) -> const Slot& { return program.slots[id]; };
  const auto& x = std::get<Communicate>(program.body[match.post].op);
  const bool gathers = match.kind == CollectiveKind::Allgather;
  const bool both_ways = match.kind == CollectiveKind::Allreduce;
  ChunkedWork work;
  const Slot& longer = slot(gathers ? x.out : x.in);
  work.buffer = sizes.bytes(program, longer);
  work.bytes = gatheredBytes(program, sizes, x, longer, match.team) * (both_ways ? 2 : 1);
  work.half_rate = isHalfRate(program, match);
  work.calls = static_cast<int64_t>(match.matmuls.size());
  work.reduces = !gathers;
  work.returns = both_ways;
  addStage(program, sizes, match, work);
  countMatrices(program, sizes, match, cut, work);
  return work;
}

ChunkedWork chainedWork(const Program& program, const NominalSizes& sizes,
                        const OverlapMatch& match, const ChunkCut& cut) {
  ChunkedWork work = chunkedWork(program, sizes, match, cut);
  work.calls += work.calls / static_cast<int64_t>(match.matmuls.size()) *
                static_cast<int64_t>(match.front->matmuls.size());
  addStage(program, sizes, *match.front, work);
  work.two_stages = true;
  if (match.gather) {
    const auto& x = std::get<Communicate>(program.body[*match.gather].op);
    work.gathered = gatheredBytes(program, sizes, x, program.slots[x.out], match.team);
  }
  return work;
}

ChunkedWork frontWork(const Program& program, const NominalSizes& sizes,
                      const OverlapMatch& match) {
  ChunkedWork work;
  work.calls = static_cast<int64_t>(match.front->matmuls.size());
  work.half_rate = isHalfRate(program, *match.front);
  addStage(program, sizes, *match.front, work);
  return work;
}

}  // namespace heddle::host
