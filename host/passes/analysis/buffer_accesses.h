#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Finds the buffers that each item of a host program accesses. An item is an instruction at the top
// level of the program; a For or If together with its bodies is one item.

// A root is a buffer. Each tensor input of the program is a buffer, and each Allocate instruction
// creates one. Memory that an Allocate reuses (Allocate::reuse) counts as new memory.
using RootId = Id<struct RootTag>;  // index into BufferAccesses::allocate

using PartId = Id<struct PartTag>;  // index into BufferAccesses::parts

struct ItemAccess {
  RootId root;
  bool write;
  PartId part = {};  // invalid: unknown, possibly the full buffer
  auto operator<=>(const ItemAccess&) const = default;
  // Returns the same access to the full buffer.
  ItemAccess whole() const { return {root, write}; }
};

// A part of a buffer: elements in the range [start, stop) along `axis` of the tensor that `slot`
// names. If a slice has steps, the part contains only some elements of the range. A program may
// define a slot several times; `definition` is the number of the definition.
struct BufferPart {
  SlotId slot;
  int32_t definition;  // 0: the slot is an input of the program; otherwise counted from 1
  size_t axis;
  Size start;
  Size stop;
};

struct Item {
  std::set<ItemAccess> accesses;
  StreamId stream;  // invalid: the item has no stream
  TokenId posts;    // the token of the operation that the item posts; invalid: it posts none
  // true: the author of the program has ordered this item on the streams. If an opaque item uses a
  // buffer that is allocated at the top level, insertFrees() does not free this buffer. The other
  // passes that order streams do not change a program that contains an opaque item. Opaque items
  // are:
  //  - GroupBegin, GroupEnd, Send, Recv, Call and barriers
  //  - a For or If whose bodies contain one of these, or a post, a wait, an event or a stream other
  //    than kCallerStream
  bool opaque = false;
};

struct BufferAccesses {
  std::vector<Item> items;  // parallel to Program::body

  std::set<RootId> inputs;
  std::set<RootId> returned;                      // buffers that an output of the program may name
  std::set<RootId> freed;                         // buffers that a Free of the program names
  IdVector<RootId, const Instruction*> allocate;  // the Allocate of each root; nullptr: an input
  IdVector<PartId, BufferPart> parts;

  bool anyOpaque() const;
  // Returns whether two accesses to the same root may share an element. Returns false only if it is
  // certain, for all sizes, that they share none.
  bool mayOverlap(const ItemAccess& a, const ItemAccess& b) const;
  // Returns true only if every access that may overlap `b` may also overlap `a`. Requires that `a`
  // and `b` access the same root.
  static bool covers(const ItemAccess& a, const ItemAccess& b) {
    return !a.part.valid() || a.part == b.part;
  }
  // Returns whether one of the two items may write elements that the other item accesses.
  bool conflict(const Item& a, const Item& b) const;
};

BufferAccesses bufferAccessesOf(const Program& program);

// Returns whether passes may order the streams of the program. Returns false if the program
// contains an opaque item or an event, because the author of the program then ordered the streams.
bool isUnordered(const Program& program, const BufferAccesses& items);

}  // namespace heddle::host
