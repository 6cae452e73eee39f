#pragma once

#include <map>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/mpi/mpi_thread.h"

namespace heddle::comm::mpi {

// An MPI communicator. After its creation, only the MPI thread (MpiThread) makes MPI calls on
// `comm` and accesses `next_post`.
struct Channel {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 0;
  // The number of the post that may run its collectives now. Posts with collectives have
  // consecutive numbers and run one after the other. MPI matches messages with equal tags by the
  // order of calls: if two posts ran at the same time, their messages could be in a different order
  // on each rank. The collectives of one post have different tags, so they run at the same time.
  int64_t next_post = 0;
};

// The operations of one post (comm/mpi/mpi_communicator.cpp).
struct Group;

// The communicator of a team over MPI, on host memory.
//
// In a reduction, the ranks first exchange parts of their inputs. Each rank then reduces the parts
// that it received, in rank order, with reduceOnHost(). Results therefore have the same bits on
// every rank, in every run, and on the in-process transport. An MPI_Op would not ensure this: MPI
// may combine elements in any order, and a bf16 operator would round at every step. In an
// allreduce, every rank reduces one part of the elements, and then sends the reduced part to all
// other ranks (comm/mpi/transfer.h). No allreduce that consists of messages between ranks sends
// fewer bytes.
//
// Counts may exceed the range of int, because a long message is split into pieces. If ranks
// disagree about a count, test() throws UserError on at least one of them. Exception: if the ranks
// split a message into different numbers of pieces, a rank may wait for ever. If ranks disagree
// about the kind, the type, the reduction or the root, test() may throw, a rank may wait for ever,
// or results may be wrong. (The in-process transport reports every disagreement.)
//
// If operations still run when a communicator is destroyed, the destructor ends the job by
// MPI_Abort. Otherwise MPI could write to buffers that the caller has freed. After
// World::interrupt(), the destructor does not end the job, because heddle then makes no more MPI
// calls.
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
  int64_t collective_posts_ = 0;  // number of posts with collectives
  std::map<Ticket, std::shared_ptr<Group>> pending_;
  std::string fault_;  // error of the failed group that test() reported last; empty: none
};

}  // namespace heddle::comm::mpi
