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

constexpr const char* kTableName = "copy_channels";
// Between processes only such will do.
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

}  // namespace

CopyChannelTable::CopyChannelTable(int seats, void* memory, size_t mapped_bytes)
    : seats_(seats), entries_(static_cast<Entry*>(memory)), mapped_bytes_(mapped_bytes) {}

CopyChannelTable::~CopyChannelTable() {
  if (mapped_bytes_ > 0) {
    munmap(entries_, mapped_bytes_);
  } else {
    operator delete (entries_, std::align_val_t{alignof(Entry)});
  }
}

int CopyChannelTable::takeBlock(int seat) {
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
  userError("a GPU has memory for at most {} copy channels", kBlocks);
}

void CopyChannelTable::giveBlock(int seat, int block) {
  entry(seat).taken.fetch_and(~(uint64_t{1} << block));
}

void CopyChannelTable::leaveBlock(int seat, int block) { entry(seat).left[block].fetch_add(1); }

int CopyChannelTable::leftBlock(int seat, int block) const {
  return entry(seat).left[block].load();
}

std::shared_ptr<CopyChannelMember> CopyChannelMember::take(World& world) {
  using Entry = CopyChannelTable::Entry;
  const JobPlaces places = findPlaces(world, "");
  const std::vector<int> here = places.onHostOf(world.rank());
  const auto seats = here.size();
  const size_t bytes = seats * sizeof(Entry);
  const auto made = [=](void* memory, bool fresh, size_t mapped) {
    for (size_t i = 0; fresh && i < seats; ++i) new (static_cast<Entry*>(memory) + i) Entry;
    return std::shared_ptr<CopyChannelTable>(
        new CopyChannelTable(static_cast<int>(seats), memory, mapped));
  };
  std::shared_ptr<CopyChannelTable> table = shareOnHost<CopyChannelTable>(
      world, places,
      {kTableName,
       [&] { return made(operator new (bytes, std::align_val_t{alignof(Entry)}), true, 0); },
       [&](const std::string& path, bool fresh) {
         return made(mapSharedMemoryFile(kTableName, path, bytes, fresh), fresh, bytes);
       }});
  const auto seat = std::find(here.begin(), here.end(), world.rank()) - here.begin();
  return std::shared_ptr<CopyChannelMember>(
      new CopyChannelMember(std::move(table), static_cast<int>(seat), world.rank()));
}

CopyChannelMember::CopyChannelMember(std::shared_ptr<CopyChannelTable> table, int seat, int rank)
    : table_(std::move(table)), seat_(seat), rank_(rank) {
  CopyChannelTable::Entry& mine = table_->entry(seat_);
  mine.pid.store(static_cast<int32_t>(getpid()));
  mine.state.store(CopyChannelTable::State::Well);
}

CopyChannelMember::~CopyChannelMember() {
  auto before = CopyChannelTable::State::Well;
  table_->entry(seat_).state.compare_exchange_strong(before, CopyChannelTable::State::Gone);
}

void CopyChannelMember::giveUp(const std::string& why) noexcept {
  using State = CopyChannelTable::State;
  CopyChannelTable::Entry& mine = table_->entry(seat_);
  std::string text;
  try {
    text = fault();
    if (text.empty()) text = fmt::format("rank {} has given up: {}", rank_, why);
  } catch (const std::exception&) {  // no memory: who, but not why
  }
  State before = State::Well;
  if (!mine.state.compare_exchange_strong(before, State::Telling)) return;
  std::memcpy(mine.why, text.data(), std::min(text.size(), CopyChannelTable::kWhyBytes - 1));
  mine.state.store(State::GaveUp);
}

std::string CopyChannelMember::fault() const {
  using State = CopyChannelTable::State;
  for (int seat = 0; seat < table_->seats_; ++seat) {
    const CopyChannelTable::Entry& entry = table_->entry(seat);
    const State state = entry.state.load();
    if (state == State::GaveUp && entry.why[0] != '\0') return entry.why;
    if (state == State::GaveUp || state == State::Telling)
      return "a rank of this host has given up";
  }
  return {};
}

bool CopyChannelMember::allHaveHeard() const {
  using State = CopyChannelTable::State;
  for (int seat = 0; seat < table_->seats_; ++seat) {
    const CopyChannelTable::Entry& entry = table_->entry(seat);
    if (entry.state.load() != State::Well) continue;
    const ProcessState process = processState(entry.pid.load());
    if (!process.isGone() && !process.isStopped()) return false;
  }
  return true;
}

}  // namespace heddle::comm::nccl
