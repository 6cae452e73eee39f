#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Finds the buffers that each item of a program accesses. An item is a top-level instruction. A For
// or an If together with its bodies is one item. A root is a buffer: an input, or the result of one
// Allocate instruction.
using RootId = Id<struct RootTag>;  // index into BufferAccesses::allocate

using PartId = Id<struct PartTag>;  // index into BufferAccesses::parts

// An access of an item to a buffer or to a part of it.
struct ItemAccess {
  RootId root;
  bool write;
  PartId part = {};  // invalid: any part
  auto operator<=>(const ItemAccess&) const = default;
  // Returns the same access to the full buffer.
  ItemAccess whole() const { return {root, write}; }
};

// A part of a buffer: the elements [start, stop) along an axis. The slot names this part after its
// definition number `definition`.
struct BufferPart {
  SlotId slot;
  int32_t definition;  // of the slot, counted from 1
  size_t axis;
  Size start;
  Size stop;
};

struct Item {
  std::set<ItemAccess> accesses;
  StreamId stream;  // invalid: host side
  TokenId posts;    // Communicate: its token
  // True if the author of the program ordered this item. It is then a group, a send or receive, a
  // barrier, or a For or If with its own streams, posts or waits. Passes change neither the item
  // nor the accesses to its buffers.
  bool opaque = false;
};

struct BufferAccesses {
  std::vector<Item> items;  // parallel to Program::body

  std::set<RootId> inputs;
  std::set<RootId> returned;
  std::set<RootId> freed;                         // buffers that a Free of the program names
  IdVector<RootId, const Instruction*> allocate;  // nullptr: an input
  IdVector<PartId, BufferPart> parts;

  bool anyOpaque() const;
  // Returns false if two accesses of one root share no element at any sizes.
  bool mayOverlap(const ItemAccess& a, const ItemAccess& b) const;
  // Returns whether every access that may overlap `b` may also overlap `a`. Both are accesses to
  // the same root.
  static bool covers(const ItemAccess& a, const ItemAccess& b) {
    return !a.part.valid() || a.part == b.part;
  }
  // Returns whether one of the items may write elements that the other one accesses.
  bool conflict(const Item& a, const Item& b) const;
};

BufferAccesses bufferAccessesOf(const Program& program);

// Returns whether passes may order the streams of the program. They may if the program has no
// opaque item and no event. Otherwise its author ordered it.
bool isUnordered(const Program& program, const BufferAccesses& items);

}  // namespace heddle::host
