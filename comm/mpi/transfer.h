#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/operation.h"

namespace heddle::comm::mpi {

// Executes one operation as messages between pairs of ranks. Use it only on the MPI thread
// (comm/mpi/mpi_thread.h).
//
// A collective other than a barrier has one or two rounds of messages. A message is sent even if it
// has no elements, so that ranks which disagree about a count get an error instead of waiting for
// ever. Chunk r consists of the elements that chunkOf() (comm/operation.h) assigns to rank r. In a
// reduce-scatter, chunk r consists of the elements whose reduced values rank r receives. The rounds
// are:
//   allreduce, reduce  round 1: every rank sends chunk r to rank r, which reduces it.
//                      round 2: the reduced chunks are sent to all ranks, or to the root.
//   reduce-scatter     round 1 of an allreduce
//   broadcast          round 1: the root sends chunk r to rank r.
//                      round 2: each rank sends its chunk to all other ranks except the root. No
//                      rank sends more than twice the elements of the buffer plus one element
//                      per rank.
//   barrier            one call of MPI_Ibarrier
//   others             one round: each part is sent directly to its receiver.
class Transfer {
 public:
  // `post_number` counts the posts of this communicator that contain a collective
  // (Channel::next_post). `index` is the number of the collective within its post. Both numbers
  // are equal on every rank. `index` selects the tag of the messages, so collectives that run at
  // the same time have different tags. Sends and receives use neither number.
  Transfer(const Operation& operation, int64_t post_number, int index);
  Transfer(Transfer&&) = default;

  const Operation& operation() const { return operation_; }

  // Executes all steps that are possible now. Returns true if the operation has completed. Throws
  // UserError if a call of MPI fails (with MPI's error text), or if another rank sent a different
  // number of elements.
  bool advance(Channel& channel);

  // Polls the remaining messages. Call it after advance() has thrown, because MPI still uses the
  // buffers of these messages. Returns true if all messages have ended.
  bool drain();

 private:
  enum class Stage : uint8_t { Waiting, First, Second, Done };
  struct Message {
    MPI_Request request = MPI_REQUEST_NULL;
    int from = -1;         // receive: the sender; send: -1
    int64_t elements = 0;  // receive: the expected number
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

  enum class Direction : uint8_t { Send, Receive };
  void post(Channel& channel, Direction direction, void* data, int64_t count, int peer, int tag);
  void sendTo(Channel& channel, int peer, const void* data, int64_t count);
  void receiveFrom(Channel& channel, int peer, void* data, int64_t count);
  void copy(void* to, const void* from, int64_t count) const;
  void reduceChunk(Channel& channel, void* result);
  std::byte* in(void* base, int64_t index) const;
  const std::byte* in(const void* base, int64_t index) const;
  // Returns the chunk of `rank` in the data that is reduced or broadcast.
  Chunk chunk(const Channel& channel, int rank) const;

  std::vector<int64_t> counts_;  // the lists of counts of an AllToAllV; operation_ refers to them
  Operation operation_;
  int64_t post_number_;
  int tag_;
  Stage stage_ = Stage::Waiting;
  std::vector<Message> messages_;
  size_t next_ = 0;                     // index in messages_; all earlier messages have completed
  std::unique_ptr<std::byte[]> parts_;  // the inputs of all ranks for the chunk of this rank
};

}  // namespace heddle::comm::mpi
