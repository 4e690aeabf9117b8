#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <hortator/parallel/collectives.hpp>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/agree.hpp"

/// The functions of hortator/parallel/collectives.hpp over a communicator, which must outlive backward.
namespace hortator::parallel {

/// A linear map over the ranks and its transpose, which is differentiable in turn.
struct RankMap {
  std::function<at::Tensor(const at::Tensor&)> forward;
  std::function<at::Tensor(const at::Tensor&)> backward;
};

/// Applies the map to `tensor`, whose gradient is what `map.backward` makes of the result's. @collective where the map
/// is
at::Tensor apply(const at::Tensor& tensor, RankMap map);

at::Tensor all_reduce(const at::Tensor& tensor, comm::Communicator& over, ResultUse use);
at::Tensor all_gather(const at::Tensor& tensor, comm::Communicator& over, std::int64_t dim, ResultUse use);
at::Tensor reduce_scatter(const at::Tensor& tensor, comm::Communicator& over, std::int64_t dim);
at::Tensor all_to_all(const at::Tensor& tensor, comm::Communicator& over, std::int64_t cut, std::int64_t join);
/// `all_or_none` lets all ranks throw where the memory of one runs out, in backward as well.
at::Tensor all_to_all(
    const at::Tensor& tensor, comm::Communicator& over, const std::vector<std::int64_t>& rows_to,
    const std::vector<std::int64_t>& rows_from,
    const mpi::AllOrNone& all_or_none = [](const auto& allocate) { allocate(); });
at::Tensor broadcast(const at::Tensor& tensor, comm::Communicator& over, int root, ResultUse use);
at::Tensor enter(const at::Tensor& tensor, comm::Communicator& over);
at::Tensor own_part(const at::Tensor& tensor, comm::Communicator& over, std::int64_t dim);

}  // namespace hortator::parallel
