#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Says why a pass chose a hinted memory order for a value, or why an op refused the hint. The
// passes in this folder and settleOrders() (ir/segment/settle_orders.h) store the list of all notes
// as an annotation. A value can have several notes, for example if inferOrders chose a hint and
// settleOrders() removed it later.
struct OrderNote {
  std::string value;  // the name of the value
  AxisOrder order;    // the hinted order, which was chosen or refused
  std::string from;   // origin of the order: "input %x", "reshape %r"
  // Why an op refused the hint, so that it was undone: "reshape %r needs a row-major operand".
  // Empty: the hint was chosen.
  std::string undone;
  bool operator==(const OrderNote&) const = default;
};

inline constexpr const char* kOrderAnnotation = "orders";

// Adds those of the notes that the fusion does not have yet.
void addOrderNotes(Fusion& fusion, const std::vector<OrderNote>& notes);

// Returns where the hint of the value comes from, for example "input %x". Returns "the text" if no
// note states the origin, because the text of the fusion then states the hint.
std::string hintOrigin(const Fusion& fusion, ValueId id);

// The memory order of one value, or a hint that was refused and therefore undone.
struct ValueOrder {
  enum class Kind : uint8_t { Required, Needed, Hinted };
  std::string value;  // the name of the value
  AxisOrder order;
  Kind kind;
  std::string from;    // "the user", "allgather %y", "input %x"
  std::string undone;  // why the hint was undone; empty: the value is stored in this order
};

std::string_view name(ValueOrder::Kind kind);  // "required", "needed", "hinted"

// Returns the orders of the values that have a required, needed or hinted order, and the hints that
// were undone.
std::vector<ValueOrder> ordersOf(const Fusion& fusion, const std::vector<ValueId>& values);

// Returns one line for each of the values that has a required, needed or hinted memory order, and
// one line for each hint that was undone. Returns "" if there are none. For example:
//   %y: order [0, 2, 3, 1], hint from input %x
//   %z: hint [1, 0] from input %x was undone: reshape %r needs a row-major operand
//   %w: order [1, 0], required by the user
std::string dumpOrders(const Fusion& fusion, const std::vector<ValueId>& values);

}  // namespace heddle
