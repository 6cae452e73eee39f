#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Describes one data movement that insertResharding inserted, as text for dumps. The resulting
// fusion has the list of all moves as an annotation.
struct ReshardMove {
  struct Way {
    std::vector<std::string> steps;
    double bytes = 0;  // the bytes that one device sends, at the size defaults
    bool operator==(const Way&) const = default;
  };
  std::string value;  // name of the result, or of the value that is moved
  std::string from;
  std::string to;
  Way way;                        // the path that was taken
  std::vector<Way> alternatives;  // paths with other first steps, cheapest first
  bool operator==(const ReshardMove&) const = default;
};

inline constexpr const char* kReshardingAnnotation = "resharding";

// Returns one line per move and per alternative; empty if nothing was moved:
//   %y: partial(sum: x) -> shard(@m): allreduce over x (98304 bytes)
//       or reduce_scatter of axis 0 over x, allgather of axis 0 over x (98304 bytes)
std::string dumpResharding(const Fusion& fusion);

}  // namespace heddle
