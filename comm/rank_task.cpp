#include "comm/rank_task.h"

#include <array>

namespace heddle::comm {
namespace {

struct Names {
  std::string_view short_name;
  std::string_view text;
};

// Indexed by RankTask. The texts continue "the rank ..." in messages.
constexpr std::array<Names, kRankTasks> kNames = {{
    {"", ""},
    {"read", "reads its files"},
    {"compile", "compiles the program"},
    {"settings", "compares its settings with the other ranks"},
    {"programs", "compares its program with the other ranks"},
    {"communicators", "creates communicators"},
    {"inputs", "copies its inputs to the device"},
    {"prepare", "prepares a run"},
    {"algorithms", "agrees with the other ranks on the algorithms of matrix products"},
    {"tune", "tunes kernels together with the other ranks"},
    {"outputs", "collects the outputs of all ranks"},
    {"timeline", "writes the timeline"},
    {"check", "checks the outputs"},
    {"write", "writes the outputs"},
    {"report", "writes its report"},
    {"leave", "leaves its job"},
}};

}  // namespace

std::string_view describe(RankTask task) { return kNames.at(static_cast<size_t>(task)).text; }

std::optional<RankTask> rankTaskOf(std::string_view short_name) {
  for (uint32_t task = 1; task < kRankTasks; ++task) {
    if (kNames.at(task).short_name == short_name) return static_cast<RankTask>(task);
  }
  return std::nullopt;
}

}  // namespace heddle::comm
