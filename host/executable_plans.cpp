// The members of Executable::Impl that find and create plans.
#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <mutex>

#include "host/executable_impl.h"

namespace heddle::host {
namespace {

// Prints, once per process, that the slow reference evaluator runs the kernels.
void reportReference(const Device& device) {
  static std::once_flag reported;
  std::call_once(reported, [&] {
    fmt::print(stderr, "heddle: kernels run in the slow reference evaluator, because {}\n",
               device.whyNoCompiler());
  });
}

}  // namespace

std::shared_ptr<const Plan> Executable::Impl::cachedPlan(const std::vector<Argument>& inputs,
                                                         const RunOptions& run_options) {
  std::lock_guard lock(plans_mutex);
  const std::shared_ptr<const Plan>* plan = plans.find(tensorsOf(inputs, run_options));
  if (plan == nullptr) return nullptr;
  plan_hits.fetch_add(1, std::memory_order_relaxed);
  return *plan;
}

bool Executable::Impl::hasPlan(const std::vector<Argument>& inputs, const RunOptions& run_options) {
  std::lock_guard lock(plans_mutex);
  return plans.peek(tensorsOf(inputs, run_options)) != nullptr;
}

std::unique_lock<std::mutex> Executable::Impl::lockOrder(const std::vector<Argument>& inputs,
                                                         const RunOptions& run_options,
                                                         bool has_plan) {
  if (!communicates) return {};
  if (!has_plan && !hasPlan(inputs, run_options)) {
    resources->job.begin(comm::Activity::Compiling);
    evaluator->compileKernels(tensorsOf(inputs, run_options));
    resources->job.end(comm::Activity::Compiling);
  }
  return std::unique_lock(order->running);
}

// Represents the creation of a plan, during which plans_mutex is not locked. If another thread is
// already creating the plan for equal arguments, the constructor waits for that thread. If the
// cache then contains the plan, `found` is this plan. Otherwise `found` is nullptr, and the caller
// must create the plan.
class Executable::Impl::Flight {
 public:
  Flight(Impl& impl, const std::vector<Argument>& inputs, const RunOptions& run_options)
      : impl_(impl) {
    std::unique_lock lock(impl_.plans_mutex);
    const RunTensors tensors = tensorsOf(inputs, run_options);
    for (;;) {
      const std::shared_ptr<const Plan>* plan = impl_.plans.find(tensors);
      if (plan != nullptr) {
        found = *plan;
        return;
      }
      if (impl_.planned.peek(tensors) == nullptr) break;
      impl_.plan_ended.wait(lock);
    }
    number_ = ++impl_.flights;
    impl_.planned.add(tensors, {}, number_, 0, none_);
  }
  ~Flight() {
    if (found) return;
    {
      std::lock_guard lock(impl_.plans_mutex);
      impl_.planned.eraseIf([&](int64_t number) { return number == number_; }, none_);
    }
    impl_.plan_ended.notify_all();
  }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  std::shared_ptr<const Plan> found;

 private:
  Impl& impl_;
  int64_t number_ = 0;
  std::vector<int64_t> none_;
};

std::shared_ptr<const Plan> Executable::Impl::planFor(const std::vector<Argument>& inputs,
                                                      const RunOptions& run_options) {
  std::shared_ptr<const Plan> plan = cachedPlan(inputs, run_options);
  if (plan) return plan;
  const Flight flight(*this, inputs, run_options);
  if (flight.found) return flight.found;
  resources->job.begin(comm::Activity::Compiling);
  const comm::World::Task task(world, comm::RankTask::PreparingRun);
  plan = evaluator->prepare(tensorsOf(inputs, run_options), verifies, run_options.stream);
  resources->job.end(comm::Activity::Compiling);
  if (!plan->references.empty()) reportReference(device);
  {
    std::vector<std::shared_ptr<const Plan>> dropped;  // destroyed after the lock is released
    std::lock_guard lock(plans_mutex);
    plans.add(tensorsOf(inputs, run_options), plan->late, plan, bytesOf(*plan), dropped);
    ++plan_count;
  }
  kernels->unloadUnused();
  return plan;
}

std::shared_ptr<const Plan> Executable::Impl::prepare(const std::vector<Argument>& inputs,
                                                      const RunOptions& run_options) {
  try {
    const std::unique_lock<std::mutex> order_lock = lockOrder(inputs, run_options, false);
    return planFor(inputs, run_options);
  } catch (const std::exception&) {
    failJobAndRethrow(monitor, world);
  }
}

}  // namespace heddle::host
