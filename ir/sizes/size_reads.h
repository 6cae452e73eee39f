#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/base/size.h"

namespace heddle {

// A record of the values of sizes that decided something while a fusion was lowered. If all these
// expressions have the same values for new sizes, lowering gives the same program, so the caller
// need not lower the fusion again. Passes that read values of sizes must therefore call note(). A
// pass that asks a yes/no question notes an expression with few values, such as `t % 4`.
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

  // Notes that the value of the size has decided something. Does nothing without a Recording.
  static void note(const Size& size, int64_t value);
  // Notes a decision that depends on the sizes in another way. holdFor() then returns false.
  static void noteOther();

  // Returns whether all noted expressions have the same values for these sizes. Returns false if
  // noteOther() was called.
  bool holdFor(const SizeBindings& sizes) const;

 private:
  static constexpr size_t kMost = 256;  // with more reads, holdFor() returns false
  std::vector<std::pair<Size, int64_t>> reads_;
  bool complete_ = true;
};

}  // namespace heddle
