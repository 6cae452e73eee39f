#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/program.h"

namespace heddle::host {

// Rows of the tensors at a collective that may be cut: axes that are neither summed over nor made
// by the product's second operand, outside of all others in memory, so that a chunk of them is one
// stretch.
struct ChunkCut {
  std::vector<size_t> axes;  // several: one axis in memory, in ChunkSite::order
  std::vector<size_t> ones;  // axes outside of them, which must have the extent 1
  bool isFlat() const { return axes.size() > 1; }
};

// A collective and the products it can be chunked with. Positions are of Program::body.
struct ChunkSite {
  comm::CollectiveKind kind;  // Allgather, ReduceScatter, Allreduce
  size_t post = 0;
  size_t wait = 0;
  std::vector<size_t> products;  // Allgather: one or more that read it; else those that make it
  // Between collective and products: it reads what is gathered or makes what is reduced, row by
  // row.
  std::optional<size_t> kernel;
  std::vector<bool> kernel_rows;  // by operand of the kernel (RowKernel::has_rows)
  std::vector<size_t> allocates;  // of the tensors between, which are made in parts
  int64_t team = 1;               // devices
  AxisOrder order;                // in which both sides of the collective lie in memory
  std::vector<ChunkCut> cuts;     // at least one; the one that divides most sizes first
};

// An allgather, reduce-scatter or allreduce of a team of several that stays whole.
struct WholeCollective {
  size_t post;
  std::string why;
};

struct ChunkSites {
  std::vector<ChunkSite> sites;
  std::vector<WholeCollective> whole;
};

// The kernel's operands with rows that are whole before it: chunks of them are views.
std::vector<SlotId> kernelViews(const Program& program, const ChunkSite& site);

// In program order; no instruction is in two of them. None where somebody has ordered streams by
// hand already.
ChunkSites findChunkSites(const Program& program);

}  // namespace heddle::host
