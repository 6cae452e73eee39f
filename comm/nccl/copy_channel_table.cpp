#include "comm/nccl/copy_channel_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/monitor/shared_memory.h"
#include "comm/process/process_info.h"
#include "ir/base/check.h"

namespace heddle::comm::nccl {

CopyChannelTable::CopyChannelTable(World& world)
    : locations_(findLocations(world, "")),
      ranks_(locations_.onMachineOf(world.rank())),
      entries_(shareArrayOnMachine<Entry>(world, locations_, "copy_channels", ranks_.size())) {}

int CopyChannelTable::takeBlock(int index) {
  std::atomic<uint64_t>& taken = entry(index).taken;
  uint64_t before = taken.load();
  for (int block = 0; block < kBlocks; ++block) {
    const uint64_t bit = uint64_t{1} << block;
    while ((before & bit) == 0) {
      if (!taken.compare_exchange_weak(before, before | bit)) continue;
      entry(index).closed[block].store(0);
      return block;
    }
  }
  userError("a rank can have the memory of at most {} copy channels at a time", kBlocks);
}

void CopyChannelTable::returnBlock(int index, int block) {
  entry(index).taken.fetch_and(~(uint64_t{1} << block));
}

void CopyChannelTable::closeBlock(int index, int block) { entry(index).closed[block].fetch_add(1); }

int CopyChannelTable::closedBy(int index, int block) const {
  return entry(index).closed[block].load();
}

std::shared_ptr<CopyChannelMember> CopyChannelMember::join(World& world) {
  auto table = std::make_shared<CopyChannelTable>(world);
  const std::vector<int>& ranks = table->ranks_;
  const auto index = std::find(ranks.begin(), ranks.end(), world.rank()) - ranks.begin();
  return std::shared_ptr<CopyChannelMember>(
      new CopyChannelMember(std::move(table), static_cast<int>(index), world.rank()));
}

CopyChannelMember::CopyChannelMember(std::shared_ptr<CopyChannelTable> table, int index, int rank)
    : table_(std::move(table)), index_(index), rank_(rank) {}

CopyChannelMember::~CopyChannelMember() { table_->entry(index_).state.leave(RankState::Left, ""); }

void CopyChannelMember::giveUp(const std::string& why) noexcept {
  std::string text;
  try {
    text = fault();
    if (text.empty()) text = fmt::format("rank {} has given up: {}", rank_, why);
  } catch (const std::exception&) {
    // This process is out of memory. The table only shows that the rank gave up, but not why.
  }
  table_->entry(index_).state.leave(RankState::Failed, text);
}

std::string CopyChannelMember::fault() const {
  for (int index = 0; index < table_->size(); ++index) {
    const StateWithReason& status = table_->entry(index).state;
    // The state may change from Writing to Failed at any time, so it is loaded only once.
    const RankState state = status.get();
    if (state != RankState::Failed && state != RankState::Writing) continue;
    const std::string reason = status.reason();
    return reason.empty() ? "a rank of this machine has given up" : reason;
  }
  return {};
}

bool CopyChannelMember::allKnow() const {
  for (int index = 0; index < table_->size(); ++index) {
    if (table_->entry(index).state.get() != RankState::Alive) continue;
    const int rank = table_->ranks_[index];
    const int pid = table_->locations_[rank].pid;
    const ProcessState process = processState(pid);
    if (!process.isGone() && !process.isStopped()) return false;
  }
  return true;
}

}  // namespace heddle::comm::nccl
