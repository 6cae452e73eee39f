#include "host/run/profile/run_profile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "host/plan/plan.h"
#include "ir/base/check.h"

namespace heddle::host {

int64_t RunProfile::now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

RunProfile::~RunProfile() { clearTimers(); }

void RunProfile::clearTimers() noexcept {
  for (const Timers& timers : timers_) {
    device_->destroyEvent(timers.begin);
    device_->destroyEvent(timers.end);
  }
  timers_.clear();
  if (origin_ != nullptr) device_->destroyEvent(origin_);
  origin_ = nullptr;
}

void RunProfile::start(std::shared_ptr<const Plan> plan, std::vector<std::string> texts,
                       Device& device) {
  clearTimers();
  plan_ = std::move(plan);
  texts_ = std::move(texts);
  device_ = &device;
  issues_.clear();
  work_.clear();
  if (device.kind() != DeviceKind::Cuda) return;
  // The code below relates the clock of the device to the clock of the host. On an idle stream, a
  // timer is recorded at about the time at which the host's wait for the timer ends.
  Stream idle = device.createStream();
  origin_ = device.createTimer();
  device.recordEvent(origin_, idle);
  device.synchronize(origin_);
  origin_time_ = now();
  device.destroyStream(idle);
}

void RunProfile::addIssue(int32_t step, int64_t begin, int64_t end) {
  std::lock_guard lock(mutex_);
  issues_.push_back({step, begin, end});
}

void RunProfile::addWork(int32_t step, int64_t begin, int64_t end) {
  if (step < 0) return;
  std::lock_guard lock(mutex_);
  work_.push_back({step, begin, end});
}

void RunProfile::beginOnDevice(int32_t step, Stream stream) {
  timers_.push_back({step, device_->createTimer(), device_->createTimer()});
  device_->recordEvent(timers_.back().begin, stream);
}

void RunProfile::endOnDevice(Stream stream) { device_->recordEvent(timers_.back().end, stream); }

void RunProfile::readTimers() {
  for (const Timers& timers : timers_) {
    device_->synchronize(timers.end);
    const auto timeOf = [&](Event event) {
      const double seconds = device_->secondsBetween(origin_, event);
      return origin_time_ + static_cast<int64_t>(1e9 * seconds);
    };
    work_.push_back({timers.step, timeOf(timers.begin), timeOf(timers.end)});
  }
  clearTimers();
}

TimelineEvent RunProfile::eventOf(const Span& span, bool issues) const {
  const size_t step = span.step;
  const Plan::StepNote& note = plan_->notes[step];
  TimelineEvent event;
  event.instruction = plan_->instruction_of[step];
  event.text = texts_.at(event.instruction);
  event.stream = issues ? StreamId() : note.stream;
  event.begin = span.begin;
  event.end = span.end;
  event.bytes = note.bytes;
  event.occurrence = note.occurrence;
  if (!issues && note.team.valid()) event.team = plan_->teams[note.team];
  return event;
}

// Merges the steps of one execution of an instruction on one stream into one event.
std::vector<TimelineEvent> RunProfile::events() {
  std::lock_guard lock(mutex_);
  HEDDLE_USER_CHECK(plan_ != nullptr, "the profile was given to no run");
  readTimers();
  std::map<std::tuple<StreamId, InstructionIndex, int32_t>, TimelineEvent> merged;
  for (const bool issues : {true, false}) {
    for (const Span& span : issues ? issues_ : work_) {
      if (plan_->instruction_of[span.step] < 0) continue;
      TimelineEvent event = eventOf(span, issues);
      const std::tuple key(event.stream, event.instruction, event.occurrence);
      const auto [at, is_first] = merged.try_emplace(key, event);
      if (is_first) continue;
      at->second.begin = std::min(at->second.begin, event.begin);
      at->second.end = std::max(at->second.end, event.end);
    }
  }
  std::vector<TimelineEvent> sorted;
  for (auto& [key, event] : merged) sorted.push_back(std::move(event));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.stream, a.begin, a.instruction) <
           std::tuple(b.stream, b.begin, b.instruction);
  });
  return sorted;
}

std::map<InstructionIndex, std::vector<RunProfile::Launch>> RunProfile::deviceWork() const {
  HEDDLE_USER_CHECK(plan_ != nullptr, "the profile was given to no run");
  std::map<InstructionIndex, std::vector<Launch>> work;
  for (size_t step = 0; step < plan_->steps.size(); ++step) {
    const InstructionIndex instruction = plan_->instruction_of[step];
    if (instruction < 0 || !writesData(plan_->steps[step])) continue;
    std::vector<Launch>& launches = work[instruction];
    // Only a LaunchStep launches a generated kernel. All other steps add no launch to the list.
    const auto* launch = std::get_if<LaunchStep>(&plan_->steps[step]);
    if (launch == nullptr || plan_->notes[step].occurrence > 0) continue;
    const Plan::Stage& stage = plan_->stages[launch->stage];
    launches.push_back({stage.kernel, &stage.launch});
  }
  return work;
}

std::map<InstructionIndex, MatmulWork> RunProfile::matmuls() const {
  HEDDLE_USER_CHECK(plan_ != nullptr, "the profile was given to no run");
  std::map<InstructionIndex, MatmulWork> products;
  for (size_t step = 0; step < plan_->steps.size(); ++step) {
    // Only a MatmulStep computes a matrix product.
    const auto* product = std::get_if<MatmulStep>(&plan_->steps[step]);
    if (product == nullptr) continue;
    products.try_emplace(plan_->instruction_of[step], plan_->matmuls[product->matmul].work);
  }
  return products;
}

}  // namespace heddle::host
