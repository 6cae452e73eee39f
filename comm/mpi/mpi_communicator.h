#pragma once

#include <map>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/mpi/mpi_thread.h"

namespace heddle::comm::mpi {

// An MPI communicator. After its creation only the MPI thread accesses the handle and next_post.
struct Channel {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 0;
  // The number of the post that may run its collectives. The collectives of one post run together;
  // posts of one communicator run one after the other. MPI matches messages by call order, and the
  // messages of two rounds would otherwise interleave differently on each rank.
  int64_t next_post = 0;
};

struct Group;

// A team over MPI, on host memory.
//
// Every reduction exchanges parts and then applies the same local reduction in rank order
// (reduceOnHost) as the in-process transport. It never uses an MPI_Op: MPI may combine in any
// order, and a bf16 operator would round at every step. So results have the same bits on every
// rank, run and transport. An allreduce moves as many bytes as an optimal one: every rank reduces a
// chunk, then all ranks get all chunks (comm/mpi/transfer.h). A NaN wins a minimum or a maximum,
// sums of bool are "any", products "all", I64 wraps around.
//
// If ranks disagree about a count, they get an error. MPI reports some other disagreements and
// waits for ever in the rest, unlike the in-process transport.
//
// Counts may exceed int: a long message is split into pieces. Destroying a communicator with
// running operations ends the job, because MPI would continue to write to buffers that the caller
// frees.
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
  int64_t collective_posts_ = 0;  // posts that have collectives
  std::map<Ticket, std::shared_ptr<Group>> pending_;
  std::string fault_;  // message of the last error of test()
};

}  // namespace heddle::comm::mpi
