#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/run/completion.h"

namespace heddle::host {

class RunState;  // host/run/run_state.h

// The results of one run. All copies of its Outputs (host/outputs.h) share this object.
struct RunResult {
  // The Completion of the RunRecord that contains this RunResult. It is valid as long as the
  // results exist.
  Completion* completion = nullptr;
  std::vector<Argument> values;
};

// Stores the Completion of a run, its results, and one owner per output. An owner holds the memory
// of its output. A record serves one run after another, so that a repeated run allocates no heap
// memory.
//
// Lifetimes: the parts of a record are the Completion, the RunResult, and one owner per output.
//            Each part has its own std::shared_ptr, so it may be in use longer than the others.
//            When no part is in use any more, the record returns to the pool of records in its
//            RunResources. While a part is in use, the record keeps its RunResources alive.
// Threads:   one thread at a time calls the functions, except that any thread may call
//            producerOf(). The parts may be released on any thread.
class RunRecord {
 public:
  explicit RunRecord(std::shared_ptr<RunResources> resources) : completion_(std::move(resources)) {}
  RunRecord(const RunRecord&) = delete;
  RunRecord& operator=(const RunRecord&) = delete;

  // Begins a run of the plan, and returns its Completion.
  std::shared_ptr<Completion> begin(std::shared_ptr<RunResources> resources,
                                    const std::shared_ptr<const Plan>& plan);
  // Returns the results of the run. Each tensor owns the buffer of its output. If two outputs are
  // in one buffer, they share an owner. If an output is in the memory of a tensor of the caller,
  // the result keeps the owner of that tensor alive. All other buffers that the run still holds are
  // freed, as stream-ordered frees on stream 0 of the program. Call this function once per run.
  std::shared_ptr<RunResult> finish(RunState& state, Allocator& allocator,
                                    const std::vector<Argument>& inputs,
                                    const std::vector<Tensor>& preallocated);
  // Returns the Completion of the run that has created the owner. Returns nullptr if no run has
  // created it. An output that is only a view of an input has the owner of that input. The result
  // is valid as long as the owner exists.
  static Completion* producerOf(const std::shared_ptr<void>& owner);
  // Deletes the records of a list.
  static void destroyAll(RunRecord* first) noexcept;

  RunRecord* next = nullptr;  // the next record in a list of RunResources

 private:
  // Memory for the reference counts of a std::shared_ptr.
  struct alignas(std::max_align_t) Counts {
    static constexpr size_t kBytes = 64;
    std::byte bytes[kBytes];
  };
  // The memory of an output.
  struct Owner {
    Allocator* allocator = nullptr;
    Stream stream = nullptr;
    void* memory = nullptr;  // nullptr: a tensor of the caller stores the output, or it has 0 bytes
    int64_t bytes = 0;
    // The owner of the caller's tensor that stores the output; may be empty. If that tensor is
    // itself an output stored in another tensor, this is the other tensor's owner. Runs that update
    // one tensor again and again therefore do not keep all earlier records.
    std::shared_ptr<void> lender;
    Counts counts;
  };
  // The deleter of an owner. producerOf() and borrow() get the deleter of a caller's
  // std::shared_ptr with std::get_deleter. producerOf() then reads `record`, and borrow() reads
  // `owner`. borrow() does not call get() of the std::shared_ptr, because an aliasing
  // std::shared_ptr can return any pointer.
  struct ReleaseOwner {
    RunRecord* record;
    Owner* owner;
    void operator()(Owner*) const noexcept { record->free(*owner); }
  };
  // Stores the reference counts of a part's std::shared_ptr in the record. When the std::shared_ptr
  // releases this memory, the part is no longer in use.
  template <class T>
  struct CountsAllocator {
    using value_type = T;
    CountsAllocator(RunRecord& r, Counts& c) noexcept : record(&r), counts(&c) {}
    template <class Other>
    CountsAllocator(const CountsAllocator<Other>& other) noexcept
        : record(other.record), counts(other.counts) {}
    T* allocate(size_t) noexcept {
      static_assert(sizeof(T) <= Counts::kBytes && alignof(T) <= alignof(Counts));
      return reinterpret_cast<T*>(counts->bytes);
    }
    void deallocate(T*, size_t) noexcept { record->releasePart(); }
    template <class Other>
    bool operator==(const CountsAllocator<Other>& other) const noexcept {
      return counts == other.counts;
    }
    RunRecord* record;
    Counts* counts;
  };

  template <class T, class Release>
  std::shared_ptr<T> share(T& part, Counts& counts, Release release) {
    parts_.fetch_add(1, std::memory_order_relaxed);
    return std::shared_ptr<T>(&part, release, CountsAllocator<T>(*this, counts));
  }
  void releasePart() noexcept;
  void prepareFor(const Plan& plan);
  std::shared_ptr<void> take(RunState& state, BufferId buffer, Allocator& allocator, Owner& owner);
  std::shared_ptr<void> borrow(const std::shared_ptr<void>& lender, Owner& owner);
  void free(Owner& owner) noexcept;

  std::atomic<int64_t> parts_{0};  // number of parts that are in use
  Completion completion_;
  Counts completion_counts_;
  RunResult result_;
  Counts result_counts_;
  std::unique_ptr<Owner[]> owners_;  // one per output
  std::vector<bool> stored_;         // per output: it is in an input that the run writes
  // true: finish() has not been called since prepareFor() stored the descriptors of a new plan in
  // `result_`. The next finish() replaces the descriptors of preallocated outputs by those of the
  // caller.
  bool is_new_ = true;
};

}  // namespace heddle::host
