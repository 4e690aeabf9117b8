#include <hortator/parallel/collectives.hpp>

#include "core/call_site.hpp"
#include "parallel/collectives/differentiable.hpp"
#include "parallel/mesh/current_mesh.hpp"

namespace hortator::parallel {
namespace {

// @collective the first time
comm::Communicator& along(Axis axis, const at::Tensor& tensor) {
  return current_mesh().connect_layer(axis).communicator_of(tensor);
}

}  // namespace

at::Tensor all_reduce(const at::Tensor& tensor, Axis axis, ResultUse use) {
  const CallSite site(__builtin_return_address(0));
  return all_reduce(tensor, along(axis, tensor), use);
}

at::Tensor all_gather(const at::Tensor& tensor, Axis axis, std::int64_t dim, ResultUse use) {
  const CallSite site(__builtin_return_address(0));
  return all_gather(tensor, along(axis, tensor), dim, use);
}

at::Tensor reduce_scatter(const at::Tensor& tensor, Axis axis, std::int64_t dim) {
  const CallSite site(__builtin_return_address(0));
  return reduce_scatter(tensor, along(axis, tensor), dim);
}

at::Tensor all_to_all(const at::Tensor& tensor, Axis axis, std::int64_t cut, std::int64_t join) {
  const CallSite site(__builtin_return_address(0));
  return all_to_all(tensor, along(axis, tensor), cut, join);
}

at::Tensor all_to_all(const at::Tensor& tensor, Axis axis, const std::vector<std::int64_t>& rows_to,
                      const std::vector<std::int64_t>& rows_from) {
  const CallSite site(__builtin_return_address(0));
  return all_to_all(tensor, along(axis, tensor), rows_to, rows_from);
}

at::Tensor broadcast(const at::Tensor& tensor, Axis axis, int root, ResultUse use) {
  const CallSite site(__builtin_return_address(0));
  return broadcast(tensor, along(axis, tensor), root, use);
}

at::Tensor enter(const at::Tensor& tensor, Axis axis) {
  const CallSite site(__builtin_return_address(0));
  return enter(tensor, along(axis, tensor));
}

at::Tensor own_part(const at::Tensor& tensor, Axis axis, std::int64_t dim) {
  const CallSite site(__builtin_return_address(0));
  return own_part(tensor, along(axis, tensor), dim);
}

}  // namespace hortator::parallel
