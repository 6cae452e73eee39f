#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/program/pass_options.h"
#include "host/program/program.h"
#include "ir/base/size.h"

namespace heddle::host {

// Nominal sizes are values of the size symbols. Passes use these values to estimate times and to
// choose the fastest of several correct programs. The value of a symbol is the first of these that
// exists:
//   its value in PassOptions::chunk_sizes
//   its default in the program
//   4096
// All ranks have the same nominal sizes, so all ranks choose the same program.
class NominalSizes {
 public:
  NominalSizes(const Program& program, const PassOptions& options);

  // Returns the value of the size at the nominal sizes, or 4096 if the size overflows or divides by
  // 0.
  double value(const Size& size) const;
  // Returns the number of elements in one device's block of the slot. Assumes that all devices hold
  // blocks of equal size.
  double elements(const Program& program, const Slot& slot) const;
  // Returns the size of the same block in bytes.
  double bytes(const Program& program, const Slot& slot) const;
  // Returns whether the size is larger than `limit` at the nominal sizes. Returns true if the size
  // overflows or divides by 0. The functions of this class record in SizeReads
  // (ir/sizes/size_reads.h) on what the program depends: value() records the value of the size, and
  // isAbove() only its answer. After isAbove(), the fusion is therefore lowered again only for
  // sizes with another answer.
  bool isAbove(const Size& size, int64_t limit) const;

 private:
  std::optional<int64_t> find(const std::string& symbol) const;
  SizeBindings sizes_;
};

// Returns the number of blocks into which the sharding of the slot splits `axis`.
int64_t devicesOf(const Program& program, const Slot& slot, size_t axis);
// Returns the extent of `axis` in each device's block. Assumes that all blocks have equal extents.
Size evenExtent(const Program& program, const Slot& slot, size_t axis);
// Returns the bytes of the slot in each device's block. Assumes that all blocks have equal sizes.
Size evenBytes(const Program& program, const Slot& slot);

}  // namespace heddle::host
