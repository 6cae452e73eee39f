#pragma once

#include <cstdint>

#include "host/device/device.h"
#include "host/device/device_tensor.h"

// Defined by dlpack.h of the DLPack project. These declarations agree with each of its versions, so
// a program may include any dlpack.h, or none.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

// The functions in this file exchange tensors with NumPy, PyTorch and other libraries through
// DLPack. No function copies data or waits for a device.
//
// Elements: all dtypes of heddle, with one lane (DLDataType::lanes). F8E4M3 is float8_e4m3fn of
//           DLPack.
// Devices:  a CPU device accepts memory of the CPU and pinned memory. A CUDA device accepts memory
//           of its own GPU and CUDA managed memory. A null device (makeNullDevice() in
//           host/device/null/null_device.h) accepts the same memory as a CPU device. toDLPack() and
//           toDLPackVersioned() throw for a null device.
// Threads:  all functions are thread-safe. Any thread may release a tensor or call a deleter.
// Errors:   UserError, which states what was found and what was expected. Its code is Type for a
//           dtype, ShapeMismatch for sizes or strides, Unsupported for a device or a version, and
//           otherwise InvalidArgument.
namespace heddle::host {

// The access that the receiver of a tensor has to its elements.
enum class DLPackAccess : uint8_t { ReadWrite, ReadOnly };

// These functions return a tensor in the memory of a managed tensor, which is the struct by which
// DLPack passes a tensor together with its deleter.
//
// Ownership: if the call succeeds, the result owns `managed`. When the last copy of Tensor::owner
//            is destroyed, heddle calls the deleter once, on the same thread. A run keeps a copy
//            until its work is done. A deleter that needs a lock, such as Python's GIL, must take
//            the lock itself. If the call throws, the caller still owns `managed`.
// Streams:   a run does not know what the producer has enqueued. The work of the producer (the
//            other library) must be done before the run begins, or must be earlier work on the
//            stream of the run (RunOptions::stream). In Python, call `tensor.__dlpack__(stream=s)`
//            with the handle of this stream as an integer. In heddle and in DLPack, the handle 1
//            means CUDA's default stream.
// Result:    has the sizes, strides and address of the managed tensor. There are two exceptions: a
//            tensor without elements gets dense strides, and an axis of one element whose stride is
//            negative gets its dense stride. TensorDesc::global equals TensorDesc::sizes. For a
//            block of a sharded tensor, the caller sets `global` to the unsharded sizes.
// Read-only: a tensor with the flag READ_ONLY requires `access` ReadOnly. With ReadOnly, the caller
//            promises that no run writes the tensor: it is neither donated (RunOptions::donated)
//            nor preallocated (RunOptions::preallocated), and the program stores no output in it.
// Limits:    the address must be a multiple of the size of an element. Strides must not be
//            negative, except along axes of one element and in tensors without elements. If there
//            are axes, the pointer to the sizes must not be null. If there are elements, the data
//            pointer must not be null.
Tensor fromDLPack(Device& device, DLManagedTensor* managed);
Tensor fromDLPack(Device& device, DLManagedTensorVersioned* managed,
                  DLPackAccess access = DLPackAccess::ReadWrite);

// These functions return a new managed tensor in the memory of `tensor`. toDLPack() creates the
// struct without a version, for libraries from before DLPack 1.0.
//
// Ownership: the consumer owns the result and calls its deleter once. Until then, the result holds
//            a copy of Tensor::owner. If Tensor::owner is empty, the owner of the memory must keep
//            it valid until then.
// Lifetimes: the device must exist until the deleter has been called. If the tensor is an output of
//            a run, the allocator and the stream of this run must also exist until then.
// Streams:   call Outputs::wait(), or Outputs::makeWait() with the consumer's stream, before the
//            consumer reads an output. The deleter frees an output in the order of the run's
//            stream. A consumer that works on another stream must therefore finish its work, or
//            make the run's stream wait for it, before it calls the deleter. None of this is
//            necessary if the run used the consumer's stream (RunOptions::stream).
// Result:    has the sizes of this rank's block, without padding, and always has strides. On a rank
//            that holds no part of the tensor, the functions throw UserError. If the result is
//            passed to fromDLPack() again, the new tensor has another owner. Runs that read it do
//            not know which run has computed it, so they do not fail if that run has failed.
// Access:    ReadOnly sets the flag READ_ONLY, for example for an output that is a view of an input
//            (Outputs::aliased()). A struct without a version has no such flag.
DLManagedTensor* toDLPack(Device& device, const Tensor& tensor);
DLManagedTensorVersioned* toDLPackVersioned(Device& device, const Tensor& tensor,
                                            DLPackAccess access = DLPackAccess::ReadWrite);

}  // namespace heddle::host
