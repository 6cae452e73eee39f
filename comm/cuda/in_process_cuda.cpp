// In-process ranks that share one GPU. Each rank enqueues its own part of an operation on its own
// stream, cut up as on the host (comm/in_process/meeting_parts.h), between two sets of events:
// `ready` says that a rank's earlier work is done with the buffers, `finished` that its part is
// done.
#include "comm/cuda/in_process_cuda.h"

#include "comm/cuda/event_pool.h"
#include "comm/cuda_call/cuda_call.h"
#include "comm/in_process/meeting_parts.h"
#include "comm/operation.h"
#include "ir/base/error.h"

namespace heddle::comm {
namespace {

// Enqueues what a part consists of.
class StreamMover : public Mover {
 public:
  StreamMover(const DeviceReduce& reduce, cudaStream_t stream) : reduce_(reduce), stream_(stream) {}
  void copy(void* to, const void* from, int64_t bytes) override {
    HEDDLE_CUDA(cudaMemcpyAsync, to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                stream_);
  }
  void reduce(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
              ReduceOp op) override {
    reduce_(dst, srcs, count, dtype, op, stream_);
  }

 private:
  const DeviceReduce& reduce_;
  cudaStream_t stream_;
};

void waitFor(cudaStream_t stream, const std::vector<std::shared_ptr<void>>& events) {
  for (const std::shared_ptr<void>& event : events) {
    HEDDLE_CUDA(cudaStreamWaitEvent, stream, static_cast<cudaEvent_t>(event.get()), 0);
  }
}

class CudaCommunicator : public Communicator {
 public:
  CudaCommunicator(std::shared_ptr<Team> team, int member, int device, DeviceReduce reduce,
                   std::shared_ptr<EventPool> events)
      : team_(std::move(team)),
        member_(member),
        device_(device),
        reduce_(std::move(reduce)),
        events_(std::move(events)) {}
  ~CudaCommunicator() override {
    std::lock_guard lock(team_->job().mutex);
    team_->leave(member_);
  }

  int rank() const override { return member_; }
  int size() const override { return team_->size(); }
  bool isStreamOrdered() const override { return true; }

  Ticket post(std::span<const Operation> group, void* native_stream) override {
    checkGroup(group, rank(), size());
    HEDDLE_CUDA(cudaSetDevice, device_);
    const auto stream = static_cast<cudaStream_t>(native_stream);
    const std::vector<Seat> seats = sitAll(group, stream);
    try {
      enqueue(seats, stream);
    } catch (const std::exception& error) {
      cancel(seats, error.what());
      throw;
    }
    return next_++;
  }

  bool test(Ticket ticket) override {
    HEDDLE_CHECK(false, "test({}) on a stream-ordered communicator", ticket);
    return false;
  }

 private:
  void enqueue(const std::vector<Seat>& seats, cudaStream_t stream) {
    StreamMover mover(reduce_, stream);
    for (const Seat& seat : seats) {
      await(*seat.meeting, [&] { return seat.meeting->missing == 0; });
      waitFor(stream, seat.meeting->ready);
      const bool sends = seat.meeting->operations[seat.index].kind == CollectiveKind::Send;
      if (!sends) movePart(*seat.meeting, seat.index, mover);  // the receiver copies
      finish(seat, events_->record(stream));
    }
    for (const Seat& seat : seats) {
      Meeting& meeting = *seat.meeting;
      await(meeting, [&] { return meeting.done == static_cast<int>(meeting.operations.size()); });
      waitFor(stream, meeting.finished);
    }
  }

  // Peers that wait for this rank's share hear why it does not come.
  void cancel(const std::vector<Seat>& seats, const std::string& cause) {
    std::lock_guard lock(team_->job().mutex);
    for (const Seat& seat : seats) {
      if (seat.meeting->cancelled.empty()) seat.meeting->cancelled = cause;
    }
    team_->job().changed.notify_all();
  }

  // Everything of the group is there for the peers before anything is waited for.
  std::vector<Seat> sitAll(std::span<const Operation> group, cudaStream_t stream) {
    const std::shared_ptr<void> ready = events_->record(stream);
    std::lock_guard lock(team_->job().mutex);
    std::vector<Seat> seats;
    for (const Operation& op : group) seats.push_back(team_->sit(member_, op, ready));
    return seats;
  }

  template <class Condition>
  void await(const Meeting& meeting, const Condition& condition) {
    std::unique_lock lock(team_->job().mutex);
    // A meeting of ranks that disagree is full too.
    while (!condition() || team_->isHalted()) {
      team_->check(meeting);
      team_->job().changed.wait(lock);
    }
  }

  void finish(const Seat& seat, std::shared_ptr<void> finished) {
    std::lock_guard lock(team_->job().mutex);
    seat.meeting->finished[seat.index] = std::move(finished);
    ++seat.meeting->done;
    team_->job().changed.notify_all();
  }

  std::shared_ptr<Team> team_;
  int member_;
  int device_;
  DeviceReduce reduce_;
  std::shared_ptr<EventPool> events_;
  Ticket next_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<World>> makeInProcessCudaWorlds(int size, int device,
                                                            DeviceReduce reduce) {
  int devices = 0;
  HEDDLE_CUDA(cudaGetDeviceCount, &devices);
  HEDDLE_USER_CHECK(device >= 0 && device < devices, "there is no CUDA device {}, only {}", device,
                    devices);
  auto events = std::make_shared<EventPool>();
  return makeWorldsOfThreads(
      size, "in-process",
      [device, reduce = std::move(reduce), events](std::shared_ptr<Team> team, int member) {
        return std::make_unique<CudaCommunicator>(std::move(team), member, device, reduce, events);
      });
}

}  // namespace heddle::comm

extern "C" heddle::comm::MakeInProcessCudaWorlds heddleInProcessCudaWorlds() {
  return heddle::comm::makeInProcessCudaWorlds;
}
