#include "codegen/emit/kernel_stages.h"

#include <fmt/format.h>

#include <boost/algorithm/string/replace.hpp>
#include <set>
#include <string>

#include "codegen/text_hash.h"
#include "ir/base/check.h"

namespace heddle::codegen {

LaunchStage makeStage(const std::string& entry, TileProgram& first, TileProgram& second) {
  LaunchStage stage = makeStage(first);
  HEDDLE_CHECK(stage.grid * static_cast<int64_t>(sizeof(unsigned)) <= LaunchStage::kCounterBytes,
               "{} has {} groups of blocks, which are more than the counters", entry, stage.grid);
  second.frame.args.moveInto(stage);
  stage.entry = entry;
  stage.pointers.push_back({static_cast<int32_t>(stage.args.size()), LaunchStage::kCounters});
  stage.args.resize(stage.args.size() + sizeof(void*));
  return stage;
}

void nameEntries(KernelPlan& plan, std::string* copy) {
  const std::string suffix = fmt::format("_{:016x}", hash64(plan.source.text));
  std::set<std::string> entries;
  for (LaunchStage& stage : plan.stages) {
    if (entries.insert(stage.entry).second) {
      boost::replace_all(plan.source.text, stage.entry, stage.entry + suffix);
      if (copy != nullptr) boost::replace_all(*copy, stage.entry, stage.entry + suffix);
    }
    stage.entry += suffix;
  }
}

int32_t entriesOf(const std::vector<StageLayout>& layouts) {
  size_t entries = 0;
  for (const StageLayout& layout : layouts) entries += layout.structs.size();
  return static_cast<int32_t>(entries);
}

void appendLayouts(std::vector<StageLayout>& all, std::vector<StageLayout> part, int32_t entries,
                   int32_t temporaries) {
  for (StageLayout& layout : part) {
    for (StageLayout::Struct& each : layout.structs) each.entry += entries;
    for (int32_t& temporary : layout.temporaries) {
      if (temporary >= 0) temporary += temporaries;
    }
    all.push_back(std::move(layout));
  }
}

void noteTemporaries(const SweepSegment& sweep, const KernelPlan& plan, int32_t temporaries,
                     std::vector<StageLayout>& layouts, size_t first) {
  for (const LaunchStage& launch : plan.stages) {
    std::vector<int32_t>& noted = layouts[first++].temporaries;
    noted.resize(launch.pointers.size(), -1);
    for (size_t i = 0; i < launch.pointers.size(); ++i) {
      const int32_t operand = launch.pointers[i].operand;
      if (operand == LaunchStage::kWorkspace || operand == LaunchStage::kCounters) continue;
      const int32_t temporary = operandOf(sweep, operand).temporary;
      if (temporary >= 0) noted[i] = temporaries + temporary;
    }
  }
}

}  // namespace heddle::codegen
