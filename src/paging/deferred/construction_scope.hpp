#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "interception/thread_operators.hpp"
#include "machine/memory/recycling_allocator.hpp"
#include "paging/deferred/recording.hpp"

/// Tensors that get their values later, or never.
namespace hortator::paging {

/// Whether the tensor has elements but no memory.
bool lacks_memory(const at::Tensor& tensor);

/// Whether the tensor's values are deferred.
bool is_deferred(const at::Tensor& tensor);

/// Makes the values that were deferred at construction; afterwards the tensor is an ordinary one.
void settle(const at::Tensor& tensor);

/// Drops the tensor's values, deferred ones included, and its memory. Reading it then throws an error that says `why`.
/// Throws UsageError for a tensor that is paged.
void drop_values(const at::Tensor& tensor, std::string why);

/// Gives the tensor uninitialised memory of its own instead of deferred values; keeps memory that it has. Throws as
/// drop_values().
void give_memory(const at::Tensor& tensor);

/// Gives memory to those of the tensors that have none, as give_memory(), on huge pages where the system has them.
void give_lacking_memory(const std::vector<at::Tensor>& tensors);

/// Whether this thread constructs without memory: a ConstructionScope lives.
bool defers_construction();

/// While it lives, what this thread constructs is recorded instead of executed. Scopes nest.
class ConstructionScope {
 public:
  explicit ConstructionScope(Recording::Order order);
  ~ConstructionScope();
  ConstructionScope(const ConstructionScope&) = delete;
  ConstructionScope& operator=(const ConstructionScope&) = delete;

 private:
  std::shared_ptr<Recording> recording_;  ///< after the scope its tensors own it
  Recording* former_;
  machine::RecyclingAllocator blocks_{0};  ///< temporary memory leaves no holes
  interception::ThreadOperators on_;
};

}  // namespace hortator::paging
