#pragma once

#include <map>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/mpi/mpi_thread.h"

namespace heddle::comm::mpi {

// What belongs to one MPI communicator; after it is made only the MPI thread touches the handle and
// the turns.
struct Channel {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 0;
  // The collectives of one post run together, posts of one communicator one after the other,
  // because MPI matches messages by the order in which they are called and those of two stages
  // would else interleave differently on each rank.
  int64_t turn = 0;  // the post that may run its collectives
};

struct Group;

// A team over MPI, on host memory.
//
// Every reduction is an exchange of parts followed by the same local reduction in rank order
// (reduceOnHost) that the in-process transport runs, never an MPI_Op: MPI may combine in any order,
// and a bf16 operator would round at every step. So results have the same bits on every rank, run
// and transport. An allreduce moves the bytes of an optimal one: every rank reduces a chunk, then
// all get all chunks (comm/mpi/transfer.h). A NaN wins a minimum or a maximum, sums of bool are
// "any", products "all", I64 wraps around.
//
// Ranks that disagree about a count are told so; of other disagreements MPI reports some and waits
// forever in others, unlike in-process.
//
// Counts may be beyond MPI's int: a long message goes in pieces. Destroying a
// communicator with operations under way takes the job down, since MPI would go on writing to
// buffers that the caller is about to free.
class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(std::shared_ptr<MpiThread> mpi_thread, std::shared_ptr<Channel> channel);
  ~MpiCommunicator() override;

  int rank() const override { return channel_->rank; }
  int size() const override { return channel_->size; }
  bool isStreamOrdered() const override { return false; }
  Ticket post(std::span<const Operation> group, void* stream) override;
  bool test(Ticket ticket) override;

 private:
  std::shared_ptr<MpiThread> mpi_thread_;
  std::shared_ptr<Channel> channel_;
  Ticket next_ = 0;
  int64_t turns_ = 0;  // given out
  std::map<Ticket, std::shared_ptr<Group>> pending_;
  std::string fault_;  // what test() threw last
};

}  // namespace heddle::comm::mpi
