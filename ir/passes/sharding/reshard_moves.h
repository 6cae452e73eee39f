#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// What insertResharding has moved, in words, for dumps: an annotation of the fusion that it makes.
struct ReshardMove {
  struct Way {
    std::vector<std::string> steps;
    double bytes = 0;  // that one device sends, by the size defaults
    bool operator==(const Way&) const = default;
  };
  std::string value;  // what the result, or the value that is moved, is called
  std::string from;
  std::string to;
  Way way;                        // the one that was taken
  std::vector<Way> alternatives;  // by other first steps, cheapest first
  bool operator==(const ReshardMove&) const = default;
};

inline constexpr const char* kReshardingAnnotation = "resharding";

// Line by line, empty when nothing was moved:
//   %y: partial(sum: x) -> shard(@m): allreduce over x (98304 bytes)
//       or reduce_scatter of axis 0 over x, allgather of axis 0 over x (98304 bytes)
std::string dumpResharding(const Fusion& fusion);

}  // namespace heddle
