#include "comm/nccl/copy_channel_table.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "comm/monitor/shared_memory.h"
#include "comm/process/process_info.h"
#include "ir/base/error.h"

namespace heddle::comm::nccl {
namespace {

constexpr const char* kTableName = "lanes";
// Between processes only such will do.
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

}  // namespace

LaneTable::LaneTable(int seats, void* memory, size_t mapped_bytes)
    : seats_(seats), entries_(static_cast<Entry*>(memory)), mapped_bytes_(mapped_bytes) {}

LaneTable::~LaneTable() {
  if (mapped_bytes_ > 0) {
    munmap(entries_, mapped_bytes_);
  } else {
    operator delete (entries_, std::align_val_t{alignof(Entry)});
  }
}

int LaneTable::takeBlock(int seat) {
  std::atomic<uint64_t>& taken = entry(seat).taken;
  uint64_t before = taken.load();
  for (int block = 0; block < kBlocks; ++block) {
    const uint64_t bit = uint64_t{1} << block;
    while ((before & bit) == 0) {
      if (!taken.compare_exchange_weak(before, before | bit)) continue;
      entry(seat).left[block].store(0);
      return block;
    }
  }
  userError("a GPU has memory for at most {} lanes", kBlocks);
}

void LaneTable::giveBlock(int seat, int block) {
  entry(seat).taken.fetch_and(~(uint64_t{1} << block));
}

void LaneTable::leaveBlock(int seat, int block) { entry(seat).left[block].fetch_add(1); }

int LaneTable::leftBlock(int seat, int block) const { return entry(seat).left[block].load(); }

std::shared_ptr<LaneSeat> LaneSeat::take(World& world) {
  using Entry = LaneTable::Entry;
  const BoardPlaces places = findPlaces(world, "");
  const std::vector<int> here = places.onHostOf(world.rank());
  const auto seats = here.size();
  const size_t bytes = seats * sizeof(Entry);
  const auto made = [=](void* memory, bool fresh, size_t mapped) {
    for (size_t i = 0; fresh && i < seats; ++i) new (static_cast<Entry*>(memory) + i) Entry;
    return std::shared_ptr<LaneTable>(new LaneTable(static_cast<int>(seats), memory, mapped));
  };
  std::shared_ptr<LaneTable> table = shareOnHost<LaneTable>(
      world, places,
      {kTableName,
       [&] { return made(operator new (bytes, std::align_val_t{alignof(Entry)}), true, 0); },
       [&](const std::string& path, bool fresh) {
         return made(mapHostFile(kTableName, path, bytes, fresh), fresh, bytes);
       }});
  const auto seat = std::find(here.begin(), here.end(), world.rank()) - here.begin();
  return std::shared_ptr<LaneSeat>(
      new LaneSeat(std::move(table), static_cast<int>(seat), world.rank()));
}

LaneSeat::LaneSeat(std::shared_ptr<LaneTable> table, int seat, int rank)
    : table_(std::move(table)), seat_(seat), rank_(rank) {
  LaneTable::Entry& mine = table_->entry(seat_);
  mine.pid.store(static_cast<int32_t>(getpid()));
  mine.state.store(LaneTable::State::Well);
}

LaneSeat::~LaneSeat() {
  auto before = LaneTable::State::Well;
  table_->entry(seat_).state.compare_exchange_strong(before, LaneTable::State::Gone);
}

void LaneSeat::giveUp(const std::string& why) noexcept {
  using State = LaneTable::State;
  LaneTable::Entry& mine = table_->entry(seat_);
  std::string text;
  try {
    text = fault();
    if (text.empty()) text = fmt::format("rank {} has given up: {}", rank_, why);
  } catch (const std::exception&) {  // no memory: who, but not why
  }
  State before = State::Well;
  if (!mine.state.compare_exchange_strong(before, State::Telling)) return;
  std::memcpy(mine.why, text.data(), std::min(text.size(), LaneTable::kWhyBytes - 1));
  mine.state.store(State::GaveUp);
}

std::string LaneSeat::fault() const {
  using State = LaneTable::State;
  for (int seat = 0; seat < table_->seats_; ++seat) {
    const LaneTable::Entry& entry = table_->entry(seat);
    const State state = entry.state.load();
    if (state == State::GaveUp && entry.why[0] != '\0') return entry.why;
    if (state == State::GaveUp || state == State::Telling)
      return "a rank of this host has given up";
  }
  return {};
}

bool LaneSeat::allHaveHeard() const {
  using State = LaneTable::State;
  for (int seat = 0; seat < table_->seats_; ++seat) {
    const LaneTable::Entry& entry = table_->entry(seat);
    if (entry.state.load() != State::Well) continue;
    const ProcessState process = processState(entry.pid.load());
    if (!process.isGone() && !process.isStopped()) return false;
  }
  return true;
}

}  // namespace heddle::comm::nccl
