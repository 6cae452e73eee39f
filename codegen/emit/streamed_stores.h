#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/emit/kernel_text.h"

namespace heddle::codegen {

// The streamed stores of a loop in a C++ kernel. They bypass the caches if the argument `streams`
// is not 0 (ArgumentValue::Kind::Streams). For an ordinary store, the CPU first reads the cache
// line that the store changes, so a large output moves twice its bytes. With streamed stores, the
// loop writes a block of elements to a buffer, and hd::stream() stores the buffer. If the block
// begins at the start of a cache line, the complete lines of the block are not read first.
class StreamedStores {
 public:
  static constexpr int kBlockElements = 256;

  // Streams the stores whose lanes are neighbours in memory, except stores to the tensors in
  // `excluded`.
  StreamedStores(const KernelFrame& frame, const Body& body, const std::vector<int>& excluded = {});

  bool any() const { return !tensors_.empty(); }
  // Writes the declarations of the buffers, and of the pointers to which the loop stores a block.
  // In the text, the block consists of the elements `start` to `end` - 1. The caller declares both
  // variables.
  void open(TextWriter& out) const;
  // Returns the expression of the element in lane `i` to which the loop stores a value of `tensor`.
  std::string element(int tensor) const;
  // Writes the calls of hd::stream(), which follow the loop.
  void close(TextWriter& out) const;

 private:
  const KernelFrame& frame_;
  std::vector<int> tensors_;
};

// Writes the last statement of an entry point. It makes the streamed stores visible to other
// threads before any later store of this thread.
inline void finishStreams(TextWriter& out) { out.line("if (streams) hd::finishStreams();"); }

inline StreamedStores::StreamedStores(const KernelFrame& frame, const Body& body,
                                      const std::vector<int>& excluded)
    : frame_(frame) {
  for (const Store& store : body.stores) {
    const bool listed = std::count(tensors_.begin(), tensors_.end(), store.tensor) > 0;
    const bool out = std::count(excluded.begin(), excluded.end(), store.tensor) > 0;
    if (frame.access(store.tensor).lane == LaneStride::One && !listed && !out) {
      tensors_.push_back(store.tensor);
    }
  }
}

inline void StreamedStores::open(TextWriter& out) const {
  for (const int t : tensors_) {
    const std::string_view type = storedType(frame_.access(t).dtype);
    out.line(fmt::format("alignas(64) {} buffer{}[{}];", type, t, kBlockElements));
    out.line(fmt::format("{0}* const to{1} = streams ? buffer{1} : p{1} + start;", type, t));
  }
}

inline std::string StreamedStores::element(int tensor) const {
  const bool streamed = std::count(tensors_.begin(), tensors_.end(), tensor) > 0;
  return streamed ? fmt::format("to{}[i - start]", tensor) : cppElement(frame_, tensor);
}

inline void StreamedStores::close(TextWriter& out) const {
  for (const int t : tensors_) {
    out.line(fmt::format("if (streams) hd::stream(p{0} + start, buffer{0}, end - start);", t));
  }
}

}  // namespace heddle::codegen
