#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/communicator.h"

namespace heddle::comm::nccl {

// What the ranks of one host that may have copy channels (CopyCommunicator) tell each other in host
// memory, where it takes neither a stream nor a transport: who has given up, and who has closed
// whose memory. Thread-safe; nothing here waits. A rank has a seat in it, by its order on the host.
class CopyChannelTable {
 public:
  static constexpr int kBlocks = 64;  // of a rank at once

  ~CopyChannelTable();
  CopyChannelTable(const CopyChannelTable&) = delete;
  CopyChannelTable& operator=(const CopyChannelTable&) = delete;

  // A number for a block of memory that peers will open; UserError when there is none left.
  int takeBlock(int seat);
  void giveBlock(int seat, int block);
  // One more peer will not touch the block again; how many have said so.
  void leaveBlock(int seat, int block);
  int leftBlock(int seat, int block) const;

 private:
  friend class CopyChannelMember;
  enum class State : uint32_t { Absent, Well, Telling, GaveUp, Gone };
  static constexpr size_t kWhyBytes = 496;
  struct alignas(64) Entry {
    std::atomic<State> state{State::Absent};
    std::atomic<int32_t> pid{0};
    char why[kWhyBytes] = "";  // before `state` is GaveUp
    std::atomic<uint64_t> taken{0};
    std::atomic<int32_t> left[kBlocks] = {};
  };
  CopyChannelTable(int seats, void* memory, size_t mapped_bytes);
  Entry& entry(int seat) const { return entries_[seat]; }

  int seats_;
  Entry* entries_;
  size_t mapped_bytes_;  // 0: plain memory
};

// A rank in its table, until it has no communicators any more.
//
// Who gives up says so before what it has posted goes on, and who has waited for streams looks
// after they have ended: when something has come from a rank that had given up, by however many
// others, that is known by then.
class CopyChannelMember {
 public:
  // Collective over the job. UserError on all ranks when one cannot have its host's table.
  static std::shared_ptr<CopyChannelMember> take(World& world);
  ~CopyChannelMember();
  CopyChannelMember(const CopyChannelMember&) = delete;
  CopyChannelMember& operator=(const CopyChannelMember&) = delete;

  const std::shared_ptr<CopyChannelTable>& table() const { return table_; }
  int index() const { return seat_; }

  // Once; what comes later, or only follows another's, changes nothing of what is said.
  void giveUp(const std::string& why) noexcept;
  // Which rank of the host has given up, and why; empty: none.
  std::string fault() const;
  // All ranks of the host have given up too, or have no communicators, or are gone. One that is
  // stopped is not waited for: it looks here when it goes on.
  bool allHaveHeard() const;

 private:
  CopyChannelMember(std::shared_ptr<CopyChannelTable> table, int seat, int rank);

  std::shared_ptr<CopyChannelTable> table_;
  int seat_;
  int rank_;
};

}  // namespace heddle::comm::nccl
