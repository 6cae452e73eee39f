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

// A table in host memory that the ranks of one host share: which ranks have given up, and which
// ranks have closed whose device memory. It needs neither a stream nor a transport nor a job
// monitor. A rank is addressed by its index among the ranks of its host. Thread-safe; no function
// waits.
class CopyChannelTable {
 public:
  static constexpr int kBlocks = 64;  // of one rank at a time

  // Collective over the job. If one rank fails, every rank throws the UserError.
  explicit CopyChannelTable(World& world);
  CopyChannelTable(const CopyChannelTable&) = delete;
  CopyChannelTable& operator=(const CopyChannelTable&) = delete;

  // Returns a number for a block of device memory that other ranks will open. Throws UserError if
  // all kBlocks numbers are in use.
  int takeBlock(int index);
  void returnBlock(int index, int block);
  // Reports that one more rank will not access the block again.
  void closeBlock(int index, int block);
  // Returns how many ranks have reported that.
  int closedBy(int index, int block) const;

 private:
  friend class CopyChannelMember;
  struct alignas(64) Entry {
    StateWithReason state;  // Failed: the rank gave up; Left: it has no communicators any more
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
// A rank writes that it gives up before its streams continue. A rank that waits for streams reads
// the table after they have ended. So a rank that received invalid data, even through other ranks,
// knows it by then.
class CopyChannelMember {
 public:
  // Collective over the job. If one rank fails, every rank throws the UserError.
  static std::shared_ptr<CopyChannelMember> join(World& world);
  ~CopyChannelMember();
  CopyChannelMember(const CopyChannelMember&) = delete;
  CopyChannelMember& operator=(const CopyChannelMember&) = delete;

  const std::shared_ptr<CopyChannelTable>& table() const { return table_; }
  int index() const { return index_; }

  // Keeps the first reason; if another rank of the host gave up before, the reason of that rank.
  void giveUp(const std::string& why) noexcept;
  // Returns which rank of the host gave up, and why. Empty: none.
  std::string fault() const;
  // Returns whether every other rank of the host has given up too, has no communicators any more,
  // or its process is gone or stopped. A stopped rank reads the table when it continues.
  bool allKnow() const;

 private:
  CopyChannelMember(std::shared_ptr<CopyChannelTable> table, int index, int rank);

  std::shared_ptr<CopyChannelTable> table_;
  int index_;
  int rank_;
};

}  // namespace heddle::comm::nccl
