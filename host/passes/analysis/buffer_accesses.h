#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// The analysis of the buffers that the top-level instructions of a program access. A For or If with
// its bodies is one item.

// A buffer: an input, or the result of one Allocate instruction.
using RootId = int32_t;

struct ItemAccess {
  RootId root;
  bool write;
  int32_t part = -1;  // index into BufferAccesses::parts; -1: any part
  auto operator<=>(const ItemAccess&) const = default;
  // The same access without its part.
  ItemAccess whole() const { return {root, write}; }
};

// The elements [start, stop) along an axis of the buffer that one definition of a slot names.
struct BufferPart {
  SlotId slot;
  int32_t definition;  // of the slot, counted from 1
  size_t axis;
  Size start;
  Size stop;
};

struct Item {
  std::set<ItemAccess> accesses;
  StreamId stream = -1;  // -1: host side
  TokenId posts = -1;    // Communicate: its token
  // The author of the program ordered this item: a group, a send or receive, a barrier, or a body
  // with its own streams, posts or waits. Passes do not change it or the buffers that it accesses.
  bool opaque = false;
};

struct BufferAccesses {
  std::vector<Item> items;  // parallel to Program::body
  RootId roots = 0;
  std::set<RootId> inputs;
  std::set<RootId> returned;
  std::set<RootId> freed;                    // by some Free of the program
  std::vector<const Instruction*> allocate;  // per root; nullptr: an input
  std::vector<BufferPart> parts;

  bool anyOpaque() const;
  // Returns false if two accesses of one root share no element at any sizes.
  bool mayOverlap(const ItemAccess& a, const ItemAccess& b) const;
  // Whether every access that may overlap `b` may also overlap `a`, of the same root.
  static bool covers(const ItemAccess& a, const ItemAccess& b) {
    return a.part < 0 || a.part == b.part;
  }
  // Whether one of the items may write elements that the other one accesses.
  bool conflict(const Item& a, const Item& b) const;
};

BufferAccesses bufferAccessesOf(const Program& program);

// Whether the program has no order of its own: no opaque item and no event.
bool isUnordered(const Program& program, const BufferAccesses& items);

}  // namespace heddle::host
