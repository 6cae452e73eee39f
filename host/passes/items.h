#pragma once

#include <set>
#include <vector>

#include "host/program.h"

namespace heddle::host {

// What the top-level instructions of a program touch, a For or If as one item. A root is a buffer:
// an input, or what one Allocate instruction makes.
using RootId = int32_t;

struct ItemAccess {
  RootId root;
  bool write;
  bool operator<(const ItemAccess& o) const {
    return root != o.root ? root < o.root : write < o.write;
  }
};

struct Item {
  std::set<ItemAccess> accesses;
  StreamId stream = -1;  // -1: host side
  TokenId posts = -1;    // Communicate: its token
  // A body or group with streams, posts or waits of its own, which its author has ordered: passes
  // leave it and what it touches as they are.
  bool opaque = false;
};

struct Items {
  std::vector<Item> items;  // parallel to Program::body
  RootId roots = 0;
  std::set<RootId> inputs;
  std::set<RootId> returned;
  std::set<RootId> freed;                    // by some Free of the program
  std::vector<const Instruction*> allocate;  // per root; nullptr: an input

  bool anyOpaque() const;
};

Items itemsOf(const Program& program);

bool conflict(const Item& a, const Item& b);

// No opaque item and no event: nobody has ordered streams by hand yet.
bool isUnordered(const Program& program, const Items& items);

}  // namespace heddle::host
