#include "host/kernel_store.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "ir/error.h"

namespace heddle::host {
namespace {

// Compilers are processes or libraries that use one core each.
size_t compileThreads(size_t sources) {
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  return std::min(sources, cores);
}

// Runs work(i) for every i on a few threads; rethrows the error of the lowest i.
template <class Work>
void forEachInParallel(size_t count, const Work& work) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<size_t> next{0};
  const auto serve = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < compileThreads(count); ++i) helpers.emplace_back(serve);
  serve();
  for (std::thread& helper : helpers) helper.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

KernelStore::KernelStore(Device& device, codegen::ImageCache* images)
    : device_(device), images_(images) {}

void KernelStore::prepare(const std::vector<const codegen::KernelPlan*>& plans) {
  std::lock_guard one_at_a_time(preparing_);
  std::vector<const codegen::KernelSource*> fresh;
  {
    std::lock_guard lock(mutex_);
    for (const codegen::KernelPlan* plan : plans) {
      if (plan->stages.empty()) continue;
      if (loaded_.try_emplace(plan->source.text).second) fresh.push_back(&plan->source);
    }
  }
  if (images_ == nullptr) {
    own_images_ = std::make_unique<codegen::ImageCache>();
    images_ = own_images_.get();
  }
  std::vector<std::shared_ptr<const codegen::KernelImage>> images(fresh.size());
  const auto compile = [&](size_t i) { images[i] = images_->get(*fresh[i], *device_.compiler()); };
  const auto forget = [&] {
    std::lock_guard lock(mutex_);
    for (const codegen::KernelSource* source : fresh) loaded_.erase(source->text);
  };
  try {
    forEachInParallel(fresh.size(), compile);
  } catch (...) {
    forget();
    throw;
  }
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < fresh.size(); ++i) loaded_[fresh[i]->text].image = images[i];
  for (const codegen::KernelPlan* plan : plans) {
    for (const codegen::LaunchStage& stage : plan->stages) {
      Loaded& loaded = loaded_.at(plan->source.text);
      if (loaded.entries.contains(stage.entry)) continue;
      loaded.entries.emplace(stage.entry, device_.load(*loaded.image, stage.entry));
    }
  }
}

KernelHandle KernelStore::handle(const std::string& source, const std::string& entry) const {
  std::lock_guard lock(mutex_);
  auto found = loaded_.find(source);
  HEDDLE_CHECK(found != loaded_.end() && found->second.entries.contains(entry),
               "kernel {} was not loaded", entry);
  return found->second.entries.at(entry);
}

}  // namespace heddle::host
