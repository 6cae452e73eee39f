#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Describes one data movement that insertResharding inserted, as text for dumps. insertResharding
// stores the list of all moves as an annotation of its result. joinReductions updates the list.
struct ReshardMove {
  // One path of steps from one sharding to another.
  struct Way {
    std::vector<std::string> steps;  // in the form of describeStep() (reshard_path.h)
    // The bytes that one device sends. Symbols of sizes have the values that ReshardPaths
    // (reshard_path.h) describes.
    double bytes = 0;
    bool operator==(const Way&) const = default;
  };
  // Name of the value that the move computes. If the move only brings an operand into the sharding
  // that an expression needs, this is the name of the operand.
  std::string value;
  std::string from;               // text form of the sharding before the move
  std::string to;                 // text form of the sharding after the move
  Way way;                        // the path that was taken
  std::vector<Way> alternatives;  // paths with a different first step, cheapest first
  bool operator==(const ReshardMove&) const = default;
};

inline constexpr const char* kReshardingAnnotation = "resharding";

// Returns one line per move and one line per alternative, or "" if nothing was moved. For example:
//   %y: shard(@m) partial(sum: x) -> shard(@m): allreduce over x (98304 bytes)
//       or reduce_scatter of axis 0 over x, allgather of axis 0 over x (98304 bytes)
std::string dumpResharding(const Fusion& fusion);

}  // namespace heddle
