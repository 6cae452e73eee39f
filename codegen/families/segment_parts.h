#pragma once

#include <map>
#include <vector>

#include "codegen/families/sweeps.h"
#include "codegen/plan/space.h"
#include "ir/graph/rewrite.h"

namespace heddle::codegen {

// Divides a segment into *parts*: smaller segments that run one after another and together compute
// the outputs of the segment. A *temporary* is a value that one part stores in the workspace, so
// that later parts can read it.
class SegmentParts {
 public:
  // The arguments must outlive this object.
  SegmentParts(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents);

  // What a part needs to compute some values. `exprs` are the expressions of the part. `inputs` are
  // the values that the part reads and does not compute: inputs of the segment and temporaries.
  struct Needed {
    std::vector<ExprId> exprs;
    std::vector<ValueId> inputs;
  };
  // Returns what a part needs to compute the values `wanted`.
  Needed neededFor(const std::vector<ValueId>& wanted) const;

  // Returns the part that computes `outputs` of the segment and stores the values `extra` as new
  // temporaries. If the value of an output is already a temporary (isKept()), the part copies the
  // temporary to the output. Until the caller calls keep(), later parts compute the values of
  // `extra` again.
  SweepSegment part(const std::vector<ValueId>& outputs, const std::vector<ValueId>& extra);

  // Lets later parts read the temporaries of all earlier parts.
  void keep();
  bool isKept(ValueId id) const { return kept_.contains(id); }

  // Returns the descriptors of all temporaries. All are dense.
  const std::vector<TensorDesc>& temporaries() const { return temporaries_; }
  // Returns the value that each temporary holds.
  const std::vector<ValueId>& temporaryValues() const { return temporary_values_; }

 private:
  FusionRewriter rewriterFor(const Needed& needed) const;
  SweepSegment::Operand inputOperand(ValueId id) const;
  SweepSegment::Operand outputOperand(ValueId id) const;

  const Fusion& segment_;
  const Analysis& analysis_;
  const AxisExtents& extents_;
  std::map<ValueId, int> kept_;    // values that later parts read -> index into temporaries_
  std::map<ValueId, int> stored_;  // temporaries since the last keep()
  std::vector<TensorDesc> temporaries_;
  std::vector<ValueId> temporary_values_;
};

}  // namespace heddle::codegen
