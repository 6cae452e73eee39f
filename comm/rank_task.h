#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::comm {

// What a rank does outside of its runs. A run is one execution of a host program. Messages about a
// failure or a signal contain this task.
enum class RankTask : uint32_t {
  None,  // unknown, for example work of the program that uses heddle
  Reading,
  CompilingProgram,
  ComparingSettings,
  ComparingPrograms,
  CreatingCommunicators,
  CopyingInputs,
  PreparingRun,
  AgreeingOnAlgorithms,
  TuningKernels,
  CollectingOutputs,
  WritingTimeline,
  Checking,
  WritingOutputs,
  Reporting,
  Leaving,
};
constexpr uint32_t kRankTasks = static_cast<uint32_t>(RankTask::Leaving) + 1;

// Returns a text that continues "the rank ...", for example "reads its files". The text for None is
// empty.
std::string_view describe(RankTask task);
// Returns the task with this short name, for example "read", or nullopt if there is none. The
// option --inject of `heddle run` takes short names.
std::optional<RankTask> rankTaskOf(std::string_view short_name);

}  // namespace heddle::comm
