#pragma once

#include <string>
#include <vector>

#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// The values of all size symbols on one rank, while a host program is unrolled
// (host/unroll/unroll.h). The symbols are those of the program, `rank`, `ranks`, the extents and
// coordinates of meshes, and the indices of enclosing loops.
class Scope {
 public:
  // Throws UserError if a mesh does not fit a job of `ranks` ranks, or if the job has no rank
  // `rank`.
  Scope(const Meshes& meshes, const SizeBindings& sizes, int64_t rank, int64_t ranks);

  int64_t rank() const { return rank_; }
  int64_t ranks() const { return ranks_; }
  const Meshes& meshes() const { return meshes_; }  // their sizes are known
  bool isIn(MeshId mesh) const { return meshes_.at(mesh).positionOf(rank_) >= 0; }
  // Returns the members of the team to which this rank belongs, as ranks of the job in team order.
  // Throws UserError if this rank is not in the mesh of the team.
  std::vector<int64_t> members(const Team& team) const;
  int64_t teamSize(const Team& team) const;

  // set() sets the value of the index of an enclosing loop, and unset() removes it.
  void set(const std::string& index, int64_t value) { values_[index] = value; }
  void unset(const std::string& index) { values_.erase(index); }
  bool has(const std::string& symbol) const { return values_.count(symbol) > 0; }
  const SizeBindings& values() const { return values_; }

  int64_t evaluate(const Size& size) const;
  std::vector<int64_t> evaluate(const std::vector<Size>& sizes) const;
  // Returns the same as describe() of host/unroll/unroll.h.
  TensorDesc describe(const Slot& slot) const;
  // Call trackLate() before restrictLate(). It adds a LateRange with all values for each late input
  // to `ranges`, which must outlive the Scope. restrictLate() then removes the values for which
  // `size` is negative. Requires that `size` is at least 0 with the present values.
  void trackLate(const LateInputs& late, std::map<int32_t, LateRange>& ranges);
  void restrictLate(const Size& size) const;
  // Returns, for each late input on which the size depends, how much the size grows if the input
  // grows by 1. This number is in LateTerm::bytes. The caller must multiply it by the stride in
  // bytes of the axis to which the size belongs.
  std::vector<View::LateTerm> lateTermsOf(const Size& size) const;
  int64_t lateValue(int32_t input) const;  // the value in values()

  // Checks the guards (checkGuards() of ir/sizes/size_guard.h).
  void check(const std::vector<SizeGuard>& guards) const;

 private:
  Meshes meshes_;
  int64_t rank_;
  int64_t ranks_;
  SizeBindings values_;
  LateInputs late_;
  std::map<int32_t, LateRange>* ranges_ = nullptr;  // ranges of the late inputs
};

}  // namespace heddle::host
