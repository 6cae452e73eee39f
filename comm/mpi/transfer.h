#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/operation.h"

namespace heddle::comm::mpi {

// Executes one operation as messages between pairs of ranks. Used on the MPI thread only.
//
// A collective has one or two rounds. Every pair of ranks that has data to exchange in a round
// sends a message, even one without elements, so that ranks that disagree about a count get an
// error:
//   allreduce, reduce   first, every rank sends chunk r to rank r, which reduces it; then the
//   reduced
//                       chunks are sent to all ranks, or to the root
//   reduce-scatter      the first round of an allreduce
//   broadcast           first, chunk r is sent to rank r; then the chunks to all ranks, so that no
//                       rank sends more than twice the buffer
//   others              each part is sent directly to its receiver
class Transfer {
 public:
  // `post_number` counts the posts of the communicator that have a collective; `index` counts the
  // collectives of the post. Both are equal on every rank. Messages of collectives that run at the
  // same time have different tags.
  Transfer(const Operation& operation, int64_t post_number, int index);
  Transfer(Transfer&&) = default;

  const Operation& operation() const { return operation_; }

  // Executes the next possible step. Returns true if the operation has completed. Throws UserError
  // with the message of MPI, or if another rank sent a different number of elements.
  bool advance(Channel& channel);

  // Lets the other messages end after advance() has thrown, because MPI uses their buffers. Returns
  // true if none is left.
  bool drain();

 private:
  enum class Stage : uint8_t { Waiting, First, Second, Done };
  struct Message {
    MPI_Request request = MPI_REQUEST_NULL;
    int from = -1;         // sender of a receive; -1: a send
    int64_t elements = 0;  // expected by a receive
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
  // Returns the chunk of `rank` of the data that is reduced or broadcast.
  Chunk chunk(const Channel& channel, int rank) const;

  std::vector<int64_t> counts_;  // lists of an AllToAllV; operation_ refers to them
  Operation operation_;
  int64_t post_number_;
  int tag_;
  Stage stage_ = Stage::Waiting;
  std::vector<Message> messages_;
  size_t next_ = 0;                     // all earlier messages have completed
  std::unique_ptr<std::byte[]> parts_;  // the inputs of all ranks for the chunk of this rank
};

}  // namespace heddle::comm::mpi
