// Collectives on tensors, structures of tensors, and objects.
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "replay.hpp"
#include "tensors.hpp"

namespace hortator::golden {
namespace {

using Tree = std::map<std::string, std::vector<at::Tensor>>;

bool is_collectives(const json& file) {
  const auto& one = file.at("cases").front();
  return one.contains("op") && one.contains("world") && one.contains("in");
}

double tolerance_of(const json& one) { return one.at("dtype") == "float64" ? 1e-10 : 1e-5; }

// A list is a list of tensors if its rows differ in size, or if it has the same length after gathering; otherwise it is
// a tensor.
bool is_list_of_tensors(const json& value, const json& gathered) {
  if (!value.is_array()) return false;
  if (gathered.is_array() && gathered.size() == value.size()) return true;
  const auto depth_and_size = [](const json& row) { return row.is_array() ? row.size() + 1 : 0; };
  const auto ragged = [&](const json& rows) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const json& row) { return depth_and_size(row) != depth_and_size(rows.front()); });
  };
  if (ragged(value)) return true;
  return std::any_of(value.begin(), value.end(), [&](const json& row) {
    return row.is_array() && !row.empty() &&
           (ragged(row) || row.front().is_array() != value.front().front().is_array());
  });
}

Tree to_tree(const json& one, std::size_t rank) {
  Tree tree;
  for (const auto& [key, part] : one.at("in").at(rank).items()) {
    const bool grows = one.at("op") == "gather" && one.at("world") > 1;
    if (!is_list_of_tensors(part, grows ? one.at("out").at(rank).at(key) : json())) {
      tree[key] = {to_tensor(part, at::kFloat)};
      continue;
    }
    for (const auto& tensor : part) tree[key].push_back(to_tensor(tensor, at::kFloat));
  }
  return tree;
}

Outcome compare_tree(const Tree& ours, const json& theirs) {
  if (ours.size() != theirs.size()) return differs("the trees have different keys");
  for (const auto& [key, tensors] : ours) {
    if (!theirs.contains(key)) return differs(text::concat("Accelerate has no ", key));
    auto lists = json::array();
    for (const auto& tensor : tensors) lists.push_back(to_lists(tensor));
    const auto as_list = difference(lists, theirs.at(key), 1e-5);
    const auto found = tensors.size() == 1 ? difference(lists[0], theirs.at(key), 1e-5) : as_list;
    if (!found.empty() && !as_list.empty()) return differs(text::concat("['", key, "']: ", found));
  }
  return equal();
}

Outcome compare_tensor(const at::Tensor& ours, const json& one, std::size_t rank) {
  const auto found = difference(to_lists(ours), one.at("out").at(rank), tolerance_of(one));
  if (!found.empty()) return differs(found);
  if (one.contains("out_dtype") && one.at("out_dtype") != name_of(ours.scalar_type()))
    return differs(text::concat("the type is ", ours.scalar_type(), ", expected ", one.at("out_dtype")));
  return one.contains("out_shape") ? compare("the shape", ours.sizes().vec(), one.at("out_shape")) : equal();
}

// An empty list does not have the sizes of inner dimensions. They are taken from the result, because no operation
// changes them.
at::Tensor input_of(const json& one, std::size_t rank) {
  const auto type = scalar_type(one.at("dtype"));
  const auto tensor = to_tensor(one.at("in").at(rank), type);
  if (tensor.numel() > 0 || !one.contains("out")) return tensor;
  const auto result = one.contains("out_shape") ? one.at("out_shape").get<std::vector<std::int64_t>>()
                                                : to_tensor(one.at("out").at(rank), type).sizes().vec();
  auto shape = tensor.sizes().vec();
  while (shape.size() < result.size()) shape.push_back(result[shape.size()]);
  return tensor.reshape(shape);
}

// By default utils.reduce computes the mean and Accelerator.reduce the sum. Hortator has one reduce, which sums.
Reduce operation_of(const json& args) {
  if (args.contains("method")) {
    const auto method = one_of(args, "method", {"utils.reduce default", "Accelerator.reduce default"});
    return method == "utils.reduce default" ? Reduce::mean : Reduce::sum;
  }
  const auto name = one_of(args, "reduction", {"mean", "max", "sum"});
  return name == "mean" ? Reduce::mean : name == "max" ? Reduce::max : Reduce::sum;
}

template <typename Tensors>
Tensors run(Accelerator& accelerator, const json& one, const Tensors& mine) {
  const auto& args = one.at("args");
  const auto op = one_of(one, "op", {"gather", "reduce", "broadcast", "pad_across_processes"});
  if (op == "gather") return accelerator.gather(mine);
  if (op == "reduce") return accelerator.reduce(mine, operation_of(args));
  if (op == "broadcast") return accelerator.broadcast(mine, args.at("from_process").get<int>());
  return accelerator.pad_across_processes(
      mine,
      {.dim = args.at("dim"), .pad_index = args.at("pad_index"), .pad_first = args.at("pad_first").get<int>() != 0});
}

// Accelerate adds integers and then fails to divide them in place. In one process it does neither.
Outcome judge_mean_of_integers(Accelerator& accelerator, const json& one, std::size_t rank) {
  try {
    run(accelerator, one, input_of(one, rank));
  } catch (const UsageError& error) {
    const bool has_reason = std::string_view(error.what()).find("have no exact mean") != std::string_view::npos;
    if (!has_reason) return differs(text::concat("threw another error: ", error.what()));
    return one.contains("error") ? equal() : on_purpose("whole_numbers_have_no_mean_in_one_process_either");
  }
  return differs("a mean of integers was not rejected");
}

// A structure with other leaves than tensors is a run-time error in Accelerate, and a compile-time error in Hortator.
Outcome judge_other_leaves(const json& one) {
  static_assert(!TensorStructure<std::map<std::string, int>>);
  const auto message = one.at("error").dump();
  return message.find("Unsupported types") != std::string::npos ? on_purpose("other_leaves_are_refused_when_compiled")
                                                                : differs("Accelerate fails with " + message);
}

// Accelerate concatenates all iterables, and strings by character. Hortator concatenates only vectors.
Outcome judge_objects(Accelerator& accelerator, const json& one, std::size_t rank) {
  const auto& in = one.at("in");
  const bool are_lists = std::all_of(in.begin(), in.end(), [](const json& mine) { return mine.is_array(); });
  if (are_lists) {
    if (one.contains("error")) return differs("Accelerate fails with " + one.at("error").dump());
    const auto ours = accelerator.gather_object(in.at(rank).get<std::vector<json>>());
    return compare("what all ranks have", ours, one.at("out").at(rank));
  }
  const auto same = compare("what all ranks have", accelerator.gather_object(in.at(rank)), in);
  return same.difference.empty() ? on_purpose("only_vectors_are_joined") : same;
}

bool holds(at::ScalarType type, double number) {
  if (type == at::kHalf) return !std::isfinite(number) || std::abs(number) <= 65504;
  if (at::isFloatingType(type)) return true;
  if (type == at::kBool) return number == 0 || number == 1;
  const bool has_sign = type != at::kByte;
  const double above = std::exp2(8.0 * static_cast<double>(c10::elementSize(type)) - (has_sign ? 1 : 0));
  return number == std::trunc(number) && number < above && number >= (has_sign ? -above : 0);
}

// Whether padding is an error: the type cannot represent the number, and a rank has the dimension.
bool is_padding_refused(const json& one) {
  const auto& args = one.at("args");
  if (holds(scalar_type(one.at("dtype")), args.at("pad_index"))) return false;
  const auto dim = args.at("dim").get<std::int64_t>();
  for (std::size_t rank = 0; rank < one.at("in").size(); ++rank) {
    const auto dims = input_of(one, rank).dim();
    if (dim >= -dims && dim < dims) return true;
  }
  return false;
}

// Accelerate adds the number to zeros: it overflows, or only the tensor of this rank gets another type.
Outcome judge_padding(Accelerator& accelerator, const json& one, std::size_t rank) {
  const bool is_refused = is_padding_refused(one);
  try {
    const auto ours = run(accelerator, one, input_of(one, rank));
    if (is_refused) return differs(text::concat("was padded with ", one.at("args").at("pad_index")));
    auto kept = one;
    const bool promotes = one.at("dtype") == "bool" && one.value("out_dtype", "") == "int64";
    if (promotes) kept["out_dtype"] = "bool";
    const auto outcome = compare_tensor(ours, kept, rank);
    return promotes && outcome.difference.empty() ? on_purpose("padding_keeps_the_type") : outcome;
  } catch (const Error& error) {
    return is_refused ? on_purpose("what_fills_up_is_of_the_type") : differs(error.what());
  }
}

// Reduces the inputs of all ranks in double precision.
at::Tensor reduced_exactly(const json& one) {
  std::vector<at::Tensor> parts;
  for (const auto& part : one.at("in")) parts.push_back(to_tensor(part, scalar_type(one.at("dtype"))).to(at::kDouble));
  const auto all = at::stack(parts);
  const auto operation = operation_of(one.at("args"));
  return operation == Reduce::sum ? all.sum(0) : operation == Reduce::mean ? all.mean(0) : all.amax(0);
}

// gloo rounds sums of 16-bit types at each rank, and whether max keeps NaN depends on the order of ranks.
Outcome judge_reduction(const at::Tensor& ours, const json& one, std::size_t rank) {
  const auto same = compare_tensor(ours, one, rank);
  const bool is_max = operation_of(one.at("args")) == Reduce::max;
  if (same.difference.empty() || ours.scalar_type() != scalar_type(one.at("dtype"))) return same;
  const auto exact = reduced_exactly(one).to(ours.scalar_type());
  if (!difference(to_lists(ours), to_lists(exact), 0).empty()) return same;
  if (is_max && exact.isnan().any().item<bool>()) return on_purpose("max_keeps_nan");
  const bool is_rounded = !is_max && at::isReducedFloatingType(ours.scalar_type());
  return is_rounded ? on_purpose("sums_of_16_bits_are_rounded_once") : same;
}

bool is_of_no_type_of_gloo(const json& one) {
  return one.contains("error") && one.at("error").dump().find("Invalid scalar type") != std::string::npos;
}

at::Tensor expected_of(const json& one) {
  const auto op = one_of(one, "op", {"gather", "reduce", "broadcast"});
  if (op == "reduce") return reduced_exactly(one);
  if (op == "broadcast") return input_of(one, one.at("args").at("from_process").get<std::size_t>());
  std::vector<at::Tensor> parts;
  for (std::size_t rank = 0; rank < one.at("in").size(); ++rank) parts.push_back(input_of(one, rank));
  return parts.front().dim() == 0 ? at::stack(parts) : at::cat(parts);
}

Outcome judge_without_gloo(Accelerator& accelerator, const json& one, std::size_t rank) {
  const auto type = scalar_type(one.at("dtype"));
  const auto ours = run(accelerator, one, input_of(one, rank));
  if (ours.scalar_type() != type) return differs(text::concat("the type is ", ours.scalar_type()));
  const auto same = compare("the numbers", to_lists(ours), to_lists(expected_of(one).to(type)));
  return same.difference.empty() ? on_purpose("more_types_travel") : same;
}

bool is_mean_of_integers(const json& one) {
  return one.at("op") == "reduce" && one.at("dtype") != "tree" && !at::isFloatingType(scalar_type(one.at("dtype"))) &&
         operation_of(one.at("args")) == Reduce::mean;
}

Outcome judge_collectives(const json& one, const json&) {
  Accelerator accelerator;
  const auto rank = static_cast<std::size_t>(accelerator.process_index());
  if (is_mean_of_integers(one)) return judge_mean_of_integers(accelerator, one, rank);
  if (one.at("op") == "gather_object") return judge_objects(accelerator, one, rank);
  if (is_of_no_type_of_gloo(one)) return judge_without_gloo(accelerator, one, rank);
  if (one.contains("error")) return judge_other_leaves(one);
  if (one.at("dtype") == "tree") return compare_tree(run(accelerator, one, to_tree(one, rank)), one.at("out").at(rank));
  if (one.at("op") == "pad_across_processes") return judge_padding(accelerator, one, rank);
  const auto ours = run(accelerator, one, input_of(one, rank));
  return one.at("op") == "reduce" ? judge_reduction(ours, one, rank) : compare_tensor(ours, one, rank);
}

}  // namespace

Format collectives() {
  return {.name = "collectives",
          .recognises = is_collectives,
          .world = [](const json& one) { return one.at("world").get<int>(); },
          .judge = judge_collectives};
}

}  // namespace hortator::golden
