#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "tests/comm/conformance/values.h"

// The cases and their expected results. The results are closed formulas of rank, index and round,
// and use none of the tested code.
namespace heddle::comm::conformance {

// Sanitizers make these cases many times slower, so they get fewer repeats and elements.
#ifdef HEDDLE_SANITIZED
constexpr int kRepeats = 5;
constexpr int64_t kLarge = 5003;
constexpr int64_t kMegabyte = 5003;
#else
constexpr int kRepeats = 100;
constexpr int64_t kLarge = 20011;
constexpr int64_t kMegabyte = 131073;  // one element more than 1 MiB of f64
#endif

// Returns whether the environment has HEDDLE_CONFORMANCE=full. If so, every case runs kRepeats
// times on the same buffers. Otherwise allCases() selects a subset that takes little time.
inline bool isFullSuite() {
  static const bool full = [] {
    const char* asked = std::getenv("HEDDLE_CONFORMANCE");
    return asked != nullptr && std::string(asked) == "full";
  }();
  return full;
}

struct Case {
  CollectiveKind kind;
  DType dtype;
  ReduceOp op;
  int64_t count;
  bool in_place = false;
  int repeats = 1;
  int root = -1;
};

inline bool isRootedKind(CollectiveKind kind) {
  return kind == CollectiveKind::Reduce || kind == CollectiveKind::Broadcast ||
         kind == CollectiveKind::Gather || kind == CollectiveKind::Scatter;
}

// Returns how many elements rank `from` of the team sends to rank `to` in an AllToAllV. The counts
// differ, some are 0, and every third rank sends nothing.
inline int64_t unevenPart(const Case& c, int from, int to) {
  if (from % 3 == 1 || c.count == 0) return 0;
  return (from + 2 * to) % 4 == 3 ? 0 : c.count - (3 * from + to) % std::min<int64_t>(c.count, 5);
}

struct Sizes {
  int64_t sent = 0;
  int64_t received = 0;
  std::vector<int64_t> send_counts, recv_counts;
};
inline Sizes sizesOf(const Case& c, int me, int size) {
  const bool root = me == c.root;
  switch (c.kind) {
    case CollectiveKind::Reduce:
      return {c.count, root ? c.count : 0, {}, {}};
    case CollectiveKind::Broadcast:
      return {root ? c.count : 0, c.count, {}, {}};
    case CollectiveKind::Allgather:
      return {c.count, c.count * size, {}, {}};
    case CollectiveKind::Gather:
      return {c.count, root ? c.count * size : 0, {}, {}};
    case CollectiveKind::Scatter:
      return {root ? c.count * size : 0, c.count, {}, {}};
    case CollectiveKind::ReduceScatter:
      return {c.count * size, c.count, {}, {}};
    case CollectiveKind::AllToAll:
      return {c.count * size, c.count * size, {}, {}};
    case CollectiveKind::AllToAllV: {
      Sizes sizes;
      for (int other = 0; other < size; ++other) {
        sizes.send_counts.push_back(unevenPart(c, me, other));
        sizes.recv_counts.push_back(unevenPart(c, other, me));
        sizes.sent += sizes.send_counts.back();
        sizes.received += sizes.recv_counts.back();
      }
      return sizes;
    }
    case CollectiveKind::Allreduce:
    case CollectiveKind::Barrier:
    case CollectiveKind::Send:
    case CollectiveKind::Recv:
      break;
  }
  return {c.count, c.count, {}, {}};
}

// A range of a result, and what it must equal: `count` elements, beginning at index `at`. They
// equal the elements of the input of rank `from` of the team, beginning at element `first`. If
// `from` is -1, they equal the reduction of the inputs of all ranks.
struct Part {
  int64_t at = 0;
  int64_t count = 0;
  int from = -1;
  int64_t first = 0;
};

inline std::vector<Part> unevenParts(const Case& c, int me, int size) {
  std::vector<Part> parts;
  int64_t at = 0;
  for (int from = 0; from < size; ++from) {
    int64_t first = 0;
    for (int to = 0; to < me; ++to) first += unevenPart(c, from, to);
    parts.push_back({at, unevenPart(c, from, me), from, first});
    at += parts.back().count;
  }
  return parts;
}

// Returns the ranges that compose the result of rank `me` of the team.
inline std::vector<Part> partsOf(const Case& c, int me, int size) {
  const auto fromEach = [&](int64_t first) {
    std::vector<Part> parts;
    for (int from = 0; from < size; ++from) parts.push_back({from * c.count, c.count, from, first});
    return parts;
  };
  switch (c.kind) {
    case CollectiveKind::Allreduce:
      return {{0, c.count, -1, 0}};
    case CollectiveKind::Reduce:
      if (me != c.root) return {};
      return {{0, c.count, -1, 0}};
    case CollectiveKind::ReduceScatter:
      return {{0, c.count, -1, me * c.count}};
    case CollectiveKind::Broadcast:
      return {{0, c.count, c.root, 0}};
    case CollectiveKind::Allgather:
      return fromEach(0);
    case CollectiveKind::Gather:
      if (me != c.root) return {};
      return fromEach(0);
    case CollectiveKind::Scatter:
      return {{0, c.count, c.root, me * c.count}};
    case CollectiveKind::AllToAll:
      return fromEach(me * c.count);
    case CollectiveKind::AllToAllV:
      return unevenParts(c, me, size);
    case CollectiveKind::Barrier:
    case CollectiveKind::Send:
    case CollectiveKind::Recv:
      break;
  }
  return {};
}

inline std::string describeCase(const Case& c, const std::vector<int>& team, int me) {
  std::string text = std::string(name(c.kind)) + " " + std::string(heddle::name(c.op)) + " " +
                     std::to_string(c.count) + " " + std::string(heddle::name(c.dtype)) +
                     (c.in_place ? " in place" : "") + " root " + std::to_string(c.root) +
                     " rank " + std::to_string(me) + " of the team";
  for (int member : team) text += " " + std::to_string(member);
  return text;
}

// Returns the element counts to test. Every dtype has small counts. Large counts are slow, so only
// some dtypes have one. In the full suite, every dtype has a count of 1 MiB and one element.
inline std::vector<int64_t> countsOf(DType dtype) {
  std::vector<int64_t> counts = {0, 1, 37};
  if (isFullSuite()) {
    counts.push_back((int64_t{1} << 20) / sizeOf(dtype) + 1);
    return counts;
  }
  if (dtype == DType::F64) counts.push_back(kMegabyte);
  if (dtype == DType::I8 || dtype == DType::BF16 || dtype == DType::I32) counts.push_back(kLarge);
  return counts;
}

inline void addMoves(std::vector<Case>& cases, DType dtype, int64_t count, int repeats) {
  for (CollectiveKind kind :
       {CollectiveKind::Allgather, CollectiveKind::AllToAll, CollectiveKind::AllToAllV,
        CollectiveKind::Broadcast, CollectiveKind::Gather, CollectiveKind::Scatter}) {
    cases.push_back({kind, dtype, ReduceOp::Sum, count, false, repeats});
  }
  cases.push_back({CollectiveKind::Broadcast, dtype, ReduceOp::Sum, count, true, 2});
}

inline void addReductions(std::vector<Case>& cases, DType dtype, int64_t count, ReduceOp op,
                          int repeats) {
  cases.push_back({CollectiveKind::Allreduce, dtype, op, count, false, repeats});
  cases.push_back({CollectiveKind::Reduce, dtype, op, count, false, repeats});
  cases.push_back({CollectiveKind::ReduceScatter, dtype, op, count, false, repeats});
  cases.push_back({CollectiveKind::Allreduce, dtype, op, count, true, 2});
  cases.push_back({CollectiveKind::Reduce, dtype, op, count, true, 2});
}

// Returns the cases for a team of `size` ranks.
// - Successive rooted collectives have different roots.
// - Many repeats: only cases of 37 elements that move data, or compute a sum or a maximum.
// - A team of more than three ranks has fewer repeats, because its ranks share few cores.
// - The full suite has kRepeats repeats of each case.
inline std::vector<Case> allCases(int size) {
  const bool full = isFullSuite();
  const int many = size <= 3 || full ? kRepeats : kRepeats / 4;
  std::vector<Case> cases;
  for (DType dtype : kAllDTypes) {
    for (int64_t count : countsOf(dtype)) {
      addMoves(cases, dtype, count, count == 37 ? many : count < 37 ? 3 : 1);
      if (isFloat8(dtype)) continue;  // f8 is only moved, not reduced
      for (ReduceOp op :
           {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max, ReduceOp::Avg}) {
        if (op == ReduceOp::Avg && !isFloat(dtype)) continue;
        const bool large =
            op == ReduceOp::Sum || op == ReduceOp::Max || (op == ReduceOp::Avg && size == 1);
        if (!full && count > 37 && !large) continue;
        const bool often = count == 37 && (op == ReduceOp::Sum || op == ReduceOp::Max);
        addReductions(cases, dtype, count, op, often ? many : count <= 37 ? 3 : 1);
      }
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    if (full) cases[i].repeats = kRepeats;
    if (isRootedKind(cases[i].kind)) cases[i].root = static_cast<int>(i) % size;
  }
  return cases;
}

}  // namespace heddle::comm::conformance
