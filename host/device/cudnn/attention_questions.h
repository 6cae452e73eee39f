#pragma once

#include <string>
#include <vector>

#include "host/device/attention.h"

namespace heddle::host::cudnn {

// A question (AlgorithmChoices in host/device/device.h) describes one graph of an attention as a
// line of text: its direction, the mask, and the dtype, sizes and strides of each tensor. The scale
// is not part of it, because cuDNN gets it when the graph runs. The answer is an engine
// configuration of cuDNN (Graph::proposals()).

// Return the tensors of the graph except the log-sums, in the order of the members of the spec.
// Require AttentionBackwardSpec::o.
std::vector<TensorDesc> operandsOf(const AttentionSpec& spec);
std::vector<TensorDesc> operandsOf(const AttentionBackwardSpec& spec);

// Returns the question for the forward graph.
std::string questionOf(const AttentionSpec& spec);
// Returns the question for the backward graph. Requires spec.o.
std::string questionOf(const AttentionBackwardSpec& spec);

// Parses a question. The spec has the usual scale, 1 / sqrt(width), and no log-sums. Its
// descriptors have dtypes, sizes and strides. Throws InternalError if it cannot parse the text.
AttentionCallSpec parseQuestion(const std::string& question);

}  // namespace heddle::host::cudnn
