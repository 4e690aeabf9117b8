#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <hortator/error.hpp>
#include <string>
#include <vector>

#include "core/text/text.hpp"

namespace hortator::simulation {

/// Types and shapes, for messages.
std::string shapes_of(const std::vector<at::Tensor>& tensors);

/// Calls the network. What LibTorch refuses is the caller's mistake, and gets the arrays' shapes.
template <typename Call>
auto computed(const std::string& name, const std::vector<at::Tensor>& inputs, const Call& call) {
  try {
    return call();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    throw UsageError({.what = text::concat("The model ", text::quote(name), " cannot compute with these inputs: ",
                                           text::first_line(error.what_without_backtrace())),
                      .why = "it got " + shapes_of(inputs),
                      .hint = "bind arrays of the shapes and types that the model was made for"});
  }
}

}  // namespace hortator::simulation
