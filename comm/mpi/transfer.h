#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/communicator.h"

namespace heddle::comm::mpi {

// One operation on its way through MPI. Used on the MPI thread only.
class Transfer {
 public:
  // `turn` is the number of a collective within its communicator.
  Transfer(const Operation& operation, int64_t turn) : operation_(operation), turn_(turn) {}

  // Does the next step that can be done; true when the operation is complete. Throws UserError with
  // MPI's message.
  bool advance(Channel& channel);

 private:
  enum class Stage : uint8_t { Waiting, Exchanging, Completing, Done };

  void begin(Channel& channel);
  void beginExchange(Channel& channel);
  void reduceParts(Channel& channel, void* result, int64_t count);
  void gatherChunks(Channel& channel);

  Operation operation_;
  int64_t turn_;
  Stage stage_ = Stage::Waiting;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::unique_ptr<std::byte[]> parts_;  // everybody's version of this rank's chunk
  std::vector<int> counts_, offsets_, parts_counts_, parts_offsets_;
};

// Throws UserError when `operation` needs a count that MPI's int cannot hold.
void checkCounts(const Operation& operation, int size);

}  // namespace heddle::comm::mpi
