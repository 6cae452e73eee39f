#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/base/size.h"

namespace heddle {

// While a fusion is lowered, the values of some sizes (expressions) decide which program results.
// This class records these sizes and their values. If all recorded sizes have the same values in a
// new run, lowering for this run would give the same program, so the caller need not lower the
// fusion again. A pass that reads the value of a size must therefore call note(). If the pass needs
// only a property of the value, for example whether `t` is divisible by 4, it should note an
// expression with few different values: `t % 4` instead of `t`. The record then holds for more
// runs.
class SizeReads {
 public:
  // While the object exists, calls of note() in this thread add to `reads`, which must outlive the
  // object.
  class Recording {
   public:
    explicit Recording(SizeReads& reads);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    SizeReads* previous_;
  };

  // Notes that the value of the size has decided something. Does nothing if this thread has no
  // Recording.
  static void note(const Size& size, int64_t value);
  // Notes a decision that depends on the sizes in another way. holdFor() then returns false.
  static void noteOther();

  // Returns whether all noted sizes have the noted values if symbols have the values `sizes`.
  // Returns false if noteOther() was called.
  bool holdFor(const SizeBindings& sizes) const;

 private:
  static constexpr size_t kMost = 256;  // with more noted sizes, holdFor() returns false
  std::vector<std::pair<Size, int64_t>> reads_;
  bool complete_ = true;
};

}  // namespace heddle
