#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/monitor/rank_locations.h"
#include "comm/monitor/rank_status.h"

namespace heddle::comm::nccl {

// A table in host memory that the ranks of one machine share. A rank *gives up* after a failure: it
// ends its posted work, whose results are then invalid (JobMember::giveUp in
// comm/nccl/job_member.h). The table shows which ranks have given up. It also counts how many
// ranks have closed each block of device memory of a copy channel (comm/nccl/shared_arena.h).
// After a failure, the table works even if streams and transports are blocked. In the functions
// below, `index` is the index of a rank among the ranks of this machine. Thread-safe. Only the
// constructor waits.
class CopyChannelTable {
 public:
  static constexpr int kBlocks = 64;  // largest number of blocks that one rank may have at a time

  // Collective over the job. If the call fails on one rank, every rank throws UserError.
  explicit CopyChannelTable(World& world);
  CopyChannelTable(const CopyChannelTable&) = delete;
  CopyChannelTable& operator=(const CopyChannelTable&) = delete;

  // Returns a free number for a block of device memory that the rank `index` owns and that other
  // ranks will open. Throws UserError if all kBlocks numbers of the owner are in use.
  int takeBlock(int index);
  // Makes the number `block` of the owner `index` free again.
  void returnBlock(int index, int block);
  // Reports that a rank that had opened the block `block` of the owner `index` will not access it
  // again.
  void closeBlock(int index, int block);
  // Returns how many ranks have called closeBlock() for the block.
  int closedBy(int index, int block) const;

 private:
  friend class CopyChannelMember;
  struct alignas(64) Entry {
    // Writing or Failed: the rank has given up. Left: the rank has destroyed its World and its
    // communicators.
    StateWithReason state;
    std::atomic<uint64_t> taken{0};             // bit i: number i is in use
    std::atomic<int32_t> closed[kBlocks] = {};  // by block: number of ranks that have closed it
  };
  Entry& entry(int index) const { return entries_[static_cast<size_t>(index)]; }
  int size() const { return static_cast<int>(ranks_.size()); }

  RankLocations locations_;
  std::vector<int> ranks_;  // by index: the rank in the job
  std::shared_ptr<Entry[]> entries_;
};

// Owns the entry of one rank in the CopyChannelTable of its machine. The World and the
// communicators of the rank share the object.
//
// A rank that gives up writes this fact to the table before its streams continue with invalid
// data. Every rank reads the table after its own streams have ended. The rank then knows whether it
// may have received invalid data, even if the data came through a third rank.
class CopyChannelMember {
 public:
  // Creates the table of the machine, and the member for the rank of `world`. Collective over the
  // job. If the call fails on one rank, every rank throws UserError.
  static std::shared_ptr<CopyChannelMember> join(World& world);
  ~CopyChannelMember();
  CopyChannelMember(const CopyChannelMember&) = delete;
  CopyChannelMember& operator=(const CopyChannelMember&) = delete;

  const std::shared_ptr<CopyChannelTable>& table() const { return table_; }
  int index() const { return index_; }

  // Writes to the table that this rank gives up because of `why`. If another rank of the machine
  // has given up earlier, stores the reason of that rank instead of `why`. A second call has no
  // effect.
  void giveUp(const std::string& why) noexcept;
  // Returns an empty text if no rank of the machine has given up. Otherwise returns a text with the
  // number of a rank that has given up and its reason, if the table contains them.
  std::string fault() const;
  // Returns whether every rank of the machine has given up. Ignores ranks that have destroyed their
  // CopyChannelMember, and ranks whose process has ended or is stopped. A stopped rank will read
  // the table when it continues.
  bool allKnow() const;

 private:
  CopyChannelMember(std::shared_ptr<CopyChannelTable> table, int index, int rank);

  std::shared_ptr<CopyChannelTable> table_;
  int index_;
  int rank_;
};

}  // namespace heddle::comm::nccl
