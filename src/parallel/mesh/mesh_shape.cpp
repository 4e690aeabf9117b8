#include "parallel/mesh/mesh_shape.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::parallel {
namespace {

std::string product_text(const MeshShape::Request& request) {
  std::vector<std::string> factors;
  const auto add = [&](Axis axis, int size) {
    if (size != 1) factors.push_back(text::concat(name_of(axis), " (", size, ")"));
  };
  add(Axis::tensor, request.tensor);
  add(Axis::context, request.context);
  add(Axis::shard, request.shard);
  if (request.replicate != 0) add(Axis::replicate, request.replicate);
  add(Axis::pipeline, request.pipeline);
  return text::join(factors, " x ");
}

void require_positive(Axis axis, int size) {
  if (size > 0) return;
  throw UsageError({.what = text::concat("parallel.", name_of(axis), " is ", size),
                    .why = "it is the number of ranks along an axis of the mesh",
                    .hint = "use a positive number"});
}

void require_whole_groups(int data_ranks, int experts) {
  if (experts > 0 && data_ranks % experts == 0) return;
  throw UsageError({.what = text::concat("parallel.experts is ", experts, ", and ", text::count(data_ranks, "rank"),
                                         data_ranks == 1 ? " gets" : " get", " different batches"),
                    .why = "each group of that many ranks holds every expert once",
                    .hint = "use a divisor of their number"});
}

void require_equal_shards(int shard, int experts) {
  if (shard % experts == 0 || experts % shard == 0) return;
  throw UsageError(
      {.what = text::concat("parallel.experts is ", experts, ", and ", shard, " ranks share ZeRO's shards"),
       .why = "some experts would be on more of these ranks than others",
       .hint = "use a divisor or a multiple of the ranks along shard (zero.shard_group)"});
}

}  // namespace

std::string_view name_of(Axis axis) {
  static constexpr std::array<std::string_view, axis_count> names = {"pipeline", "replicate", "shard", "context",
                                                                     "tensor"};
  return names[static_cast<std::size_t>(axis)];
}

MeshShape::MeshShape(const Request& request, int ranks)
    : sizes_{request.pipeline, request.replicate, request.shard, request.context, request.tensor},
      ranks_(ranks),
      experts_(request.experts) {
  const bool fills = request.replicate == 0;
  if (fills) sizes_[static_cast<std::size_t>(Axis::replicate)] = 1;
  long long product = 1;
  for (const auto axis : all_axes) {
    require_positive(axis, size(axis));
    product *= size(axis);
    if (product > ranks) break;
  }
  if (fills && product <= ranks && ranks % product == 0) {
    sizes_[static_cast<std::size_t>(Axis::replicate)] = static_cast<int>(ranks / product);
    product = ranks;
  }
  if (product == ranks) {
    require_whole_groups(data_size(), experts_);
    require_equal_shards(size(Axis::shard), experts_);
    return;
  }
  throw UsageError(
      {.what = text::concat(product_text(request), fills ? " must divide " : " must be ", text::count(ranks, "rank")),
       .why = "each rank has one place along each axis of the mesh",
       .hint = "change the number of ranks, or the ranks along an axis (zero.shard_group is that of shard)"});
}

int MeshShape::stride(Axis axis) const {
  int stride = 1;
  for (auto inner = static_cast<std::size_t>(axis) + 1; inner < axis_count; ++inner) stride *= sizes_[inner];
  return stride;
}

int MeshShape::index(Axis axis, int rank) const { return rank / stride(axis) % size(axis); }

int MeshShape::group(Axis axis, int rank) const { return rank - index(axis, rank) * stride(axis); }

std::vector<int> MeshShape::ranks_along(Axis axis, int rank) const {
  std::vector<int> ranks;
  for (int i = 0; i < size(axis); ++i) ranks.push_back(group(axis, rank) + i * stride(axis));
  return ranks;
}

int MeshShape::data_index(int rank) const {
  return index(Axis::replicate, rank) * size(Axis::shard) + index(Axis::shard, rank);
}

int MeshShape::with_data_index(int rank, int index) const {
  return data_group(rank) + index / size(Axis::shard) * stride(Axis::replicate) +
         index % size(Axis::shard) * stride(Axis::shard);
}

int MeshShape::expert_group(int rank) const { return with_data_index(rank, data_index(rank) - expert_index(rank)); }

int MeshShape::holders_group(int rank) const { return with_data_index(group(Axis::context, rank), expert_index(rank)); }

int MeshShape::expert_shards_group(int rank) const {
  return group(Axis::shard, rank) + index(Axis::shard, rank) % neighbours_along_shard() * stride(Axis::shard);
}

std::string MeshShape::text() const {
  std::vector<std::string> parts;
  for (const auto axis : all_axes) {
    if (size(axis) > 1) parts.push_back(text::concat(name_of(axis), " ", size(axis)));
  }
  const auto axes = parts.empty() ? "1 rank" : text::join(parts, " x ");
  return experts_ == 1 ? axes : text::concat(axes, ", experts over ", experts_);
}

}  // namespace hortator::parallel
