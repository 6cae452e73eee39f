#pragma once

#include <tuple>

#include "host/program/fields.h"
#include "host/program/instructions.h"

namespace heddle::host {

// The fields of each instruction (host/program/instructions.h), in the order of the text form.
// Exception: in the text form of a Call, the inputs precede the outputs. The lists are not in the
// structs, because the structs are public. Programs that use heddle do not need the lists, which
// take long to compile.

template <>
struct FieldList<Allocate> {
  static constexpr std::tuple kFields{field::slot(&Allocate::out, kAllocated),
                                      field::slot(&Allocate::reuse, kNamed),
                                      field::stream(&Allocate::stream)};
};

template <>
struct FieldList<Free> {
  static constexpr std::tuple kFields{field::slot(&Free::slot, kWritten),
                                      field::stream(&Free::stream)};
};

template <>
struct FieldList<Alias> {
  static constexpr std::tuple kFields{field::slot(&Alias::out, kDefined), field::slot(&Alias::in),
                                      field::size(&Alias::view)};
};

template <>
struct FieldList<Evaluate> {
  static constexpr std::tuple kFields{field::slot(&Evaluate::out, kDefined),
                                      field::operand(&Evaluate::expression)};
};

template <>
struct FieldList<LaunchKernel> {
  static constexpr std::tuple kFields{
      field::kernel(&LaunchKernel::kernel), field::slot(&LaunchKernel::inputs, kRead),
      field::slot(&LaunchKernel::outputs, kWritten), field::stream(&LaunchKernel::stream)};
};

template <>
struct FieldList<CallLibrary> {
  static constexpr std::tuple kFields{
      field::setting(&CallLibrary::function),       field::slot(&CallLibrary::inputs, kRead),
      field::slot(&CallLibrary::outputs, kWritten), field::size(&CallLibrary::attrs),
      field::setting(&CallLibrary::spare_sms),      field::stream(&CallLibrary::stream)};
};

template <>
struct FieldList<Copy> {
  static constexpr std::tuple kFields{field::slot(&Copy::in, kRead),
                                      field::slot(&Copy::out, kWritten),
                                      field::stream(&Copy::stream)};
};

template <>
struct FieldList<Communicate> {
  static constexpr std::tuple kFields{field::token(&Communicate::token, kDefined),
                                      field::setting(&Communicate::kind),
                                      field::slot(&Communicate::in, kSent),
                                      field::slot(&Communicate::out, kReceived),
                                      field::slot(&Communicate::also),
                                      field::team(&Communicate::team),
                                      field::setting(&Communicate::reduce),
                                      field::size(&Communicate::root),
                                      field::slot(&Communicate::send_counts),
                                      field::slot(&Communicate::recv_counts),
                                      field::setting(&Communicate::carrier),
                                      field::stream(&Communicate::stream)};
};

template <>
struct FieldList<Send> {
  static constexpr std::tuple kFields{field::token(&Send::token, kDefined),
                                      field::slot(&Send::slot, kSent), field::size(&Send::peer),
                                      field::team(&Send::team), field::stream(&Send::stream)};
};

template <>
struct FieldList<Recv> {
  static constexpr std::tuple kFields{field::token(&Recv::token, kDefined),
                                      field::slot(&Recv::slot, kReceived), field::size(&Recv::peer),
                                      field::team(&Recv::team), field::stream(&Recv::stream)};
};

template <>
struct FieldList<GroupBegin> {
  static constexpr std::tuple<> kFields{};
};

template <>
struct FieldList<GroupEnd> {
  static constexpr std::tuple kFields{field::token(&GroupEnd::token, kDefined)};
};

template <>
struct FieldList<Wait> {
  static constexpr std::tuple kFields{field::token(&Wait::token), field::stream(&Wait::stream)};
};

template <>
struct FieldList<RecordEvent> {
  static constexpr std::tuple kFields{field::event(&RecordEvent::event, kDefined),
                                      field::stream(&RecordEvent::stream)};
};

template <>
struct FieldList<WaitEvent> {
  static constexpr std::tuple kFields{field::event(&WaitEvent::event),
                                      field::stream(&WaitEvent::stream)};
};

template <>
struct FieldList<ReadBack> {
  static constexpr std::tuple kFields{field::slot(&ReadBack::out, kDefined),
                                      field::slot(&ReadBack::in, kRead),
                                      field::stream(&ReadBack::stream)};
};

template <>
struct FieldList<For> {
  static constexpr std::tuple kFields{field::loopIndex(&For::index), field::size(&For::start),
                                      field::size(&For::stop), field::body(&For::body)};
};

template <>
struct FieldList<If> {
  static constexpr std::tuple kFields{field::operand(&If::predicate), field::body(&If::then_body),
                                      field::body(&If::else_body)};
};

template <>
struct FieldList<Call> {
  static constexpr std::tuple kFields{field::setting(&Call::program),
                                      field::slot(&Call::outputs, kDefined),
                                      field::slot(&Call::inputs)};
};

template <>
struct FieldList<Check> {
  static constexpr std::tuple kFields{field::slot(&Check::slot, kRead),
                                      field::stream(&Check::stream)};
};

template <>
struct FieldList<Print> {
  static constexpr std::tuple kFields{field::slot(&Print::slot, kRead),
                                      field::stream(&Print::stream)};
};

}  // namespace heddle::host
