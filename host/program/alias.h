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
  // Gives the same elements another name.
  struct Same {
    bool operator==(const Same&) const = default;
  };
  // Regroups the axes. The elements keep their row-major order. unroll() throws UserError if the
  // strides of `in` allow no such view.
  struct Reshape {
    bool operator==(const Reshape&) const = default;
  };
  // Reorders the axes: axis i of `out` is axis axes[i] of `in`.
  struct Permute {
    std::vector<int64_t> axes;
    bool operator==(const Permute&) const = default;
  };
  // Selects, along each axis, the indices start, start + step, ... that are less than stop.
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
  // Selects the block of `in` that the sharding of `out` assigns to this rank.
  struct Shard {
    bool operator==(const Shard&) const = default;
  };
  // Leaves out padding. Along each axis, the allocated size of `out` is the smaller one of two
  // sizes: the allocated size that the slot of `out` declares, and the allocated size of `in`.
  struct Unpad {
    bool operator==(const Unpad&) const = default;
  };
  // Repeats the elements along new axes, and along each axis on which `in` has one element and
  // `out` a different number of elements. The strides of these axes are 0.
  struct Expand {
    std::vector<int64_t> axes;  // ascending: the axes of `out` that `in` does not have
    bool operator==(const Expand&) const = default;
  };
  // Selects the elements with equal indices along two axes of `in`. `out` lacks these two axes. Its
  // last axis is the diagonal.
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
