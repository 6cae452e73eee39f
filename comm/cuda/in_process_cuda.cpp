// The transport of in-process ranks that share one GPU. A collective except a barrier is split into
// one part per rank (comm/in_process/operation_parts.h), which the rank enqueues on its own stream.
// A send with its receive has one part, which the receiver enqueues. The streams of all
// participating ranks wait twice:
// - Before the parts, until the earlier work of every participating rank has ended (event `ready`),
//   because this work may use the same buffers.
// - After the parts, until the parts of all participating ranks have ended (event `finished`).
#include "comm/cuda/in_process_cuda.h"

#include "comm/cuda/event_pool.h"
#include "comm/cuda_call/cuda_call.h"
#include "comm/in_process/operation_parts.h"
#include "comm/operation.h"
#include "ir/base/check.h"

namespace heddle::comm {
namespace {

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
    const std::vector<Participant> participants = postAll(group, stream);
    try {
      enqueue(participants, stream);
    } catch (const std::exception& error) {
      cancel(participants, error.what());
      throw;
    }
    return next_++;
  }

  bool test(Ticket ticket) override {
    HEDDLE_CHECK(false, "test({}) on a stream-ordered communicator", ticket);
    return false;
  }

 private:
  void enqueue(const std::vector<Participant>& participants, cudaStream_t stream) {
    StreamMover mover(reduce_, stream);
    for (const Participant& participant : participants) {
      await(*participant.matched, [&] { return participant.matched->missing == 0; });
      waitFor(stream, participant.matched->ready);
      const bool sends =
          participant.matched->operations[participant.index].kind == CollectiveKind::Send;
      if (!sends) movePart(*participant.matched, participant.index, mover);  // the receiver copies
      finish(participant, events_->record(stream));
    }
    for (const Participant& participant : participants) {
      MatchedOperation& matched = *participant.matched;
      await(matched, [&] { return matched.done == static_cast<int>(matched.operations.size()); });
      waitFor(stream, matched.finished);
    }
  }

  // Wakes the ranks that wait for this rank. Their waiting calls throw UserError with `cause`.
  void cancel(const std::vector<Participant>& participants, const std::string& cause) {
    std::lock_guard lock(team_->job().mutex);
    for (const Participant& participant : participants) {
      if (participant.matched->cancelled.empty()) participant.matched->cancelled = cause;
    }
    team_->job().changed.notify_all();
  }

  // Posts all operations of the group before the rank waits for the first one. Otherwise two ranks
  // could wait for each other, for example if each first waits for its send to the other rank.
  std::vector<Participant> postAll(std::span<const Operation> group, cudaStream_t stream) {
    const std::shared_ptr<void> ready = events_->record(stream);
    std::lock_guard lock(team_->job().mutex);
    std::vector<Participant> participants;
    for (const Operation& op : group) participants.push_back(team_->post(member_, op, ready));
    return participants;
  }

  template <class Condition>
  void await(const MatchedOperation& matched, const Condition& condition) {
    std::unique_lock lock(team_->job().mutex);
    // `condition` may be true although the ranks disagree about the operation. In this case
    // isHalted() is true, and check() throws.
    while (!condition() || team_->isHalted()) {
      team_->check(matched);
      team_->job().changed.wait(lock);
    }
  }

  void finish(const Participant& participant, std::shared_ptr<void> finished) {
    std::lock_guard lock(team_->job().mutex);
    participant.matched->finished[participant.index] = std::move(finished);
    ++participant.matched->done;
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
