#pragma once

#include <string>
#include <vector>

#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// What the sizes of a program mean on one rank: its symbols, `rank`, `ranks`, mesh extents and
// coordinates, and the indices of the loops around.
class Scope {
 public:
  // UserError when a mesh does not fit the job.
  Scope(const Meshes& meshes, const SizeBindings& sizes, int64_t rank, int64_t ranks);

  int64_t rank() const { return rank_; }
  int64_t ranks() const { return ranks_; }
  const Meshes& meshes() const { return meshes_; }  // concrete
  bool isIn(MeshId mesh) const { return meshes_.at(mesh).positionOf(rank_) >= 0; }
  // Ranks of the team, in its order. UserError when this rank is not in its mesh.
  std::vector<int64_t> members(const Team& team) const;
  int64_t teamSize(const Team& team) const;

  void set(const std::string& index, int64_t value) { values_[index] = value; }
  void unset(const std::string& index) { values_.erase(index); }
  bool has(const std::string& symbol) const { return values_.count(symbol) > 0; }

  int64_t evaluate(const Size& size) const;
  std::vector<int64_t> evaluate(const std::vector<Size>& sizes) const;
  TensorDesc describe(const Slot& slot) const;
  // Throws UserError naming the source of the first guard that does not hold.
  void check(const std::vector<SizeGuard>& guards) const;

 private:
  Meshes meshes_;
  int64_t rank_;
  int64_t ranks_;
  SizeBindings values_;
};

}  // namespace heddle::host
