#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/operation.h"

namespace heddle::comm::mpi {

// One operation on its way through MPI, as messages between pairs. Used on the MPI thread only.
//
// A collective has one or two rounds; every pair of ranks that owes each other something in a round
// sends a message even of no elements, so that ranks that disagree about a count hear of it:
//   allreduce, reduce   everybody's version of chunk r to rank r, which reduces it; then chunks to
//                       all, or to the root
//   reduce-scatter      the first round of that
//   broadcast           chunk r to rank r; then chunks to all: no rank sends more than two buffers
//   the rest            parts straight to where they belong
class Transfer {
 public:
  // `turn` is the number of its post among those of its communicator that have a collective,
  // `place` that of a collective in the post, the same on every rank: messages of several
  // collectives that are under way at once differ in their tags.
  Transfer(const Operation& operation, int64_t turn, int place);
  Transfer(Transfer&&) = default;

  const Operation& operation() const { return operation_; }

  // Does the next step that can be done; true when the operation is complete. Throws UserError with
  // MPI's message, or when a peer sent another number of elements.
  bool advance(Channel& channel);

  // After advance() has thrown: lets the other messages end, since MPI has their buffers. True when
  // none is left.
  bool drain();

 private:
  enum class Stage : uint8_t { Waiting, First, Second, Done };
  struct Message {
    MPI_Request request = MPI_REQUEST_NULL;
    int from = -1;         // of a receive
    int64_t elements = 0;  // that it must bring
  };

  void begin(Channel& channel);
  bool messagesAreDone();
  void finishFirst(Channel& channel);

  void exchangeChunks(Channel& channel);
  void spreadChunks(Channel& channel);
  void gather(Channel& channel, const void* mine);
  void shareChunks(Channel& channel, const void* mine);
  bool getsChunks(int rank) const;
  void scatter(Channel& channel);
  void exchangeParts(Channel& channel);

  enum class Way : uint8_t { Send, Receive };
  void post(Channel& channel, Way way, void* data, int64_t count, int peer, int tag);
  void sendTo(Channel& channel, int peer, const void* data, int64_t count);
  void receiveFrom(Channel& channel, int peer, void* data, int64_t count);
  void copy(void* to, const void* from, int64_t count) const;
  void reduceChunk(Channel& channel, void* result);
  std::byte* in(void* base, int64_t index) const;
  const std::byte* in(const void* base, int64_t index) const;
  // The chunks of what is reduced or broadcast, by rank.
  Chunk chunk(const Channel& channel, int rank) const;

  std::vector<int64_t> counts_;  // both lists of an AllToAllV, which the operation then names
  Operation operation_;
  int64_t turn_;
  int tag_;
  Stage stage_ = Stage::Waiting;
  std::vector<Message> messages_;
  size_t next_ = 0;                     // those before it are complete
  std::unique_ptr<std::byte[]> parts_;  // everybody's version of this rank's chunk
};

}  // namespace heddle::comm::mpi
