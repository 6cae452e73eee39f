#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// What the top-level instructions of a program touch, a For or If as one item. A root is a buffer:
// an input, or what one Allocate instruction makes.
using RootId = int32_t;

struct ItemAccess {
  RootId root;
  bool write;
  int32_t part = -1;  // of BufferAccesses::parts; -1: any of it
  auto operator<=>(const ItemAccess&) const = default;
  // Of whatever part.
  ItemAccess whole() const { return {root, write}; }
};

// Elements [start, stop) along an axis of what one definition of a slot names.
struct BufferPart {
  SlotId slot;
  int32_t definition;  // of that slot, counted from 1
  size_t axis;
  Size start;
  Size stop;
};

struct Item {
  std::set<ItemAccess> accesses;
  StreamId stream = -1;  // -1: host side
  TokenId posts = -1;    // Communicate: its token
  // A body or group with streams, posts or waits of its own, which its author has ordered: passes
  // leave it and what it touches as they are.
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
  // False when the two, of one root, are known to share no element whatever the sizes are.
  bool mayOverlap(const ItemAccess& a, const ItemAccess& b) const;
  // Whether what mayOverlap() `b`, of the same root, may overlap `a` too.
  static bool covers(const ItemAccess& a, const ItemAccess& b) {
    return a.part < 0 || a.part == b.part;
  }
  // Whether one of them writes what the other touches.
  bool conflict(const Item& a, const Item& b) const;
};

BufferAccesses bufferAccessesOf(const Program& program);

// No opaque item and no event: nobody has ordered streams by hand yet.
bool isUnordered(const Program& program, const BufferAccesses& items);

}  // namespace heddle::host
