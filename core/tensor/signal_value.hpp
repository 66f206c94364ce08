// The tensors that travel under one signal. No tensors: a signal-only edge, which counts as present.
// Used by graph state, the conductor and the worker's routing.
#pragma once

#include <boost/container/small_vector.hpp>

#include "core/tensor/tensor.hpp"

namespace cairn {

// Nearly always one tensor; that one needs no heap.
using SignalValue = boost::container::small_vector<TensorPtr, 1>;

}  // namespace cairn
