#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "host/program/ids.h"
#include "host/program/instruction_kind.h"
#include "ir/base/size.h"

namespace heddle::host {

// Makes `out` a view of the buffer of `in`, without a copy. The type of `out` gives the sizes.
struct Alias {
  // Another name for the same elements.
  struct Same {
    bool operator==(const Same&) const = default;
  };
  // Different axes, same row-major order of elements. Unrolling a program throws UserError if the
  // strides of `in` allow no such view.
  struct Reshape {
    bool operator==(const Reshape&) const = default;
  };
  struct Permute {
    std::vector<int64_t> axes;
    bool operator==(const Permute&) const = default;
  };
  struct Slice {
    std::vector<Size> starts;
    std::vector<Size> stops;
    std::vector<int64_t> steps = {};  // one per axis, greater than 0; empty: every step is 1
    bool operator==(const Slice&) const = default;
  };
  // Selects one index of axis 0 and removes this axis, as in %in[i % 2].
  struct Index {
    Size index;
    bool operator==(const Index&) const = default;
  };
  // The block of `in` that the sharding of `out` assigns to this rank.
  struct Shard {
    bool operator==(const Shard&) const = default;
  };
  // The elements of `in` without the padding of its allocation (Slot::alloc).
  struct Unpad {
    bool operator==(const Unpad&) const = default;
  };
  // Repeats the elements along new axes, and along axes on which `in` has one element (stride 0).
  struct Expand {
    std::vector<int64_t> axes;  // ascending: the axes of `out` that `in` does not have
    bool operator==(const Expand&) const = default;
  };
  // Elements with equal indices along two axes. The new axis is the last one.
  struct Diagonal {
    int64_t first;
    int64_t second;
    bool operator==(const Diagonal&) const = default;
  };
  using View = std::variant<Same, Reshape, Permute, Slice, Index, Shard, Unpad, Expand, Diagonal>;
  SlotId out;
  SlotId in;
  View view;
  bool operator==(const Alias&) const = default;
  static constexpr std::string_view kMnemonic = "alias";
  static constexpr InstructionKind kKind = InstructionKind::View;
};

}  // namespace heddle::host
