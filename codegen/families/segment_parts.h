#pragma once

#include <map>
#include <vector>

#include "codegen/families/sweeps.h"
#include "codegen/plan/space.h"
#include "ir/graph/rewrite.h"

namespace heddle::codegen {

// Divides a segment into parts: segments that run one after another and together compute the
// outputs of the segment. A part stores some of its values as temporaries, and later parts read
// them.
class SegmentParts {
 public:
  // The references must outlive this object.
  SegmentParts(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents);

  // The expressions that compute some values, and the values that the expressions read but do not
  // compute: inputs of the segment and temporaries.
  struct Needed {
    std::vector<ExprId> exprs;
    std::vector<ValueId> inputs;
  };
  Needed neededFor(const std::vector<ValueId>& wanted) const;

  // Returns the part that computes `outputs` of the segment and stores the values `extra` as new
  // temporaries. An output that already is a temporary is copied. Later parts still compute the
  // values of `extra` again, until keep() is called.
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
