#include "host/run/completion.h"

#include <chrono>
#include <cstdio>
#include <set>
#include <thread>
#include <vector>

#include "host/run/run_record.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

void probe(const Plan& plan) {
  for (comm::Communicator* communicator : plan.stream_ordered) communicator->probe();
}

}  // namespace

void awaitEvent(Device& device, Event event, const Plan& plan) {
  if (plan.stream_ordered.empty()) return device.synchronize(event);
  // The first polls only yield, because a sleep would delay the end of a short run.
  constexpr int kYields = 2000;
  constexpr auto kPollingInterval = std::chrono::microseconds(20);
  for (int polls = 0; !device.eventDone(event); ++polls) {
    if (polls < kYields) {
      std::this_thread::yield();
      continue;
    }
    probe(plan);
    std::this_thread::sleep_for(kPollingInterval);
  }
  // The event also happens after another call of probe(), for example in another thread, has
  // aborted a collective of the run. The run has then failed, and probe() throws.
  probe(plan);
}

SharedStream::~SharedStream() {
  if (stream_ != nullptr) device_.destroyStream(stream_);
}

Stream SharedStream::get() {
  if (stream_ == nullptr) stream_ = device_.createStream();
  return stream_;
}

RunResources::RunResources(Device& device, std::vector<std::string> instruction_texts,
                           std::shared_ptr<SharedStream> stream)
    : device_(device), texts_(std::move(instruction_texts)), stream_(std::move(stream)) {
  if (!stream_) stream_ = std::make_shared<SharedStream>(device_);
}

RunResources::~RunResources() {
  for (RunRecord* list : {given_.load(), free_}) RunRecord::destroyAll(list);
}

std::string RunResources::text(InstructionIndex index) const {
  if (index < 0) return "the start or end of the run";
  if (static_cast<size_t>(index) >= texts_.size()) return fmt::format("instruction {}", index);
  return fmt::format("instruction {} ({})", index, texts_[index]);
}

RunRecord& RunResources::takeRecord() {
  if (free_ == nullptr) free_ = given_.exchange(nullptr, std::memory_order_acquire);
  if (free_ == nullptr) return *new RunRecord(shared_from_this());
  free_records_.fetch_sub(1, std::memory_order_relaxed);
  RunRecord& record = *free_;
  free_ = record.next;
  return record;
}

void RunResources::giveRecord(RunRecord& record) noexcept {
  free_records_.fetch_add(1, std::memory_order_relaxed);
  record.next = given_.load(std::memory_order_relaxed);
  while (!given_.compare_exchange_weak(record.next, &record, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
}

void Completion::reuse(std::shared_ptr<RunResources> r) {
  resources = std::move(r);
  run = 0;
  if (errors.failed()) errors.clear();
  reported.store(false, std::memory_order_relaxed);
  settled_.store(false, std::memory_order_relaxed);
  by_input_.store(false, std::memory_order_relaxed);
}

bool Completion::done() {
  if (settled_.load()) return true;
  try {
    if (!device_.eventDone(event)) return false;
  } catch (const std::exception&) {
    errors.report(std::current_exception(), -1);
    settled_.store(true);
    return true;
  }
  setDone();
  return true;
}

void Completion::setDone() {
  if (settled_.load()) return;
  try {
    if (plan) probe(*plan);
    conclude();
  } catch (const std::exception&) {
    errors.report(std::current_exception(), -1);
  }
  settled_.store(true);
}

void Completion::wait() {
  waitForEnd();
  owners.release();
  rethrow();
}

void Completion::waitForEnd() noexcept {
  try {
    if (!settled_.load()) waitForDevice();
  } catch (const std::exception&) {
    // The failure, for example of the device or of a collective, becomes the error of the run.
    // Every later wait() then throws it, and rethrow() reports it to the job.
    errors.report(std::current_exception(), -1);
  }
  settled_.store(true);
}

void Completion::waitForDevice() {
  if (!plan) return device_.synchronize(event);
  const bool on_device = !plan->stream_ordered.empty();
  if (on_device) resources->job.begin(comm::Activity::Waiting);
  awaitEvent(device_, event, *plan);
  if (on_device) resources->job.end(comm::Activity::Waiting);
  conclude();
}

std::string Completion::numericsReport() const {
  if (!numerics || !plan) return {};
  return numerics->report(plan->inspections, [this](InstructionIndex instruction) {
    return resources->text(instruction);
  });
}

// Prints the report about NaN and infinity. Throws if the run has read an output of a failed run,
// or if the job has failed and may have aborted the collectives of the run. If the run has no
// error, tells the job that it has ended.
void Completion::conclude() {
  if (numerics) resources->numerics.print(numericsReport());
  if (!errors.failed()) checkInputs(true);
  // Collectives that wait on the device also complete if probe() has aborted them. A completed run
  // is therefore not always a successful run.
  if (plan && !plan->stream_ordered.empty() && resources->job.failed()) {
    throw UserError(resources->job.failure(), resources->job.failureCode());
  }
  if (!errors.failed()) resources->job.endRun(run);
}

// Throws an error if an input is an output of a failed run. If `settle` is true, the event of this
// run must have happened. The runs that computed the inputs have then ended too, and the function
// first finds out whether they have failed.
void Completion::checkInputs(bool settle) {
  const bool may_have_failed = RunResources::any_local_error.load(std::memory_order_acquire) ||
                               RunResources::any_job.load(std::memory_order_relaxed);
  if (!may_have_failed) return;
  if (settle) settleProducers();
  Completion* producer = nullptr;
  int failed_input = -1;
  findProducer([&](Completion& earlier, int input) {
    if (!earlier.errors.failed()) return false;
    producer = &earlier;
    failed_input = input;
    return true;
  });
  if (producer != nullptr) throwOfInput(*producer, failed_input);
}

template <class Visit>
void Completion::findProducer(const Visit& visit) const {
  owners.findInput([&](const std::shared_ptr<void>& owner, int input) {
    Completion* const earlier = input < 0 ? nullptr : RunRecord::producerOf(owner);
    return earlier != nullptr && earlier != this && visit(*earlier, input);
  });
}

// Finds out whether the runs that have computed the inputs have failed, oldest first. Uses a loop
// instead of recursion, because a chain of runs may be long.
void Completion::settleProducers() {
  bool has_unsettled = false;
  findProducer([&](const Completion& earlier, int) {
    has_unsettled = !earlier.settled_.load();
    return has_unsettled;
  });
  if (!has_unsettled) return;  // the usual case, which must not allocate
  std::vector<Completion*> chain{this};
  std::set<const Completion*> visited{this};
  while (!chain.empty()) {
    Completion* const run = chain.back();
    Completion* next = nullptr;
    run->findProducer([&](Completion& earlier, int) {
      if (earlier.settled_.load() || !visited.insert(&earlier).second) return false;
      next = &earlier;
      return true;
    });
    if (next != nullptr) {
      chain.push_back(next);
      continue;
    }
    chain.pop_back();
    if (run != this) run->done();
  }
}

// Throws the error of `producer`, the run that has computed the input. Adds the input to the
// message. Exception: if `producer` itself failed because of an input, its message already names
// that input.
void Completion::throwOfInput(const Completion& producer, int input) {
  by_input_.store(true);
  try {
    producer.errors.rethrow(&producer.resources->texts());
  } catch (const Error& e) {
    if (producer.by_input_.load()) throw;
    throw UserError(fmt::format("input {} is an output of a failed run: {}", input, e.what()),
                    e.code());
  }
  throw InternalError("the error of a failed run is missing");
}

// Prints the error before it counts the run. When the count has grown, the error is therefore
// already printed.
void Completion::reportUnwaited() noexcept {
  if (!errors.failed() || reported.exchange(true)) return;
  if (!by_input_.load()) {  // otherwise the run that failed first reports this error itself
    try {
      errors.rethrow(&resources->texts());
    } catch (const std::exception& e) {
      std::fprintf(stderr, "heddle: a run failed and no caller waited for it: %s\n", e.what());
    }
  }
  ++resources->stream().unreported_failures;
}

void Completion::rethrow() {
  if (!errors.failed()) return;
  reported.store(true);
  try {
    errors.rethrow(&resources->texts());
  } catch (const UserError& e) {
    resources->job.throwIfOtherRankFailed(e);
    resources->job.fail(e.what());
    throw;
  } catch (const std::exception& e) {
    resources->job.fail(e.what());
    throw;
  }
}

}  // namespace heddle::host
