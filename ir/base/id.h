#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace heddle {

// An index into a list. Lists of different things, such as the values and the expressions of a
// fusion, have different Id types, each with its own tag. Code that uses an id with a list of the
// wrong type therefore does not compile. Example of such a type:
//
//   using ValueId = Id<struct ValueTag>;  // index into Fusion::values()
//
// An id is as large and as cheap as an int32_t. A default-constructed id is invalid: it refers to
// no element.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::integral auto index) : number_(static_cast<int32_t>(index)) {}

  constexpr bool valid() const { return number_ >= 0; }
  // Returns the index in the list. The index of an invalid id is larger than the size of every
  // list.
  constexpr size_t index() const { return static_cast<size_t>(number_); }
  // Returns the index, or -1 for an invalid id.
  constexpr int32_t number() const { return number_; }

  constexpr auto operator<=>(const Id&) const = default;

 private:
  int32_t number_ = -1;
};

// The ids from `first` up to, but not including, `last`. A range-based for loop can iterate over
// them.
template <class IdType>
class IdRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = IdType;
    using difference_type = std::ptrdiff_t;
    using pointer = const IdType*;
    using reference = IdType;

    constexpr Iterator() = default;
    constexpr explicit Iterator(int32_t number) : number_(number) {}
    constexpr IdType operator*() const { return IdType(number_); }
    constexpr Iterator& operator++() {
      ++number_;
      return *this;
    }
    constexpr Iterator operator++(int) { return Iterator(number_++); }
    constexpr Iterator& operator--() {
      --number_;
      return *this;
    }
    constexpr Iterator operator--(int) { return Iterator(number_--); }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    int32_t number_ = 0;
  };

  constexpr IdRange(IdType first, IdType last) : first_(first.number()), last_(last.number()) {}
  constexpr Iterator begin() const { return Iterator(first_); }
  constexpr Iterator end() const { return Iterator(last_); }

  // The ids of a range in descending order.
  class Reversed {
   public:
    constexpr explicit Reversed(const IdRange& range) : range_(range) {}
    constexpr auto begin() const { return std::make_reverse_iterator(range_.end()); }
    constexpr auto end() const { return std::make_reverse_iterator(range_.begin()); }

   private:
    IdRange range_;
  };
  constexpr Reversed reversed() const { return Reversed(*this); }

 private:
  int32_t first_;
  int32_t last_;
};

// A std::vector that is indexed by ids of one type.
template <class IdType, class T>
class IdVector {
 public:
  using Items = std::vector<T>;
  using value_type = T;
  using reference = typename Items::reference;
  using const_reference = typename Items::const_reference;
  using iterator = typename Items::iterator;
  using const_iterator = typename Items::const_iterator;

  IdVector() = default;
  explicit IdVector(size_t count) : items_(count) {}
  IdVector(size_t count, const T& item) : items_(count, item) {}
  IdVector(std::initializer_list<T> items) : items_(items) {}
  explicit IdVector(Items items) : items_(std::move(items)) {}

  // Requires that has(id) is true.
  reference operator[](IdType id) { return items_[id.index()]; }
  const_reference operator[](IdType id) const { return items_[id.index()]; }
  // at() throws std::out_of_range if has(id) is false.
  reference at(IdType id) { return items_.at(id.index()); }
  const_reference at(IdType id) const { return items_.at(id.index()); }
  bool has(IdType id) const { return id.index() < items_.size(); }

  // Returns the ids of all current elements, in ascending order.
  IdRange<IdType> ids() const { return {IdType(0), endId()}; }
  // Returns the id that the next push_back() returns.
  IdType endId() const { return IdType(items_.size()); }

  // push_back() and emplace_back() append an element and return its id.
  IdType push_back(T item) {
    items_.push_back(std::move(item));
    return IdType(items_.size() - 1);
  }
  template <class... Args>
  IdType emplace_back(Args&&... args) {
    items_.emplace_back(std::forward<Args>(args)...);
    return IdType(items_.size() - 1);
  }

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void reserve(size_t count) { items_.reserve(count); }
  void resize(size_t count) { items_.resize(count); }
  void resize(size_t count, const T& item) { items_.resize(count, item); }
  void assign(size_t count, const T& item) { items_.assign(count, item); }
  void clear() { items_.clear(); }
  reference front() { return items_.front(); }
  const_reference front() const { return items_.front(); }
  reference back() { return items_.back(); }
  const_reference back() const { return items_.back(); }
  iterator begin() { return items_.begin(); }
  const_iterator begin() const { return items_.begin(); }
  iterator end() { return items_.end(); }
  const_iterator end() const { return items_.end(); }
  const Items& items() const { return items_; }

  bool operator==(const IdVector&) const = default;

 private:
  Items items_;
};

}  // namespace heddle

template <class Tag>
struct std::hash<heddle::Id<Tag>> {
  size_t operator()(heddle::Id<Tag> id) const noexcept { return std::hash<int32_t>()(id.number()); }
};
