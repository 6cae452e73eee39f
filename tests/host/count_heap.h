#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

#ifdef HEDDLE_SANITIZED
// The sanitizer libraries define this function. Its header <sanitizer/allocator_interface.h> is not
// installed everywhere.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                             size_t),
                                                         void (*free_hook)(const volatile void*));
#endif

// Counts the heap allocations of the executable. At most one source file of an executable may
// include this header.
namespace heddle::host::testing {

// Returns the number of heap allocations of the calling thread so far.
inline int64_t& heapAllocations() {
  static thread_local int64_t count = 0;
  return count;
}

// Calls `run` until it reuses the memory of earlier runs. Then calls it another kCounted times, and
// returns the number of allocations in these later calls.
template <class Run>
int64_t allocationsOfRepeatedRuns(const Run& run) {
  constexpr int kEarlier = 40;
  constexpr int kCounted = 20;
  for (int i = 0; i < kEarlier; ++i) run();
  const int64_t before = heapAllocations();
  for (int i = 0; i < kCounted; ++i) run();
  return heapAllocations() - before;
}

#ifdef HEDDLE_SANITIZED

// The library of a sanitizer defines operator new itself, and calls this function at each
// allocation.
inline const int kHook = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { ++heapAllocations(); }, [](const volatile void*) {});

}  // namespace heddle::host::testing

#else

// Over-aligned allocations are not counted.
inline void* countedAllocate(std::size_t bytes) noexcept {
  ++heapAllocations();
  return std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace heddle::host::testing

void* operator new(std::size_t bytes) {
  void* memory = heddle::host::testing::countedAllocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return heddle::host::testing::countedAllocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return heddle::host::testing::countedAllocate(bytes);
}
// Without this pragma, GCC warns that the inlined replacements of the operators do not match.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

#endif
