#pragma once

#include <string>
#include <vector>

#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// The values of all symbols on one rank: symbols of the program, `rank`, `ranks`, mesh extents and
// coordinates, and indices of enclosing loops.
class Scope {
 public:
  // UserError if a mesh does not fit the job.
  Scope(const Meshes& meshes, const SizeBindings& sizes, int64_t rank, int64_t ranks);

  int64_t rank() const { return rank_; }
  int64_t ranks() const { return ranks_; }
  const Meshes& meshes() const { return meshes_; }  // concrete
  bool isIn(MeshId mesh) const { return meshes_.at(mesh).positionOf(rank_) >= 0; }
  // Returns the ranks of this rank's team, in team order. UserError if this rank is not in the
  // mesh.
  std::vector<int64_t> members(const Team& team) const;
  int64_t teamSize(const Team& team) const;

  // Sets and removes the index of an enclosing loop.
  void set(const std::string& index, int64_t value) { values_[index] = value; }
  void unset(const std::string& index) { values_.erase(index); }
  bool has(const std::string& symbol) const { return values_.count(symbol) > 0; }

  int64_t evaluate(const Size& size) const;
  std::vector<int64_t> evaluate(const std::vector<Size>& sizes) const;
  // Returns the same as describe() of host/unroll/unroll.h.
  TensorDesc describe(const Slot& slot) const;
  // Checks the guards. UserError names the source of the first guard that does not hold.
  void check(const std::vector<SizeGuard>& guards) const;

 private:
  Meshes meshes_;
  int64_t rank_;
  int64_t ranks_;
  SizeBindings values_;
};

}  // namespace heddle::host
