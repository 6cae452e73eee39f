#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/monitor/job_places.h"
#include "comm/monitor/rank_status.h"

namespace heddle::comm::nccl {

// A table in host memory that the ranks of one host share. It shows which ranks have given up
// (JobMember::giveUp), and how many ranks have closed each block of device memory. It uses no
// stream, no transport and no job monitor. A parameter `index` is the index of a rank among the
// ranks of its host. Thread-safe; no function waits.
class CopyChannelTable {
 public:
  static constexpr int kBlocks = 64;  // that one rank may have at a time

  // Collective over the job. If the call fails on one rank, every rank throws the UserError.
  explicit CopyChannelTable(World& world);
  CopyChannelTable(const CopyChannelTable&) = delete;
  CopyChannelTable& operator=(const CopyChannelTable&) = delete;

  // Returns a number for a block of device memory that other ranks will open. Throws UserError if
  // all kBlocks numbers are in use.
  int takeBlock(int index);
  void returnBlock(int index, int block);
  // Reports that one more rank will not access the block again.
  void closeBlock(int index, int block);
  // Returns how many ranks have called closeBlock() for the block.
  int closedBy(int index, int block) const;

 private:
  friend class CopyChannelMember;
  struct alignas(64) Entry {
    // Failed: the rank gave up. Left: the rank has no communicators any more.
    StateWithReason state;
    std::atomic<uint64_t> taken{0};
    std::atomic<int32_t> closed[kBlocks] = {};
  };
  Entry& entry(int index) const { return entries_[static_cast<size_t>(index)]; }
  int size() const { return static_cast<int>(ranks_.size()); }

  JobPlaces places_;
  std::vector<int> ranks_;  // by index
  std::shared_ptr<Entry[]> entries_;
};

// The entry of one rank in its table, while the rank has communicators.
//
// When a rank gives up, it writes this to the table before its streams continue. A rank that waits
// for its streams reads the table after the streams have ended. So the rank then knows whether it
// may have received invalid data, even if the data came through other ranks.
class CopyChannelMember {
 public:
  // Collective over the job. If the call fails on one rank, every rank throws the UserError.
  static std::shared_ptr<CopyChannelMember> join(World& world);
  ~CopyChannelMember();
  CopyChannelMember(const CopyChannelMember&) = delete;
  CopyChannelMember& operator=(const CopyChannelMember&) = delete;

  const std::shared_ptr<CopyChannelTable>& table() const { return table_; }
  int index() const { return index_; }

  // Writes to the table that this rank gives up. The stored reason is `why`, or the reason of a
  // rank of the host that gave up earlier. A second call has no effect.
  void giveUp(const std::string& why) noexcept;
  // Returns a text that names a rank of the host that gave up, and its reason. Empty: no rank gave
  // up.
  std::string fault() const;
  // Returns whether every other rank of the host knows of the failure. That is so if the rank has
  // given up too, has no communicators any more, or its process has ended or is stopped. A stopped
  // rank will read the table when it continues.
  bool allKnow() const;

 private:
  CopyChannelMember(std::shared_ptr<CopyChannelTable> table, int index, int rank);

  std::shared_ptr<CopyChannelTable> table_;
  int index_;
  int rank_;
};

}  // namespace heddle::comm::nccl
