#include "host/passes/insert_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/passes/analysis/stream_order.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

class SyncInserter {
 public:
  explicit SyncInserter(Program program)
      : program_(std::move(program)),
        items_(bufferAccessesOf(program_)),
        order_(program_, items_),
        before_(program_.body.size() + 1),
        after_(program_.body.size()),
        event_names_(program_.events.begin(), program_.events.end()) {}

  Program run() {
    if (items_.anyOpaque()) return std::move(program_);
    for (size_t i = 0; i < items_.items.size(); ++i) {
      const StreamId stream = items_.items[i].stream;
      if (stream.valid()) require(order_.missing(i), stream, i);
      order_.step(i);
    }
    require(order_.missingAtEnd(), kCallerStream, items_.items.size());
    std::vector<Instruction> body;
    append(body, begin_);
    for (size_t i = 0; i < program_.body.size(); ++i) {
      append(body, before_[i]);
      body.push_back(std::move(program_.body[i]));
      append(body, after_[i]);
    }
    append(body, before_.back());
    program_.body = std::move(body);
    return std::move(program_);
  }

 private:
  static void append(std::vector<Instruction>& to, std::vector<Instruction>& from) {
    for (Instruction& x : from) to.push_back(std::move(x));
  }

  // Orders item `at` on `stream` after the accesses in `missing`. Inserts Wait and WaitEvent before
  // the item, and RecordEvent after the earlier items. An access needs no instruction of its own in
  // two cases:
  // - `missing` contains a later access on the same stream, which must be awaited anyway. This case
  //   does not apply to accesses of posted operations.
  // - The waits for the other accesses in `missing` already order `stream` after this access.
  void require(const std::vector<StreamOrder::Done>& missing, StreamId stream, size_t at) {
    std::map<StreamId, StreamOrder::Done> latest;
    std::map<int32_t, StreamOrder::Done> posts;
    for (const StreamOrder::Done& done : missing) {
      if (done.post >= 0) {
        posts.emplace(done.post, done);
      } else if (auto [found, is_new] = latest.emplace(done.stream, done);
                 !is_new && done.time > found->second.time) {
        found->second = done;
      }
    }
    std::vector<StreamOrder::Done> needed;
    for (const auto& [post, done] : posts) needed.push_back(done);
    for (const auto& [from, done] : latest) needed.push_back(done);
    for (size_t i = 0; i < needed.size();) {
      VectorClock others = order_.clock(stream);
      for (size_t j = 0; j < needed.size(); ++j) {
        if (j != i) others.join(order_.after(needed[j]));
      }
      if (needed[i].knownTo(others)) {
        needed.erase(needed.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    for (const StreamOrder::Done& done : needed) wait(done, stream, at);
  }

  // Inserts an instruction before item `at` that orders `stream` after the access `done`.
  void wait(const StreamOrder::Done& done, StreamId stream, size_t at) {
    if (done.post >= 0) {
      const TokenId token = order_.tokenOf(done.post);
      // The token is invalid if a later operation has been posted with the same token. A Wait can
      // then no longer wait for this operation, and verify() reports the missing order.
      if (!token.valid()) return;
      before_[at].push_back({Wait{token, stream}});
    } else {
      before_[at].push_back({WaitEvent{eventAfter(done), stream}});
    }
    order_.clock(stream).join(order_.after(done));
  }

  // Returns the event that is recorded after the item of the access. Creates the event and its
  // RecordEvent at the first call for this item.
  EventId eventAfter(const StreamOrder::Done& done) {
    const auto [found, is_new] = event_after_.emplace(done.item, program_.events.endId());
    if (is_new) {
      program_.events.push_back(freshName());
      const Instruction record{RecordEvent{found->second, done.stream}};
      (done.item == StreamOrder::kBegin ? begin_ : after_[done.item]).push_back(record);
    }
    return found->second;
  }

  std::string freshName() {
    for (size_t i = program_.events.size();; ++i) {
      std::string name = fmt::format("e{}", i);
      if (event_names_.insert(name).second) return name;
    }
  }

  Program program_;
  BufferAccesses items_;
  StreamOrder order_;
  std::vector<Instruction> begin_;                // to insert at the beginning of the program
  std::vector<std::vector<Instruction>> before_;  // to insert before each item, and at the end
  std::vector<std::vector<Instruction>> after_;   // to insert after each item
  std::unordered_set<std::string> event_names_;
  std::map<size_t, EventId> event_after_;  // item -> event that is recorded after it
};

}  // namespace

Program insertSync(Program program) { return SyncInserter(std::move(program)).run(); }

}  // namespace heddle::host
